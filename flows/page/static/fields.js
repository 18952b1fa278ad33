// From texts to a question: every field in its domain, and fields that fit together, or a sentence.

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
  throw new DomainError(field.name, `Expected ${field.name} in ${field.domain}, got ${shown.slice(0, 60)}.`);
}

/**
 * Return the value of one field.
 *
 * @param field Entry of the catalogue.
 * @param text What the user wrote.
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
 * Return the question that texts spell.
 *
 * @param problem Entry of the catalogue.
 * @param texts Text by field; a field with a default may be left out.
 * @throws DomainError
 */
export function question(problem, texts) {
  const asked = {};
  for (const field of problem.fields) {
    const given = texts[field.name] ?? field.default;
    if (given === null || given === undefined) {
      throw new DomainError(field.name, `Expected ${field.name} for ${problem.name}.`);
    }
    asked[field.name] = value(field, typeof given === "string" ? given : exactly(given));
  }
  check(problem, asked);
  return asked;
}

/** Throw a DomainError where the fields of a question contradict one another. */
export function check(problem, asked) {
  problem.rules.forEach((rule) => keep(rule, asked));
}

function keep(rule, asked) {
  const { field, where } = rule;
  if (where && !where.mechanism.includes(asked.mechanism)) return;
  const got = exactly(asked[field]);
  if ("at_most" in rule && asked[field] > asked[rule.at_most]) {
    const other = `${rule.at_most}=${exactly(asked[rule.at_most])}`;
    throw new DomainError(field, `Expected ${field} <= ${rule.at_most}, got ${field}=${got}, ${other}.`);
  }
  if ("at_least" in rule && asked[field] < rule.at_least) {
    throw new DomainError(field, `Expected ${field} >= ${exactly(rule.at_least)}, got ${field}=${got}.`);
  }
  if ("counts" in rule) {
    const most = asked[rule.counts].split(",").length;
    if (!Number.isInteger(asked[field]) || asked[field] < 0 || asked[field] > most) {
      throw new DomainError(field, `Expected ${field} in {0, ..., ${most}} for ${asked.mechanism}, got ${got}.`);
    }
  }
  if ("equals" in rule && exactly(asked[field]) !== exactly(rule.equals)) {
    const expected = `${field}=${exactly(rule.equals)}`;
    throw new DomainError(field, `Expected ${expected} for mechanism ${asked.mechanism}, got ${got}.`);
  }
  if ("differs" in rule && exactly(asked[field]) === exactly(rule.differs)) {
    throw new DomainError(field, `Expected a finite ${field} for mechanism ${asked.mechanism}, got ${got}.`);
  }
}
