// The bracket of epsilon or delta of a run: a rough pass, finer passes, and closed forms beyond the doubles.

import { UNIT } from "./elementary.js";
import { LARGEST, lognormal, mixed, short } from "./distribution.js";
import { gaussianDelta, gaussianEpsilon } from "./gaussian.js";
import { combinations, meanOf, multiplied, powerOf } from "./powers.js";
import { deltaOf, epsilonOf } from "./profile.js";

/** Probability that may be moved to the ends, relative to delta, by all copies together. */
const TAIL = 5e-6;

/** Smallest delta that the engine computes; beyond it are closed forms. */
const LEAST_DELTA = 1e-100;

/** Passes with falling widths of the cells, and pairs of atoms that a pass may take, about. */
const [MOST_PASSES, MOST_PAIRS] = [9, 1.5e9];

/** Inverse noise multiplier at which the ratios that matter, near exp(s^2 / 2), exceed the range of doubles. */
const LARGEST_INVERSE = 26;

/** Coarsest and finest cells in local standard deviations. */
const [COARSEST, FINEST] = [0.6, 0.0005];

const inverse = ({ sigma, scale }) => Math.sqrt(scale) / sigma;

/** The number of combinations of one pass. */
const work = (parts) =>
  parts.reduce((sum, { mean, times }) => sum + combinations(mean) + combinations(times) + 1, -1);

const copies = (parts) => parts.reduce((sum, { mean, times }) => sum + mean * times, 0);

/** The result of a computation; null if a ratio exceeds the range of doubles. */
function within(computed) {
  try {
    return computed();
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

/** Both distributions of the ratio of a run. */
function ratio(parts, res) {
  let [found, count] = [null, 0];
  for (const each of parts) {
    const s = inverse(each);
    // s errs by 3 units; a little less noise for the upper end, and a little more for the lower one
    const [more, less] = [short(s * (1 + 8 * UNIT), true), short(s * (1 - 8 * UNIT), false)];
    if (more > LARGEST_INVERSE) throw new RangeError("The ratio of a step is too large.");
    let x = { upper: lognormal(more, res.fineness, res.tail, true), lower: lognormal(less, res.fineness, res.tail, false) };
    if (!(x.upper.values[x.upper.values.length - 1] <= LARGEST)) throw new RangeError("The ratio of a step is too large.");
    x = meanOf(x, each.mean, res);
    if (each.rate < 1) x = { upper: mixed(x.upper, each.rate), lower: mixed(x.lower, each.rate) };
    x = powerOf(x, each.times, { ...res, tail: res.tail * each.mean });
    count += each.mean * each.times;
    found = found === null ? x : multiplied(found, x, count, res);
  }
  return found;
}

/** A bracket from distributions, over both directions. */
function ends({ asks, at, sides }, { upper, lower }) {
  const bound = asks === "epsilon" ? epsilonOf : deltaOf;
  return {
    lower: Math.max(...sides.map((remove) => bound(lower, at, remove, false))),
    upper: Math.max(...sides.map((remove) => bound(upper, at, remove, true))),
  };
}

const wide = ({ lower, upper }) => (upper === lower ? 0 : upper / lower - 1);

/** Bracket of the Gaussian mechanism with the distance mu, which errs by a few units. */
function gaussian({ asks, at }, mu) {
  const bound = asks === "epsilon" ? gaussianEpsilon : gaussianDelta;
  const [less, more] = [bound(mu * (1 - 16 * UNIT), at), bound(mu * (1 + 16 * UNIT), at)];
  return { lower: less.lower, upper: more.upper };
}

/** Distance of the means if the steps of the example were public. */
const unamplified = (parts) =>
  Math.sqrt(parts.reduce((sum, each) => sum + inverse(each) ** 2 * each.times, 0)) * (1 + 512 * UNIT);

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
  let { parts } = question;
  while (parts.some(({ times }) => times > 1)) {
    parts = parts.filter(({ times }) => times > 1).map((each) => ({ ...each, times: Math.floor(each.times / 2) }));
    const found = passes({ ...question, parts }, Math.max(tolerance, 0.05), onStep);
    if (found.lower > 0) return found.lower;
  }
  return 0;
}

/** Brackets with falling widths of cells, until one is narrow enough. */
function passes(question, tolerance, onStep) {
  const { asks, at, parts } = question;
  const steps = work(parts);
  let fineness = Math.min(COARSEST, Math.sqrt((24 * tolerance) / (steps + 1)));
  let scale = asks === "epsilon" ? at : 1e-12;
  let [best, done, pairs] = [{ lower: 0, upper: Infinity }, 0, 0];
  for (let pass = 1; pass <= MOST_PASSES; pass += 1) {
    pairs = 0;
    const step = (more) => {
      pairs += more;
      onStep({ pass, done: (done += 1), of: pass * steps });
    };
    const tail = (TAIL * Math.max(scale, LEAST_DELTA)) / copies(parts);
    const most = asks === "epsilon" && question.sides[0] ? at : 0.5;
    const found = within(() => ratio(parts, { fineness, tail, share: TAIL, most, step }));
    if (found === null) return { ...best, pass, fineness, beyond: true };
    const bracket = ends(question, found);
    best = { lower: Math.max(best.lower, bracket.lower), upper: Math.min(best.upper, bracket.upper) };
    const missed = wide(bracket);
    if (wide(best) <= tolerance || (asks === "epsilon" && !(best.upper < Infinity) && pass > 2)) {
      return { ...best, pass, fineness, beyond: !(best.upper < Infinity) };
    }
    if (asks === "delta" && best.upper < 1e-2 * scale && scale > LEAST_DELTA) {
      scale = Math.max(best.lower > 0 ? best.lower : Math.min(best.upper * 1e-3, scale * scale), LEAST_DELTA);
      continue; // the same cells, further out
    }
    const factor = Number.isFinite(missed) ? Math.sqrt((0.8 * tolerance) / missed) : 0.3;
    fineness *= Math.min(Math.max(factor, 0.2), 0.8);
    if (fineness < FINEST || pairs / Math.max(factor, 0.2) ** 2 > MOST_PAIRS) return { ...best, pass, fineness, beyond: false };
  }
  return { ...best, pass: MOST_PASSES, fineness, beyond: false };
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
  const note = `${work(parts)} combinations, ${found.pass} ${found.pass === 1 ? "pass" : "passes"}, cells of ${found.fineness.toPrecision(2)} local standard deviations`;
  let { lower, upper } = found;
  if (!found.beyond && wide(found) <= tolerance) return { lower, upper: Math.min(upper, largest), detail: note };
  upper = Math.min(upper, largest, gaussian(question, mu).upper);
  lower = Math.max(lower, blind(question));
  if (!found.beyond) return { lower, upper, detail: `${note}; the tolerance was not reached` };
  lower = Math.max(lower, below(question, tolerance, onStep));
  const detail = "the likelihood ratio exceeds the range of doubles: the upper end is that of no amplification, the lower end that of fewer steps";
  return { lower, upper, detail };
}
