// From texts to a question: every field in its domain, and all fields consistent, or an error in one sentence.

import { exactly, number } from "./numbers.js";

const SMALLEST_NORMAL = 2.2250738585072014e-308;

/** A value is outside its domain; the field is named. */
export class DomainError extends Error {
  constructor(field, sentence) {
    super(sentence);
    this.field = field;
  }
}

function refuse(field, text) {
  const shown = field.kind === "real" || field.kind === "integer" ? text.trim() || "nothing" : `'${text}'`;
  throw new DomainError(field.name, `Expected ${field.label ?? field.name} in ${field.domain}, got ${shown.slice(0, 60)}.`);
}

/** A field of a form in words: a whole number, or a real one. */
export const whole = (name, label, lower, upper) => ({
  name, label, lower, upper, kind: "integer", domain: `{${exactly(lower)}, ..., ${exactly(upper)}}`,
});
export const real = (name, label, lower, upper) => ({
  name, label, lower, upper, kind: "real", domain: `[${exactly(lower)}, ${exactly(upper)}]`,
});

/**
 * Return the value of one field.
 *
 * @param field Entry of the catalogue.
 * @param text The user's text.
 * @throws DomainError
 */
export function value(field, text) {
  if (field.kind === "text") return text || refuse(field, text);
  if (field.kind === "choice") return field.choices.includes(text) ? text : refuse(field, text);
  const x = number(text);
  if (field.infinite && x === Infinity) return x;
  const subnormal = Math.abs(x) > 0 && Math.abs(x) < SMALLEST_NORMAL;
  if (!Number.isFinite(x) || Object.is(x, -0) || subnormal) refuse(field, text);
  if (field.kind === "integer" && !Number.isInteger(x)) refuse(field, text);
  if (field.lower_open ? x <= field.lower : x < field.lower) refuse(field, text);
  if (field.upper_open ? x >= field.upper : x > field.upper) refuse(field, text);
  return x;
}

/**
 * Return the question in the texts.
 *
 * @param problem Entry of the catalogue.
 * @param texts Text by field; a field with a default may be left out, unless a question must state it.
 * @throws DomainError
 */
export function question(problem, texts) {
  const asked = {};
  const unstated = [];
  for (const field of problem.fields) {
    const left = field.stated && (texts[field.name] ?? "") === "";
    if (left) unstated.push(field);
    const given = left ? field.default : texts[field.name] ?? field.default;
    if (given === null || given === undefined) {
      throw new DomainError(field.name, `Expected ${field.name} for ${problem.name}.`);
    }
    asked[field.name] = value(field, typeof given === "string" ? given : exactly(given));
  }
  check(problem, asked);
  unstated.forEach((field) => state(problem, asked, field));
  return asked;
}

/** Throw a DomainError if a field that a question must state may have another value than its default. */
function state(problem, asked, { name, stated, others }) {
  const allowed = (other) => {
    try {
      check(problem, { ...asked, [name]: other });
      return true;
    } catch {
      return false;
    }
  };
  if (others.some(allowed)) throw new DomainError(name, `Expected ${name} for ${problem.name}: ${stated}.`);
}

/** Throw a DomainError if the fields of a question contradict one another. */
export function check(problem, asked) {
  problem.constraints.forEach((constraint) => keep(constraint, asked));
}

/** The kinds of `privcore.problem`: whether a value satisfies the comparison with a bound. */
const COMPARE = {
  at_least: (value, bound) => value >= bound,
  at_most: (value, bound) => value <= bound,
  count_of: (value, bound) => Number.isInteger(value) && value >= 0 && value <= bound,
  one_of: (value, bound) => bound.map(exactly).includes(exactly(value)),
  none_of: (value, bound) => !bound.map(exactly).includes(exactly(value)),
};

function limit({ kind, bound }, asked) {
  if (kind === "count_of") return asked[bound].split(",").length;
  return typeof bound === "string" ? asked[bound] : bound;
}

const holds = (each, asked) => COMPARE[each.kind](asked[each.field], limit(each, asked));

function keep(constraint, asked) {
  const { field, message, where } = constraint;
  if ((where && !holds(where, asked)) || holds(constraint, asked)) return;
  const known = { ...asked, bound: limit(constraint, asked) };
  const braces = /\{\{|\}\}|\{(\w+)[^}]*\}/g; // as in a format string of Python
  throw new DomainError(field, message.replace(braces, (all, name) => (name ? exactly(known[name]) : all[0])));
}
