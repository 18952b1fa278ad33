// The stored values: the range of every field, and the stored problems nearest to a question outside of them.

import { check, DomainError } from "../fields.js";
import { agreed, fieldsOf, group } from "./lookup.js";
import { exactly } from "../numbers.js";

/** The different values of a column, numbers in order. */
function distinct(values) {
  const found = [...new Set(values)];
  return typeof found[0] === "number" ? found.sort((a, b) => a - b) : found.sort();
}

/** The stored values of every field, sorted. */
export function stored(table) {
  table.values ??= Object.fromEntries(
    table.problem.fields.map(({ name }) => [name, distinct([...table.brackets[name], ...table.stated[name]])]),
  );
  return table.values;
}

/** Whether a problem has no rows, so that only the engine answers it. */
export const unstored = ({ problem }) => problem.rows === 0;

/** The values over which sliders and charts of a field run: stored ones, or typical ones without rows. */
export const reach = (table, field) => (unstored(table) ? field.typical : stored(table)[field.name]);

/** The same of the rows that share all fields without a trend with a question; or of all rows, if no row does. */
export function around(table, question) {
  const rows = group(table, question);
  if (!rows.length) return stored(table);
  return Object.fromEntries(
    table.problem.fields.map(({ name }) => [name, distinct(rows.map((row) => table.brackets[name][row]))]),
  );
}

/** A range or a short list of values in words. */
export function range(values) {
  if (!values.length) return "nothing";
  const words = values.map(exactly);
  if (words.length <= 4) return words.join(", ");
  if (typeof values[0] === "number") return `${words[0]} to ${words.at(-1)}, ${words.length} values`;
  return `${words.slice(0, 4).join(", ")} and ${words.length - 4} more`;
}

/** The distance between two values of a field: by their ratio if both are positive. */
function distance(one, other) {
  if (one === other) return 0;
  if (typeof one !== "number") return 1;
  const apart = one > 0 && other > 0 ? Math.abs(Math.log(one / other)) : Math.abs(one - other);
  return Number.isFinite(apart) ? apart : 1e3;
}

/** Whether the fields of a question fit together. */
export function fits(problem, question) {
  try {
    check(problem, question);
  } catch (error) {
    if (error instanceof DomainError) return false;
    throw error;
  }
  return true;
}

/**
 * Return a question that the table answers, near to a question that it does not cover; null if there is no candidate.
 *
 * Fields without a trend take the values of the nearest stored problem, the others are moved into its range.
 */
export function nearest(table, question) {
  const { problem, brackets, fixed } = table;
  let best = -1;
  let least = Infinity;
  brackets.lower.forEach((_, row) => {
    const apart = problem.fields.reduce((sum, { name, trend }) => {
      const weight = trend === 0 ? 1e6 : 1;
      return sum + weight * distance(brackets[name][row], question[name]);
    }, 0);
    if (apart < least) [best, least] = [row, apart];
  });
  if (best < 0) return null;
  const near = { ...question };
  fixed.forEach((name) => (near[name] = brackets[name][best]));
  const rows = group(table, near);
  for (const { name } of problem.fields.filter(({ trend }) => trend !== 0)) {
    const column = rows.map((row) => brackets[name][row]);
    near[name] = Math.min(Math.max(near[name], Math.min(...column)), Math.max(...column));
  }
  const answered = (each) => fits(problem, each) && agreed(table, each) !== null;
  return [near, fieldsOf(table, best)].find(answered) ?? null;
}

/** A sweep file that computes a question, for `privsweep plan` and `privsweep run`. */
export function extension(problem, question) {
  const written = (value) => (typeof value === "number" ? exactly(value) : JSON.stringify(value));
  const lines = problem.fields.map(({ name }) => `${name} = [${written(question[name])}]`);
  const methods = problem.methods.map((name) => JSON.stringify(name)).join(", ");
  return [
    'name = "extend"',
    "",
    "[[grid]]",
    `problem = "${problem.name}"`,
    `methods = [${methods}]`,
    "",
    "[grid.product]",
    ...lines,
    "",
  ].join("\n");
}
