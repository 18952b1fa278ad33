// Questions that the engine answers: the likelihood ratio of a run as a product of independent parts.

/** A question is invalid, or the engine does not cover it; the message is one sentence. */
export class QuestionError extends Error {}

const integer = (lower, upper) => ({ integer: true, lower, upper });
const FIELDS = {
  sigma: { lower: 1e-3, upper: 1e6 },
  steps: integer(1, 1e9),
  epochs: integer(1, 1e6),
  participations: integer(1, 1e9),
  group: integer(1, 1e9),
  sampling_probability: { lower: 1e-12, upper: 1 },
  delta: { lower: 0, upper: 1, open: true },
  epsilon: { lower: -100, upper: 10000 },
};

const DEFAULTS = { epochs: 1, participations: 1, group: 1, adjacency: "add-remove" };

/** The fields of each scheme, besides epsilon or delta and the adjacency. */
const SCHEMES = {
  allocation: ["sigma", "steps", "participations", "epochs"],
  "sampled-allocation": ["sigma", "steps", "sampling_probability", "participations", "epochs"],
  "balls-in-bins": ["sigma", "steps", "participations", "epochs", "redraw"],
  poisson: ["sigma", "steps", "sampling_probability", "epochs"],
  unamplified: ["sigma", "participations", "epochs"],
  none: ["sigma", "steps", "epochs"],
};

const SIDES = {
  "add-remove": [true, false],
  "zero-out": [true, false],
  remove: [true],
  "zero-out-remove": [true],
  add: [false],
  "zero-out-add": [false],
};

/** Names of the problems that the engine answers. */
export const PROBLEMS = ["allocation", "sampled-allocation", "balls-in-bins", "poisson", "unamplified", "run"].flatMap(
  (scheme) => [`${scheme}-epsilon`, `${scheme}-delta`],
);

function checked(name, fields) {
  const value = fields[name] ?? DEFAULTS[name];
  const { lower, upper, open, integer: counted } = FIELDS[name];
  const range = open ? `(${lower}, ${upper})` : `[${lower}, ${upper}]`;
  const inside = open ? value > lower && value < upper : value >= lower && value <= upper;
  if (typeof value !== "number" || !inside || (counted && !Number.isInteger(value))) {
    throw new QuestionError(`Expected ${name}${counted ? ", a whole number," : ""} in ${range}, got ${value ?? "nothing"}.`);
  }
  return value;
}

/**
 * A part of a run: the product of `times` ratios 1 - rate + rate * (mean of `mean` lognormal ratios).
 *
 * `s` is sqrt(scale) / sigma with a whole number `scale`.
 */
function part(scheme, given) {
  const f = Object.fromEntries(SCHEMES[scheme].filter((name) => name !== "redraw").map((name) => [name, checked(name, given)]));
  const { sigma, steps = 1, epochs, participations: k = 1 } = f;
  if (given.group !== undefined && checked("group", given) > 1) {
    throw new QuestionError("Expected group=1: the engine of the page covers an owner of one example.");
  }
  const known = { sigma, scale: 1, mean: 1, rate: 1, times: 1 };
  if (scheme === "unamplified") return { ...known, scale: k * epochs };
  if (scheme === "none") return { ...known, scale: steps * epochs };
  if (scheme === "poisson") {
    const { sampling_probability: rate } = f;
    return rate === 1 ? { ...known, scale: steps * epochs } : { ...known, rate, times: steps * epochs };
  }
  if (k > steps) throw new QuestionError(`Expected participations at most steps=${steps}, got ${k}.`);
  if (k > 1 && k < steps) {
    throw new QuestionError("The engine of the page covers one participation, or as many as steps, and no other number.");
  }
  if (scheme === "sampled-allocation") {
    const { sampling_probability: rate } = f;
    if (rate < 1) return { ...known, scale: k, mean: k === 1 ? steps : 1, rate, times: epochs };
  }
  if (k === steps) return { ...known, scale: k * epochs };
  if (scheme !== "balls-in-bins") return { ...known, mean: steps, times: epochs };
  if (!["once", "each-epoch"].includes(given.redraw)) {
    throw new QuestionError(`Expected redraw once or each-epoch, got ${given.redraw ?? "nothing"}.`);
  }
  // kept bins: E epochs are one epoch at noise sigma / sqrt(E) (docs/training-runs.md)
  return given.redraw === "once" ? { ...known, scale: epochs, mean: steps } : { ...known, mean: steps, times: epochs };
}

/** The parts of `poisson(sigma=1,sampling_probability=0.01,steps=100); none(sigma=2,steps=3)`. */
function phases(text) {
  const calls = String(text ?? "").split(";").map((call) => call.trim()).filter(Boolean);
  if (!calls.length || calls.length > 100) throw new QuestionError(`Expected 1 to 100 phases, got ${calls.length}.`);
  return calls.map((call) => {
    const [, name, inside] = /^([a-z-]+)\s*\((.*)\)$/.exec(call) ?? [];
    if (!["allocation", "balls-in-bins", "poisson", "none"].includes(name)) {
      const known = "allocation, balls-in-bins, poisson and none";
      throw new QuestionError(`Expected phases of ${known} with fields in parentheses, got ${call.slice(0, 60)}.`);
    }
    const given = {};
    for (const word of inside.split(",").filter((each) => each.trim())) {
      const [, field, value] = /^\s*([a-z_]+)\s*=\s*(\S+)\s*$/.exec(word) ?? [];
      if (field !== "group" && !SCHEMES[name].includes(field)) {
        throw new QuestionError(`Expected a field of ${name}: ${SCHEMES[name].join(", ")}; got ${word.trim().slice(0, 60)}.`);
      }
      given[field] = field === "redraw" ? value : Number(value);
    }
    return part(name, given);
  });
}

/** Parts without amplification joined to one: their squared distances add up if their noise is equal. */
function joined(parts) {
  const found = [];
  for (const each of parts) {
    const same = found.find((other) => other.sigma === each.sigma && other.mean === each.mean && other.rate === each.rate);
    if (same && each.mean === 1 && each.rate === 1) same.scale += each.scale;
    else if (same && same.scale === each.scale) same.times += each.times;
    else found.push({ ...each });
  }
  return found;
}

/**
 * The parts of a question.
 *
 * @param problem Its stored name, for example `poisson-epsilon`.
 * @param fields Its fields by name.
 * @returns `asks` (epsilon or delta), `at` (the other one), `sides` (true: remove), and `parts`.
 * @throws QuestionError
 */
export function read(problem, fields) {
  if (!PROBLEMS.includes(problem)) throw new QuestionError(`The engine of the page does not know the problem ${problem}.`);
  const [, scheme, asks] = /^(.*)-(epsilon|delta)$/.exec(problem);
  const at = checked(asks === "epsilon" ? "delta" : "epsilon", fields);
  const adjacency = fields.adjacency ?? DEFAULTS.adjacency;
  const replaced = scheme === "unamplified" && adjacency === "replace-one";
  const sides = replaced ? [true, false] : SIDES[adjacency];
  if (!sides) {
    throw new QuestionError(`Expected an adjacency that the engine of the page covers, such as add-remove, got ${adjacency}.`);
  }
  const parts = joined(scheme === "run" ? phases(fields.phases) : [part(scheme, fields)]);
  if (replaced) parts.forEach((each) => (each.scale *= 4)); // the distance is twice as large
  return { asks, at, sides, parts };
}

/** Whether the engine answers a question. */
export function covers(problem, fields) {
  try {
    read(problem, fields);
    return true;
  } catch (error) {
    if (error instanceof QuestionError) return false;
    throw error;
  }
}
