// The compared schemes at one sigma, delta and number of steps, as in the macro `compare` of a store.

import { bracket, sourceOf } from "./answer.js";
import { contradicts, narrow, reported, tolerance } from "./computed.js";
import { at, fill, grid, html } from "./dom.js";
import { compute, stop } from "./engine/client.js";
import { PROBLEMS, covers } from "./engine/questions.js";
import { DomainError, question } from "./fields.js";
import { Contradiction, lookup } from "./lookup.js";
import { exactly } from "./numbers.js";

/** The fields of a scheme's question for those of an allocation. */
function fieldsOf(scheme, base) {
  const all = { ...base };
  if (scheme.ratio) all[scheme.ratio] = base.participations / base.steps;
  if (scheme.redraw) all.redraw = base.epochs === 1 ? scheme.redraw.one : scheme.redraw.several;
  if (scheme.adjacency) all.adjacency = scheme.adjacency[base.adjacency] ?? base.adjacency;
  return all;
}

/**
 * Return the stored bracket of every scheme, or the reason why it has no bracket.
 *
 * @param source From `open`.
 * @param base The question about random allocation.
 * @returns A list of `{scheme, fields, found, reason, wrong}`; `wrong` if stored brackets contradict one another.
 */
export async function compare(source, base) {
  return Promise.all(
    source.catalogue.compare.schemes.map(async (scheme) => {
      const fields = fieldsOf(scheme, base);
      const problem = source.catalogue.problems[scheme.problem];
      if (!problem) return { scheme, fields, found: null, reason: "nothing stored" };
      if (scheme.once && base.participations !== 1) {
        return { scheme, fields, found: null, reason: "answered for one participation in an epoch only" };
      }
      try {
        const table = await source.table(scheme.problem);
        const texts = Object.fromEntries(problem.fields.map(({ name }) => [name, exactly(fields[name])]));
        return { scheme, fields, found: lookup(table, question(problem, texts)), reason: unanswered(scheme) };
      } catch (error) {
        if (!(error instanceof DomainError) && !(error instanceof Contradiction)) throw error;
        return { scheme, fields, found: null, reason: error.message, wrong: error instanceof Contradiction };
      }
    }),
  );
}

const unanswered = ({ problem }) =>
  PROBLEMS.includes(problem) ? "not stored at these values" : "not stored at these values; privsweep compare computes it";

/** The relative width of a bracket in words. */
function widthOf({ lower, upper }) {
  if (upper === lower) return "exact";
  if (!(lower > 0 && upper < Infinity)) return "one end only";
  const percent = 100 * (upper / lower - 1);
  return percent < 0.01 ? "less than 0.01 % wide" : `${Number(percent.toPrecision(2))} % wide`;
}

const shown = (found) => [bracket("ε", found), " ", html("span", { class: "help" }, widthOf(found))];

/** Where a bracket is from: methods of the stored one, or the browser with the stored bracket for comparison. */
function origin({ found, computed, reason, wrong }) {
  const words = found ? [found.lower_method, found.upper_method, sourceOf(found)] : [];
  const methods = [...new Set(words.filter(Boolean))].join(", ");
  if (!computed) return methods;
  const stored = found ? `; stored: ${bracket("ε", found)} by ${methods}` : "";
  const told = contradicts(found, computed) ? `The two contradict each other. ${reported(found)}` : wrong ? reason : "";
  const warning = told ? html("p", { class: "error" }, told) : null;
  return [`computed in this browser${stored}`, warning];
}

/** Show the schemes side by side, with a line below the table. */
export function showCompared(rows, ...line) {
  const cells = rows.map((row) => {
    const found = row.computed ?? row.found;
    return [row.scheme.title, found ? shown(found) : row.reason, found ? origin(row) : ""];
  });
  fill("compare", grid(["scheme", "bracket", "method"], cells));
  fill("compare-progress", ...line);
}

/**
 * Compute the brackets that are missing or wide, one after another, after the headline.
 *
 * @param rows From `compare`; computed brackets are added to them.
 * @param headline A promise from `tighten`.
 * @param current Whether the question is still the one in the form.
 */
export async function complete(rows, headline, current) {
  const open = rows.filter(({ scheme, fields, found }) => !narrow(found, scheme.problem) && covers(scheme.problem, fields));
  if (!open.length) return;
  const { tight, stopped } = await headline;
  if (!current()) return;
  const own = open.find(({ scheme }) => scheme.problem === at("problem").value);
  if (own && tight) own.computed = tight;
  const start = () => run(rows, open, current);
  if (stopped) offer(rows, start);
  else await start();
}

function offer(rows, start) {
  const button = html("button", { type: "button", id: "compare-start" }, "Compute the missing and wide brackets");
  button.addEventListener("click", start);
  showCompared(rows, button);
}

async function run(rows, open, current) {
  const bar = html("progress", { max: 1, value: 0, "aria-label": "progress of the comparison" });
  const button = html("button", { type: "button", id: "compare-stop" }, "Stop");
  button.addEventListener("click", () => stop());
  for (const row of open.filter(({ computed }) => !computed)) {
    showCompared(rows, `Computing ${row.scheme.title} in this browser `, bar, " ", button);
    bar.setAttribute("value", 0);
    try {
      const asked = { problem: row.scheme.problem, fields: row.fields, tolerance: tolerance(row.scheme.problem) };
      row.computed = await compute(asked, ({ done, of }) => bar.setAttribute("value", done / of));
    } catch (error) {
      if (!current()) return;
      if (error.stopped) {
        offer(rows, () => run(rows, open, current));
        return;
      }
      row.reason = error.message;
    }
    if (!current()) return;
  }
  showCompared(rows);
}
