// The smallest noise multiplier for an epsilon: both ends are proved, the upper one is safe to use.

import { enclose } from "./enclose.js";
import { QuestionError, read } from "./questions.js";

/** Ends of the search. */
const [LEAST, MOST] = [1e-3, 1e6];

/** Largest number of brackets of epsilon. */
const MOST_LOOKS = 40;

/**
 * A bracket of the smallest sigma whose epsilon is at most the target.
 *
 * More noise is post-processing, so epsilon falls with sigma: a sigma whose upper end of epsilon is at most the
 * target suffices, and a sigma whose lower end is above the target does not.
 *
 * @param problem Its stored name, which ends in -epsilon.
 * @param fields Its fields; sigma is ignored.
 * @param target Largest allowed epsilon, > 0.
 * @param tolerance Requested relative distance of the ends.
 * @param onStep As in `enclose`.
 * @returns {{lower: number, upper: number, detail: string}} `upper` is Infinity if nothing is proved to suffice.
 */
export function smallestNoise(problem, fields, target, tolerance = 0.01, onStep = () => {}) {
  if (!problem.endsWith("-epsilon") || problem === "run-epsilon") {
    throw new QuestionError(`Expected a problem about epsilon with one sigma, got ${problem}.`);
  }
  if (!(target > 0 && target <= 10000)) throw new QuestionError(`Expected a target epsilon in (0, 10000], got ${target}.`);
  let [lower, upper, looks] = [0, Infinity, 0];
  const look = (sigma, width) => {
    looks += 1;
    const { lower: [low], upper: [high] } = enclose(read(problem, { ...fields, sigma }), width, onStep);
    const found = { lower: low, upper: high };
    if (found.upper <= target) upper = Math.min(upper, sigma);
    else if (found.lower > target) lower = Math.max(lower, sigma);
    return found;
  };
  // epsilon is roughly a power of sigma between two brackets; start near the noise of one step
  let sigma = 1;
  while (upper === Infinity || lower === 0) {
    const found = look(sigma, 0.2);
    if (found.upper > target && found.lower <= target) look(sigma, 0.25 * tolerance);
    if (sigma === (upper === Infinity ? MOST : LEAST) || looks > MOST_LOOKS) break;
    if (upper < Infinity && lower > 0) break;
    sigma = upper === Infinity ? Math.min(2 * sigma, MOST) : Math.max(Math.min(sigma, upper) / 2, LEAST);
  }
  while (upper < Infinity && lower > 0 && upper > lower * (1 + tolerance) && looks < MOST_LOOKS) {
    const middle = Math.sqrt(lower * upper);
    const close = upper / lower - 1;
    const width = Math.min(0.2, Math.max(0.25 * tolerance, 0.3 * close));
    const [before, after] = [lower, upper];
    look(middle, width);
    if (lower === before && upper === after) {
      look(middle, 0.2 * tolerance);
      // the root lies within the bracket of epsilon at the middle: its neighbours are decided instead
      if (lower === before && upper === after) {
        look(middle * (1 + 0.45 * tolerance), 0.2 * tolerance);
        look(middle * (1 - 0.45 * tolerance), 0.2 * tolerance);
        if (lower === before && upper === after) break;
      }
    }
  }
  return { lower, upper, detail: `${looks} brackets of epsilon` };
}
