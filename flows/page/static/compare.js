// The compared schemes at one sigma, delta and number of steps, as in the macro `compare` of a store.

import { bracket } from "./answer.js";
import { fill, grid } from "./dom.js";
import { DomainError, question } from "./fields.js";
import { Contradiction, lookup } from "./lookup.js";
import { exactly } from "./numbers.js";

/** The texts of a scheme's question for the fields of an allocation. */
function asked(scheme, problem, base) {
  const all = { ...base };
  if (scheme.ratio) all[scheme.ratio] = base.participations / base.steps;
  if (scheme.redraw) all.redraw = base.epochs === 1 ? scheme.redraw.one : scheme.redraw.several;
  if (scheme.adjacency) all.adjacency = scheme.adjacency[base.adjacency] ?? base.adjacency;
  return Object.fromEntries(problem.fields.map(({ name }) => [name, exactly(all[name])]));
}

/**
 * Return the bracket of every scheme in the table, or the reason why it has no bracket.
 *
 * @param source From `open`.
 * @param base The question about random allocation.
 * @returns A list of `{scheme, found, reason}`.
 */
export async function compare(source, base) {
  return Promise.all(
    source.catalogue.compare.schemes.map(async (scheme) => {
      const problem = source.catalogue.problems[scheme.problem];
      if (!problem) return { scheme, found: null, reason: "nothing stored" };
      if (scheme.once && base.participations !== 1) {
        return { scheme, found: null, reason: "answered for one participation in an epoch only" };
      }
      try {
        const table = await source.table(scheme.problem);
        const found = lookup(table, question(problem, asked(scheme, problem, base)));
        return { scheme, found, reason: "not stored at these values" };
      } catch (error) {
        if (!(error instanceof DomainError) && !(error instanceof Contradiction)) throw error;
        return { scheme, found: null, reason: error.message };
      }
    }),
  );
}

/** Show the schemes side by side. */
export function showCompared(rows) {
  const cells = rows.map(({ scheme, found, reason }) => {
    const by = found ? [...new Set([found.lower_method, found.upper_method].filter(Boolean))].join(", ") : "";
    return [scheme.title, found ? bracket("ε", found) : reason, by];
  });
  fill("compare", grid(["scheme", "bracket", "method"], cells));
}
