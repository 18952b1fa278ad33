// The bracket of epsilon or delta of a run: a rough pass, finer passes, and closed forms beyond the doubles.

import { epochAbove, epochBelow } from "./epochs/epoch.js";
import { UNIT, exp, exponent, power } from "./elementary.js";
import { gaussianDelta, gaussianEpsilon, gaussianTpr } from "./gaussian.js";
import { evaluated, probed, probedProfile, work } from "./evaluate.js";
import { gridsOf, pairsOf, planned, pointsOf, weightsOf } from "./importance.js";
import { deltaOf, epsilonOf, kappaOf, tprOf } from "./profile.js";
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

const OF = { epsilon: [epsilonOf, gaussianEpsilon], delta: [deltaOf, gaussianDelta], tpr: [tprOf, gaussianTpr] };

/** The ends of the brackets in one direction. */
const endsOf = ({ asks, at }, x, remove, upper) => at.map((each) => OF[asks][0](x, each, remove, upper));

const larger = (one, other) => one.map((value, k) => Math.max(value, other[k]));
const smaller = (one, other) => one.map((value, k) => Math.min(value, other[k]));

/** The widest bracket. */
const wide = ({ lower, upper }) => Math.max(...lower.map((low, k) => (upper[k] === low ? 0 : upper[k] / low - 1)));

/** Brackets of the Gaussian mechanism with the distance mu, which errs by a few units. */
function gaussian({ asks, at }, mu) {
  const bound = (by, end) => at.map((each) => OF[asks][1](mu * by, each)[end]);
  return { lower: bound(1 - 16 * UNIT, "lower"), upper: bound(1 + 16 * UNIT, "upper") };
}

/** Distance of the means if the steps of the example were public. */
const unamplified = (parts) =>
  Math.sqrt(parts.reduce((sum, each) => sum + inverse(each) * inverse(each) * each.times, 0)) * (1 + 512 * UNIT);

/** A lower end from the sum of the outputs of a part whose rate is 1: a mean of t steps has the distance s / sqrt(t). */
function blind(question) {
  const seen = question.parts.map((each) => (each.rate < 1 ? 0 : inverse(each) * Math.sqrt(each.times / each.mean)));
  const most = Math.max(...seen) * (1 - 16 * UNIT);
  return most > 0 ? gaussian(question, most).lower : question.at.map(() => 0);
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
    if (found.lower[0] > 0) return found.lower;
  }
  return question.at.map(() => 0);
}

/**
 * Upper distributions of a rough pass, and upper ends for the sides.
 *
 * The tails depend on delta. If it is the answer, a first pass finds its size.
 */
function rough(question, nodes) {
  const { asks, at, sides, parts } = question;
  let scale = asks === "delta" ? (question.size ?? 1e-12) : Math.min(...at);
  for (let pass = 1; ; pass += 1) {
    const tail = (TAIL * Math.max(scale, LEAST_DELTA)) / copies(parts);
    const limits = { tail, share: TAIL, most: asks === "epsilon" && sides[0] ? Math.max(...at) : 0.5 };
    const found = probed(nodes, { ...limits, most: HOPELESS }, ROUGH);
    const whole = { ...probedProfile(nodes, found), infinity: 0 };
    const ends = sides.map((remove) => endsOf(question, whole, remove, true));
    const upper = Math.min(...ends.reduce(larger));
    if (asks !== "delta" || upper >= 1e-2 * scale || scale <= LEAST_DELTA || pass === MOST_PROBES) {
      return { found, limits, whole, ends };
    }
    scale = Math.max(Math.min(upper * 1e-2, scale * 1e-2), LEAST_DELTA);
  }
}

/** The weights of the answers, relative to their sizes, at the thresholds of both sides; a side that is far below counts less. */
function thresholds({ asks, at, sides }, { whole, ends }, tolerance) {
  const most = ends.reduce(larger);
  const one = (remove, k, i) => {
    const found = ends[k][i];
    const gap = Math.max(0, (most[i] - found) / most[i] - 0.05) || 0;
    let weight = tolerance / (tolerance + gap) / at.length;
    if (asks === "epsilon") {
      const h = 0.02 * found;
      const fall = deltaOf(whole, found - h, remove, true) - deltaOf(whole, found + h, remove, true);
      weight *= fall > 0 ? 0.04 / fall : 0;
    } else weight *= most[i] > 0 ? 1 / most[i] : 0;
    const kappa = asks === "tpr" ? kappaOf(whole, at[i], remove) : Math.min(exp(asks === "epsilon" ? found : at[i]), 1e280);
    return remove ? { at: kappa, weight: Math.min(weight * kappa, 1e300) } : { at: 1 / kappa, weight };
  };
  return sides.flatMap((remove, k) => at.map((_, i) => one(remove, k, i)));
}

const finite = ({ upper }) => upper.every((end) => end < Infinity);

/** Brackets with falling widths of cells, until one is narrow enough. */
function passes(question, tolerance, onStep) {
  const { sides, parts } = question;
  const nodes = program(parts);
  const trivial = { lower: question.at.map(() => 0), upper: question.at.map(() => Infinity) };
  let [best, pass, narrowed] = [trivial, 0, Math.sqrt(FIRST_AIM * tolerance)];
  const first = within(() => rough(question, nodes));
  if (first === null) return { ...best, pass, combinations: work(nodes), beyond: true };
  const { found, limits } = first;
  const weights = weightsOf(nodes, found, thresholds(question, first, tolerance));
  const plans = planned(nodes, found, weights);
  const given = nodes.flatMap(({ kind }, k) => (kind === "given" ? [pointsOf(found[k], weights[k])] : []));
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
    const ends = (x, upper) => sides.map((remove) => endsOf(question, x, remove, upper)).reduce(larger);
    const bracket = { lower: ends(both.lower, false), upper: ends(both.upper, true) };
    best = { lower: larger(best.lower, bracket.lower), upper: smaller(best.upper, bracket.upper) };
    if (wide(best) <= tolerance || full || (pass > 1 && !finite(best))) break;
    const missed = wide(bracket);
    narrowed *= Number.isFinite(missed) ? Math.min(Math.max(Math.sqrt((AIM * tolerance) / missed), 0.1), 0.85) : 0.3;
  }
  return { ...best, pass, combinations: work(nodes), beyond: !finite(best), given };
}

/** A builder that keeps its distributions. */
function kept(build) {
  const found = new Map();
  return (tail) => found.get(tail) ?? found.set(tail, build(tail)).get(tail);
}

/** Ends of a run with epochs whose two ends are different distributions. */
function apart(question, tolerance, onStep) {
  const { parts, asks, at } = question;
  const mu = unamplified(parts);
  const largest = at.map(() => (asks === "epsilon" ? Infinity : 1));
  let upper = smaller(gaussian(question, mu).upper, largest);
  const given = (build) => {
    let count = -1;
    const one = (part) => {
      const number = (count += 1);
      return { ...part, given: kept((tail) => build(part.epoch, tail, number)) };
    };
    return parts.map((part) => (part.epoch ? one(part) : part));
  };
  const below = passes({ ...question, parts: given(epochBelow) }, tolerance / 2, onStep);
  const lower = larger(below.lower, blind(question));
  if (!parts.every(({ epoch }) => !epoch || epoch.bounded)) {
    return { lower, upper, detail: "the upper end is that of no amplification, the lower end that of opposed gradients (docs/shuffling.md)" };
  }
  const size = asks === "delta" && lower[0] > 0 ? lower[0] : undefined;
  const build = (epoch, tail, number) => epochAbove(epoch, tail, below.given?.[number], tolerance);
  const above = passes({ ...question, parts: given(build), size }, tolerance / 2, onStep);
  upper = smaller(upper, above.upper);
  return { lower, upper, detail: "by sums of steps for each epoch (docs/shuffling.md)" };
}

/**
 * Proved brackets of a question, in double precision with all errors on the safe side.
 *
 * @param question From `read`.
 * @param tolerance Requested relative width, upper / lower - 1, of each.
 * @param onStep Called with `{pass, done, of}` after every combination of two distributions.
 * @returns {{lower: number[], upper: number[], detail: string}}
 */
export function enclose(question, tolerance = 0.01, onStep = () => {}) {
  const { parts, asks, at } = question;
  if (parts.some(({ epoch }) => epoch)) return apart(question, tolerance, onStep);
  const largest = at.map(() => (asks === "epsilon" ? Infinity : 1));
  const mu = unamplified(parts);
  if (parts.every(({ mean, rate, times }) => mean === 1 && rate === 1 && times === 1)) {
    const outer = gaussian(question, mu);
    const inner = gaussian(question, mu * (1 - 1024 * UNIT));
    return { lower: inner.lower, upper: outer.upper, detail: "closed form of the Gaussian mechanism" };
  }
  const found = passes(question, tolerance, onStep);
  const note = `by cells of the likelihood ratio (docs/certified.md): ${found.combinations} combinations, ${found.pass} ${found.pass === 1 ? "pass" : "passes"}`;
  let { lower, upper } = found;
  if (!found.beyond && wide(found) <= tolerance) return { lower, upper: smaller(upper, largest), detail: note };
  upper = smaller(smaller(upper, largest), gaussian(question, mu).upper);
  lower = larger(lower, blind(question));
  if (!found.beyond) return { lower, upper, detail: `${note}; the tolerance was not reached` };
  lower = larger(lower, below(question, tolerance, onStep));
  const detail = "the likelihood ratio exceeds the range of doubles: the upper end is that of no amplification, the lower end that of fewer steps";
  return { lower, upper, detail };
}
