// An upper distribution from upper bounds of both profiles at some thresholds.
//
// The mean of (X - x)+ is convex in x, so the chords between upper bounds are above it, and belong to the distribution whose
// masses are the changes of their slopes. It dominates. A mass gets a few units of both slopes more than computed, so that none
// is below the exact change.

import { UNIT } from "../elementary.js";
import { LEAST_MASS, LEAST_MEAN, distribution } from "../distribution.js";

/** Slopes differ by at least this share. */
const CLEAR = 1e-12;

/**
 * Points with rising x without those above a chord, or so close below it that slopes would not rise after rounding. The mean
 * is convex, so leaving out points gives an upper bound, too.
 */
function hull(points) {
  const found = [];
  for (const point of points) {
    while (found.length > 1) {
      const [a, b] = found.slice(-2);
      const [one, other] = [(b.y - a.y) / (b.x - a.x), (point.y - b.y) / (point.x - b.x)];
      if (other - one > CLEAR * Math.max(Math.abs(one), Math.abs(other))) break;
      found.pop();
    }
    found.push(point);
  }
  return found;
}

const slopes = (points) => points.slice(1).map(({ x, y }, k) => (y - points[k].y) / (x - points[k].x));

/**
 * The distribution of the chords.
 *
 * @param over Points `{x, y}` from x = 1 upwards: y is at least the mean of (X - x)+.
 * @param under Points from x = 1 downwards: y is at least the mean of (x - X)+.
 */
export function fromChords(over, under) {
  const falling = (points) => {
    let least = Infinity;
    return points.map(({ x, y }) => ({ x, y: (least = Math.min(least, y)) }));
  };
  let right = hull(falling(over));
  let left = hull([{ x: 0, y: 0 }, ...falling(under).reverse()]);
  // both are the mean of (X - 1)+ at 1; the chord over 1 may be lower
  let middle = Math.min(right[0].y, left[left.length - 1].y);
  for (;;) {
    right = hull([{ x: 1, y: middle }, ...right.slice(1)]);
    left = hull([...left.slice(0, -1), { x: 1, y: middle }]);
    const [a, b] = [left[left.length - 2], right[1]];
    const [p, q] = [1 - a.x, b.x - 1];
    const chord = ((p * b.y + q * a.y + p * q) / (p + q)) * (1 - 32 * UNIT); // so that slopes at 1 rise, too: `massError`
    if (!(chord < middle)) break;
    middle = chord;
  }
  const [rises, falls] = [slopes(left), slopes(right).map((slope) => -slope)];
  const masses = [rises[0]];
  for (let k = 1; k < rises.length; k += 1) masses.push(Math.max(rises[k] - rises[k - 1], 0) + 16 * UNIT * rises[k]);
  const [rise, fall] = [rises[rises.length - 1], falls[0]];
  masses.push(Math.max(1 - rise - fall, 0) + 16 * UNIT);
  for (let k = 1; k < falls.length; k += 1) masses.push(Math.max(falls[k - 1] - falls[k], 0) + 16 * UNIT * falls[k - 1]);
  masses.push(falls[falls.length - 1] * (1 + 16 * UNIT));
  const values = Float64Array.from([...left.slice(0, -1), ...right].map(({ x }) => x));
  const infinity = right[right.length - 1].y + LEAST_MEAN;
  return distribution(values, Float64Array.from(masses, (mass) => mass * (1 + 8 * UNIT) + LEAST_MASS), infinity, 64 * UNIT, 0);
}
