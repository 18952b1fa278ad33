// Mean excesses of sums of independent numbers of any sign, from above.
//
// The mean of (sum - level)+ rises in each number and is convex, so moving mass upwards raises it, and so does a spread that
// keeps means. Cells of sums are spread to their ends; mass below the lowest node moves up to it, and of a sum beyond the
// highest node the excess is kept as a mean, since (a + b)+ <= a+ + b for b >= 0. All roundings go upwards, so nothing
// cancels.

import { UNIT } from "../elementary.js";

/** Added to the highest mass: more than all products that underflow. */
const LEAST = 1e-300;

/** A number from above: rising `values`, their `masses`, and `beyond`, the mean excess over the highest value. */
export const signed = (values, masses, beyond) => ({ values, masses, beyond });

const sum = (masses) => masses.reduce((total, mass) => total + mass, 0);

/** A number above the sum of two independent ones, on cells between rising edges. */
export function added(a, b, edges) {
  const same = a === b;
  const [x, p, y, q] = [a.values, a.masses, b.values, b.masses];
  const last = edges.length - 1;
  const found = new Float64Array(last + 1);
  const inverse = new Float64Array(last);
  for (let k = 0; k < last; k += 1) inverse[k] = (1 + 8 * UNIT) / (edges[k + 1] - edges[k]);
  let [excess, begin] = [0, 0];
  for (let i = 0; i < x.length; i += 1) {
    const xi = x[i];
    const pi = same ? 2 * p[i] : p[i];
    let j = same ? i : 0;
    let half = same; // the pair of an atom with itself counts once
    let k = begin;
    for (let first = true; j < y.length; first = false) {
      let s = xi + y[j];
      while (k < last && s >= edges[k + 1]) k += 1;
      if (first) begin = k;
      if (k === last) break;
      const lo = edges[k];
      const hi = edges[k + 1];
      const inv = inverse[k];
      let l = 0;
      let r = 0;
      while (s < hi) {
        const mass = half ? 0.5 * pi * q[j] : pi * q[j];
        half = false;
        const part = s > lo ? Math.min(mass, mass * ((s - lo) * inv)) : 0;
        r += part;
        l += mass - part;
        j += 1;
        if (j === y.length) break;
        s = xi + y[j];
      }
      found[k] += l;
      found[k + 1] += r;
    }
    for (; j < y.length; j += 1) {
      const mass = half ? 0.5 * pi * q[j] : pi * q[j];
      half = false;
      found[last] += mass;
      excess += mass * (xi + y[j] - edges[last]);
    }
  }
  const more = 1 + 4 * (x.length + y.length + 32) * UNIT;
  const highest = Math.max(x[x.length - 1] + y[y.length - 1] - edges[last], 0);
  found[last] += LEAST;
  const both = a.beyond * sum(q) + b.beyond * sum(p);
  // a sum errs by a unit of itself, and moving a node by more moves all values near it
  return signed(
    edges.map((edge) => edge + 8 * UNIT * Math.abs(edge)),
    found.map((mass) => mass * more),
    (both + excess + LEAST * highest) * more,
  );
}

/** An upper bound of the mean of (a + b - level)+, for a level >= 0 that may have 16 roundings upwards. */
export function meanExcess(a, b, level) {
  const [x, p, y, q] = [a.values, a.masses, b.values, b.masses];
  const n = y.length;
  const [above, excess] = [new Float64Array(n), new Float64Array(n)];
  for (let j = n - 1; j >= 0; j -= 1) {
    above[j] = q[j] + (j + 1 < n ? above[j + 1] : 0);
    excess[j] = j + 1 < n ? excess[j + 1] + above[j + 1] * (y[j + 1] - y[j]) : 0;
  }
  const reduced = level * (1 - 32 * UNIT);
  let total = a.beyond * above[0] + b.beyond * sum(p);
  for (let i = 0, j = n; i < x.length; i += 1) {
    const exact = reduced - x[i];
    const c = exact - 4 * UNIT * Math.abs(exact);
    while (j > 0 && y[j - 1] > c) j -= 1;
    if (j < n) total += p[i] * (excess[j] + above[j] * (y[j] - c));
  }
  return total * (1 + 8 * (x.length + n + 32) * UNIT) + LEAST;
}
