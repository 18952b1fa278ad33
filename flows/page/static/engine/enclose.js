// The bracket of epsilon or delta of a run: a rough pass, finer passes, and closed forms beyond the doubles.

import { UNIT, exp, exponent, power } from "./elementary.js";
import { gaussianDelta, gaussianEpsilon } from "./gaussian.js";
import { evaluated, probed, probedProfile, work } from "./evaluate.js";
import { gridsOf, pairsOf, planned, weightsOf } from "./importance.js";
import { deltaOf, epsilonOf } from "./profile.js";
import { inverse, program } from "./program.js";

/** Probability that may be moved to the ends, relative to delta, by all copies together. */
const TAIL = 5e-6;

/** Smallest delta that the engine computes; beyond it are closed forms. */
const LEAST_DELTA = 1e-100;

/** Cells of the rough pass in local standard deviations, and the most rough passes. */
const [ROUGH, MOST_PROBES] = [0.3, 6];

/** If a rough pass moves a larger mean beyond the doubles, finer ones do so too. */
const HOPELESS = 0.1;

/** Passes with falling widths of the cells, and pairs of atoms that a pass may take, about. */
const [MOST_PASSES, MOST_PAIRS] = [5, 1.5e8];

/** Widths that the passes aim at, in tolerances: the first pass has an estimate that is too large. */
const [FIRST_AIM, AIM] = [1.25, 0.75];

/** The result of a computation; null if a ratio exceeds the range of doubles. */
function within(computed) {
  try {
    return computed();
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

const copies = (parts) => parts.reduce((sum, { mean, times }) => sum + mean * times, 0);

/** An end of the bracket in one direction. */
const end = ({ asks, at }, x, remove, upper) => (asks === "epsilon" ? epsilonOf : deltaOf)(x, at, remove, upper);

const wide = ({ lower, upper }) => (upper === lower ? 0 : upper / lower - 1);

/** Bracket of the Gaussian mechanism with the distance mu, which errs by a few units. */
function gaussian({ asks, at }, mu) {
  const bound = asks === "epsilon" ? gaussianEpsilon : gaussianDelta;
  const [less, more] = [bound(mu * (1 - 16 * UNIT), at), bound(mu * (1 + 16 * UNIT), at)];
  return { lower: less.lower, upper: more.upper };
}

/** Distance of the means if the steps of the example were public. */
const unamplified = (parts) =>
  Math.sqrt(parts.reduce((sum, each) => sum + inverse(each) * inverse(each) * each.times, 0)) * (1 + 512 * UNIT);

/** A lower end from the sum of the outputs of a part whose rate is 1: a mean of t steps has the distance s / sqrt(t). */
function blind(question) {
  const bounds = question.parts.map((each) => {
    if (each.rate < 1) return 0;
    return gaussian(question, inverse(each) * Math.sqrt(each.times / each.mean) * (1 - 16 * UNIT)).lower;
  });
  return Math.max(...bounds);
}

/**
 * A lower end of a run whose ratio exceeds the doubles: that of half of the repetitions, or of a quarter, and so
 * on, because leaving out the outputs of steps is post-processing.
 */
function below(question, tolerance, onStep) {
  const divided = (by) => ({
    ...question,
    parts: question.parts.map((each) => ({ ...each, times: Math.floor(each.times / by) })).filter(({ times }) => times > 0),
  });
  const most = exponent(Math.max(...question.parts.map(({ times }) => times)));
  const fits = (halvings) => {
    const less = divided(power(halvings));
    return within(() => rough(less, program(less.parts))) !== null;
  };
  let [low, high] = [0, most]; // a rough pass fails at the one
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (fits(middle)) high = middle;
    else low = middle;
  }
  for (let halvings = high; halvings > 0 && halvings <= most; halvings += 1) {
    const found = passes(divided(power(halvings)), Math.max(tolerance, 0.05), onStep);
    if (found.lower > 0) return found.lower;
  }
  return 0;
}

/**
 * Upper distributions of a rough pass, and upper ends for the sides.
 *
 * The tails depend on delta. If it is the answer, a first pass finds its size.
 */
function rough(question, nodes) {
  const { asks, at, sides, parts } = question;
  let scale = asks === "epsilon" ? at : 1e-12;
  for (let pass = 1; ; pass += 1) {
    const tail = (TAIL * Math.max(scale, LEAST_DELTA)) / copies(parts);
    const limits = { tail, share: TAIL, most: asks === "epsilon" && sides[0] ? at : 0.5 };
    const found = probed(nodes, { ...limits, most: HOPELESS }, ROUGH);
    const whole = { ...probedProfile(nodes, found), infinity: 0 };
    const ends = sides.map((remove) => end(question, whole, remove, true));
    const upper = Math.max(...ends);
    if (asks === "epsilon" || upper >= 1e-2 * scale || scale <= LEAST_DELTA || pass === MOST_PROBES) {
      return { found, limits, whole, ends };
    }
    scale = Math.max(Math.min(upper * 1e-2, scale * 1e-2), LEAST_DELTA);
  }
}

/** The weights of the answer, relative to its size, at the thresholds of both sides; a side that is far below counts less. */
function thresholds({ asks, at, sides }, { whole, ends }, tolerance) {
  const most = Math.max(...ends);
  return sides.map((remove, k) => {
    const epsilon = asks === "epsilon" ? ends[k] : at;
    const kappa = Math.min(exp(epsilon), 1e280);
    const gap = Math.max(0, (most - ends[k]) / most - 0.05) || 0;
    let weight = tolerance / (tolerance + gap);
    if (asks === "epsilon") {
      const h = 0.02 * epsilon;
      const fall = deltaOf(whole, epsilon - h, remove, true) - deltaOf(whole, epsilon + h, remove, true);
      weight *= fall > 0 ? 0.04 / fall : 0;
    } else weight *= most > 0 ? 1 / most : 0;
    return remove ? { at: kappa, weight: Math.min(weight * kappa, 1e300) } : { at: 1 / kappa, weight };
  });
}

/** Brackets with falling widths of cells, until one is narrow enough. */
function passes(question, tolerance, onStep) {
  const { sides, parts } = question;
  const nodes = program(parts);
  let [best, pass, narrowed] = [{ lower: 0, upper: Infinity }, 0, Math.sqrt(FIRST_AIM * tolerance)];
  const first = within(() => rough(question, nodes));
  if (first === null) return { ...best, pass, combinations: work(nodes), beyond: true };
  const { found, limits } = first;
  const plans = planned(nodes, found, weightsOf(nodes, found, thresholds(question, first, tolerance)));
  while (pass < MOST_PASSES) {
    pass += 1;
    let grids = gridsOf(nodes, plans, narrowed, limits.tail);
    let pairs = pairsOf(nodes, grids);
    const full = pairs > MOST_PAIRS;
    while (pairs > MOST_PAIRS && narrowed < 1) {
      narrowed *= Math.min(Math.max(1.05, 0.95 * Math.sqrt(pairs / MOST_PAIRS)), 3);
      grids = gridsOf(nodes, plans, narrowed, limits.tail);
      pairs = pairsOf(nodes, grids);
    }
    let done = 0;
    const onPairs = (more) => onStep({ pass, done: (done += more), of: pairs });
    const both = within(() => evaluated(nodes, grids, limits, onPairs));
    if (both === null) return { ...best, pass, combinations: work(nodes), beyond: true };
    const bracket = {
      upper: Math.max(...sides.map((remove) => end(question, both.upper, remove, true))),
      lower: Math.max(...sides.map((remove) => end(question, both.lower, remove, false))),
    };
    best = { lower: Math.max(best.lower, bracket.lower), upper: Math.min(best.upper, bracket.upper) };
    if (wide(best) <= tolerance || full || (pass > 1 && !(best.upper < Infinity))) break;
    const missed = wide(bracket);
    narrowed *= Number.isFinite(missed) ? Math.min(Math.max(Math.sqrt((AIM * tolerance) / missed), 0.1), 0.85) : 0.3;
  }
  return { ...best, pass, combinations: work(nodes), beyond: !(best.upper < Infinity) };
}

/**
 * A proved bracket of a question, in double precision with all errors on the safe side.
 *
 * @param question From `read`.
 * @param tolerance Requested relative width, upper / lower - 1.
 * @param onStep Called with `{pass, done, of}` after every combination of two distributions.
 * @returns {{lower: number, upper: number, detail: string}}
 */
export function enclose(question, tolerance = 0.01, onStep = () => {}) {
  const { parts, asks } = question;
  const largest = asks === "delta" ? 1 : Infinity;
  const mu = unamplified(parts);
  if (parts.every(({ mean, rate, times }) => mean === 1 && rate === 1 && times === 1)) {
    const outer = gaussian(question, mu);
    const inner = gaussian(question, mu * (1 - 1024 * UNIT));
    return { lower: inner.lower, upper: outer.upper, detail: "closed form of the Gaussian mechanism" };
  }
  const found = passes(question, tolerance, onStep);
  const note = `by cells of the likelihood ratio (docs/certified.md): ${found.combinations} combinations, ${found.pass} ${found.pass === 1 ? "pass" : "passes"}`;
  let { lower, upper } = found;
  if (!found.beyond && wide(found) <= tolerance) return { lower, upper: Math.min(upper, largest), detail: note };
  upper = Math.min(upper, largest, gaussian(question, mu).upper);
  lower = Math.max(lower, blind(question));
  if (!found.beyond) return { lower, upper, detail: `${note}; the tolerance was not reached` };
  lower = Math.max(lower, below(question, tolerance, onStep));
  const detail = "the likelihood ratio exceeds the range of doubles: the upper end is that of no amplification, the lower end that of fewer steps";
  return { lower, upper, detail };
}
