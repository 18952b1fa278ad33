// Both ends of the ratio of an epoch, as distributions that compose like all others: docs/shuffling.md.

import { UNIT } from "../elementary.js";
import { fromChords } from "./chords.js";
import { opposed } from "./opposed.js";
import { picture, scales } from "./scales.js";
import { profileAbove } from "./shuffled.js";
import { linear } from "./sums.js";

/** The share of the tolerance for the chords between thresholds, their largest distance in local scales, the most of them by weight, and in a
 * direction. */
const [CHORDS, WIDEST, MOST_CHORDS, MOST] = [0.4, 1.2, 60, 1000];

/** The same for a single step, whose profile is an integral. */
const [STEP_CHORDS, MOST_STEP_CHORDS] = [0.1, 500];

/** Cells of the lower distribution in local scales. */
const FINENESS = 0.07;

/** Means of the example and of its neighbour, if all other gradients are opposed to the example; and those of in-place. */
const MEANS = { "zero-out": [2, 1], "replace-one": [2, 0], "in-place": [1, -1] };

/** A distribution with the local standard deviations at its values. */
const widened = (found) => ({ ...found, widths: found.values.map(scales(picture(found.values, found.masses), 1e-12)) });

/**
 * The lower distribution of an epoch.
 *
 * @param epoch `s`, `steps`, `relation`, and `used`, the share of the examples that an epoch uses.
 * @param tail Probability that an epoch may lose.
 */
export function epochBelow({ s, steps, relation, used }, tail) {
  const shifts = MEANS[relation].map((mean) => mean * s * (1 - 8 * UNIT));
  return widened(opposed(shifts, steps, Math.max(0, used - 4 * UNIT), { tail: tail / steps, fineness: FINENESS }));
}

/** The distances of the thresholds from the weights of the answer, as for other cells, or else from the lower distribution. */
function distances({ values, masses }, weighted, error, most) {
  const widthAt = scales(picture(values, masses), 1e-12);
  if (!weighted) return (x) => 0.25 * widthAt(x);
  const { points, area } = weighted;
  const share = Math.max(Math.sqrt((8 * error) / area), area / most); // n cells widen by area^3 / (8 n^2)
  const density = points.map((point) => point.density);
  const widest = (x) => WIDEST * widthAt(x);
  const placed = linear(points.map(({ x }) => x), density);
  return (x) => Math.min((x * share) / placed(x), widest(x));
}

/**
 * The upper distribution of an epoch.
 *
 * @param epoch As in `epochBelow`.
 * @param tail Mean that an epoch may move to infinity.
 * @param weighted From `pointsOf` for the lower distribution, if it is known.
 * @param tolerance Requested relative width of the answer.
 */
export function epochAbove(epoch, tail, weighted, tolerance) {
  const rounded = { ...epoch, s: epoch.s * (1 + 8 * UNIT), used: Math.min(1, epoch.used + 4 * UNIT) };
  const lower = epochBelow(epoch, tail);
  let bound = profileAbove(rounded, true, 0.1 * tail);
  const [over, under] = [[{ x: 1, y: bound(1) }], []];
  const [share, most] = epoch.steps === 1 ? [STEP_CHORDS, MOST_STEP_CHORDS] : [CHORDS, MOST_CHORDS];
  let widthAt = distances(lower, weighted, share * tolerance, most);
  while (over[over.length - 1].y > tail && over.length < MOST) {
    const { x } = over[over.length - 1];
    const next = x + widthAt(x);
    over.push({ x: next, y: bound(next) });
  }
  if (epoch.relation !== "zero-out") {
    // both directions have the same profile
    for (const { x, y } of over) under.push({ x: x === 1 ? 1 : (1 / x) * (1 - 4 * UNIT), y: (y / x) * (1 + 4 * UNIT) });
  } else {
    bound = profileAbove(rounded, false, 0.1 * tail);
    under.push({ x: 1, y: bound(1) });
    widthAt = distances(lower, weighted, share * tolerance, most);
    while (under[under.length - 1].y > tail * under[under.length - 1].x && under.length < MOST) {
      const { x } = under[under.length - 1];
      const next = Math.max(x - widthAt(x), x / 2);
      under.push({ x: next, y: next * bound((1 / next) * (1 - 4 * UNIT)) * (1 + 4 * UNIT) });
    }
  }
  return widened(fromChords(over, under));
}
