// Questions that the engine answers: the likelihood ratio of a run as a product of independent parts.

import { inverse } from "./program.js";

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
  dropped: { lower: 0, upper: 1, halfOpen: true },
  kept: { lower: 0, upper: 1, halfOpen: true },
  batch: integer(1, 1e9),
  false_positive_rate: { lower: 0, upper: 1, open: true },
};

/** Most false positive rates of a question. */
const MOST_RATES = 1000;

const DEFAULTS = { epochs: 1, participations: 1, group: 1, adjacency: "add-remove", dropped: 0, kept: 0, batch: 1 };

/** The fields of each scheme, besides epsilon or delta and the adjacency. */
const SCHEMES = {
  allocation: ["sigma", "steps", "participations", "epochs"],
  "sampled-allocation": ["sigma", "steps", "sampling_probability", "participations", "epochs"],
  "balls-in-bins": ["sigma", "steps", "participations", "epochs", "redraw"],
  poisson: ["sigma", "steps", "sampling_probability", "epochs"],
  "fixed-size": ["sigma", "steps", "sampling_probability", "epochs"],
  unamplified: ["sigma", "participations", "epochs"],
  none: ["sigma", "steps", "epochs"],
  shuffling: ["sigma", "steps", "epochs", "redraw", "dropped", "kept", "batch"],
};

const SIDES = {
  "add-remove": [true, false],
  "zero-out": [true, false],
  "replace-one": [true, false],
  remove: [true],
  "zero-out-remove": [true],
  add: [false],
  "zero-out-add": [false],
};

/** Schemes with a replaced example. */
const REPLACED = ["poisson", "fixed-size", "balls-in-bins", "unamplified", "shuffling", "run"];

/** Names of the problems that the engine answers. */
export const PROBLEMS = ["allocation", "sampled-allocation", "balls-in-bins", "poisson", "fixed-size", "unamplified", "shuffling", "run"].flatMap(
  (scheme) => [`${scheme}-epsilon`, `${scheme}-delta`],
);

function checked(name, fields) {
  const value = fields[name] ?? DEFAULTS[name];
  const { lower, upper, open, halfOpen, integer: counted } = FIELDS[name];
  const range = `${open ? "(" : "["}${lower}, ${upper}${open || halfOpen ? ")" : "]"}`;
  const inside = (open ? value > lower : value >= lower) && (open || halfOpen ? value < upper : value <= upper);
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
function part(scheme, relation, given) {
  const f = Object.fromEntries(SCHEMES[scheme].filter((name) => name !== "redraw").map((name) => [name, checked(name, given)]));
  const { sigma, steps = 1, epochs, participations: k = 1 } = f;
  if (given.group !== undefined && checked("group", given) > 1) {
    throw new QuestionError("Expected group=1: the engine of the page covers an owner of one example.");
  }
  const known = { sigma, scale: relation === "replace-one" ? 4 : 1, mean: 1, rate: 1, times: 1 };
  if (scheme === "shuffling") return shuffled(relation, given, f);
  if (scheme === "unamplified") return { ...known, scale: known.scale * k * epochs };
  if (scheme === "none") return { ...known, scale: known.scale * steps * epochs };
  const replaced = relation === "replace-one";
  if (scheme === "poisson" || scheme === "fixed-size") {
    const { sampling_probability: rate } = f;
    const fixed = scheme === "fixed-size";
    if (fixed && relation === "add-remove") known.scale = 4; // another example takes the place
    else if (rate < 1 && (fixed || replaced)) return single(f, fixed ? relation : "in-place");
    return rate === 1 ? { ...known, scale: known.scale * steps * epochs } : { ...known, rate, times: steps * epochs };
  }
  if (k > steps) throw new QuestionError(`Expected participations at most steps=${steps}, got ${k}.`);
  if (k > 1 && k < steps) {
    throw new QuestionError("The engine of the page covers one participation, or as many as steps, and no other number.");
  }
  if (scheme === "sampled-allocation") {
    const { sampling_probability: rate } = f;
    if (rate < 1) return { ...known, scale: k, mean: k === 1 ? steps : 1, rate, times: epochs };
  }
  if (k === steps) return { ...known, scale: known.scale * k * epochs };
  if (replaced) return inPlace(scheme, given.redraw, f);
  if (scheme !== "balls-in-bins") return { ...known, mean: steps, times: epochs };
  // kept bins: E epochs are one epoch at noise sigma / sqrt(E) (docs/training-runs.md)
  return once(given.redraw) ? { ...known, scale: epochs, mean: steps } : { ...known, mean: steps, times: epochs };
}

/** Whether the steps of an example are drawn once; @throws QuestionError */
function once(redraw, words = ["once", "each-epoch"]) {
  if (words.includes(redraw)) return redraw === "once";
  throw new QuestionError(`Expected redraw ${words.join(" or ")}, got ${redraw ?? "nothing"}.`);
}

/** Epochs with an upper and a lower distribution: `scale` is that of no amplification for each of the epochs. */
function epochs({ sigma, steps, epochs: count }, kept, relation, used, bounded) {
  const [scale, times] = kept ? [count, 1] : [1, count];
  const distance = relation === "zero-out" ? 1 : 4;
  const epoch = { s: inverse({ sigma, scale }), steps, relation, used, bounded };
  return { sigma, scale: distance * scale, mean: steps, rate: used, times, epoch };
}

/** Steps that use an example with a probability: epochs of one step. */
const single = ({ sigma, steps, epochs: count, sampling_probability: rate }, relation) =>
  epochs({ sigma, steps: 1, epochs: steps * count }, false, relation, rate, true);

/** One step of each epoch with an example that is replaced. */
function inPlace(scheme, redraw, f) {
  return epochs(f, scheme === "balls-in-bins" && once(redraw), "in-place", 1, true);
}

function shuffled(relation, given, f) {
  const { dropped, kept, sigma, steps } = f;
  if (dropped && kept) throw new QuestionError("Expected dropped or kept, got both: the last batch is left out or used.");
  const same = once(f.epochs === 1 && given.redraw === "one-epoch" ? "once" : given.redraw);
  const used = 1 - dropped - kept;
  if (relation === "add-remove") {
    if (dropped) return same ? { sigma, scale: 4 * f.epochs, mean: steps, rate: used, times: 1 } : { sigma, scale: 4, mean: steps, rate: used, times: f.epochs };
    throw new QuestionError("Expected adjacency zero-out or replace-one, or epochs that leave out examples (dropped): otherwise the number of batches would change.");
  }
  return epochs(f, same, relation, used, dropped > 0);
}

function ratesOf(rates) {
  if (!rates.length || rates.length > MOST_RATES) throw new QuestionError(`Expected 1 to ${MOST_RATES} rates, got ${rates.length}.`);
  return rates.map((rate) => checked("false_positive_rate", { false_positive_rate: rate }));
}

/** The parts of `poisson(sigma=1,sampling_probability=0.01,steps=100); none(sigma=2,steps=3)`. */
function phases(relation, text) {
  const calls = String(text ?? "").split(";").map((call) => call.trim()).filter(Boolean);
  if (!calls.length || calls.length > 100) throw new QuestionError(`Expected 1 to 100 phases, got ${calls.length}.`);
  return calls.map((call) => {
    const [, name, inside] = /^([a-z-]+)\s*\((.*)\)$/.exec(call) ?? [];
    if (!["allocation", "balls-in-bins", "poisson", "fixed-size", "none", "shuffling"].includes(name)) {
      const known = "allocation, balls-in-bins, poisson, fixed-size, shuffling and none";
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
    return part(name, relation, given);
  });
}

/** Parts without amplification joined to one: their squared distances add up if their noise is equal. */
function joined(parts) {
  const found = [];
  for (const each of parts) {
    const same = found.find((other) => other.sigma === each.sigma && other.mean === each.mean && other.rate === each.rate);
    if (each.epoch) found.push(each);
    else if (same && each.mean === 1 && each.rate === 1) same.scale += each.scale;
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
 * @param rates False positive rates, if the question is about membership tests of the run instead.
 * @returns `asks` (epsilon, delta, or tpr), `at` (a list of the other one, or of the rates), `sides` (true: remove), and `parts`.
 * @throws QuestionError
 */
export function read(problem, fields, rates) {
  if (!PROBLEMS.includes(problem)) throw new QuestionError(`The engine of the page does not know the problem ${problem}.`);
  const [, scheme, known] = /^(.*)-(epsilon|delta)$/.exec(problem);
  const asks = rates ? "tpr" : known;
  const at = rates ? ratesOf(rates) : [checked(asks === "epsilon" ? "delta" : "epsilon", fields)];
  const adjacency = fields.adjacency ?? DEFAULTS.adjacency;
  const sides = SIDES[adjacency];
  if (!sides || (adjacency === "replace-one" && !REPLACED.includes(scheme))) throw new QuestionError(`Expected an adjacency that the engine of the page covers, such as add-remove, got ${adjacency}.`);
  const alone = scheme === "shuffling" || adjacency.startsWith("zero-out") ? "zero-out" : "add-remove";
  const relation = adjacency === "replace-one" ? adjacency : alone;
  const parts = joined(scheme === "run" ? phases(relation, fields.phases) : [part(scheme, relation, fields)]);
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
