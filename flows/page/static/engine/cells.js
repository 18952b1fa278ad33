// The cells of a rough pass: of the width of the local standard deviation, times a fineness. Any choice is valid.
//
// Every upper distribution carries the local standard deviation at its values. For a sum or a product it is the
// root of the sum of squares of both factors, averaged over the pairs near a value. For a lognormal ratio it is
// proportional to the value; so cells grow with the value in a heavy tail, and are equal in a Gaussian one.

import { UNIT, cubeRoot, length } from "./elementary.js";
import { LARGEST, SMALLEST } from "./distribution.js";

/** Groups of a rough distribution: about this many equal parts of the atoms, and at most this share of the mass. */
const [PARTS, SHARE] = [32, 1 / 24];

/** Groups of a smaller mass do not count for the choice of cells. */
const NEGLIGIBLE = 1e-150;

/** Pairs within this many local standard deviations are averaged. */
const NEAR = 0.3;

/** Cells are wider, up to this factor, if less than this share of delta lies beyond them. */
const [WIDEST, RARE] = [8, 0.03];

/** The largest number of cells. */
const MOST_CELLS = 6000;

/** Groups of neighbouring atoms: mean, mass, width, smallest and largest value. The atom at 0 is left out. */
function coarse({ values, masses, widths }) {
  const size = Math.max(1, (values.length - 1) / PARTS);
  const groups = { x: [], p: [], w: [], low: [], high: [] };
  let first = values[0] === 0 ? 1 : 0;
  let [mass, moment, width] = [0, 0, 0];
  for (let k = first; k < values.length; k += 1) {
    mass += masses[k];
    moment += masses[k] * values[k];
    width += masses[k] * widths[k];
    if (k + 1 - first >= size || mass > SHARE || k + 1 === values.length) {
      if (moment > 0 && mass > NEGLIGIBLE) {
        groups.x.push(moment / mass);
        groups.p.push(mass);
        groups.w.push(width / mass);
        groups.low.push(values[first]);
        groups.high.push(values[k]);
      }
      [mass, moment, width, first] = [0, 0, 0, k + 1];
    }
  }
  return groups;
}

/** All pairs of two coarsened distributions, in rising order of their means. */
function roughly(a, b, times) {
  const one = coarse(a);
  const other = a === b ? one : coarse(b);
  const [m, n] = [one.x.length, other.x.length];
  const found = [];
  for (let i = 0; i < m; i += 1) {
    for (let j = a === b ? i : 0; j < n; j += 1) {
      const [x, y] = [one.x[i], other.x[j]];
      found.push({
        x: times ? x * y : x + y,
        p: one.p[i] * other.p[j] * (a === b && i !== j ? 2 : 1),
        w: times ? length(one.w[i] * y, other.w[j] * x) : length(one.w[i], other.w[j]),
        low: times ? one.low[i] * other.low[j] : one.low[i] + other.low[j],
        high: times ? one.high[i] * other.high[j] : one.high[i] + other.high[j],
      });
    }
  }
  return found.sort((k, l) => k.x - l.x);
}

/**
 * Points with their local standard deviations, from pairs in rising order. If less than `rare` of the probability
 * lies beyond a point, under Q below it and under P above it, its cells are wider: their error has a small weight.
 */
function smoothed(pairs, rare) {
  const points = [];
  let [mass, moment, width, start] = [0, 0, 0, pairs[0].x];
  pairs.forEach(({ x, p, w }, k) => {
    mass += p;
    moment += p * x;
    width += p * w;
    if (k + 1 < pairs.length && pairs[k + 1].x - start < (NEAR * width) / mass) return;
    points.push({ x: moment / mass, w: width / mass, wider: 1 });
    if (k + 1 < pairs.length) [mass, moment, width, start] = [0, 0, 0, pairs[k + 1].x];
  });
  const widen = (point, beyond) => (point.wider = Math.min(Math.max(cubeRoot(rare / beyond), point.wider), WIDEST));
  let beyond = 0;
  for (let k = 0, i = 0; k < points.length && beyond < rare; k += 1) {
    for (; i < pairs.length && pairs[i].x <= points[k].x; i += 1) beyond += pairs[i].p;
    widen(points[k], beyond);
  }
  beyond = 0;
  for (let k = points.length - 1, i = pairs.length - 1; k >= 0 && beyond < rare; k -= 1) {
    for (; i >= 0 && pairs[i].x >= points[k].x; i -= 1) beyond += pairs[i].p * pairs[i].x;
    widen(points[k], beyond);
  }
  return points;
}

/**
 * The edges of the cells for a sum or a product, and the local standard deviations there.
 *
 * @param a The first upper distribution.
 * @param b The second one.
 * @param times Whether values are multiplied.
 * @param res Its `fineness` is the width of a cell in local standard deviations, its `tail` the probability under
 *   Q below the first edge, and under P above the last one, at most; and `share` is the ratio of tail to delta.
 */
export function edgesOf(a, b, times, { fineness, tail, share }) {
  const pairs = roughly(a, b, times);
  let [first, last] = [0, pairs.length - 1];
  let sum = pairs[0].p;
  while (first < last - 1 && sum < tail) sum += pairs[(first += 1)].p;
  sum = pairs[last].p * pairs[last].high;
  while (last > first + 1 && sum < tail) sum += pairs[(last -= 1)].p * pairs[last].high;
  const low = Math.max(pairs.slice(first).reduce((least, pair) => Math.min(least, pair.low), Infinity), SMALLEST);
  const high = Math.min(pairs.slice(0, last + 1).reduce((most, pair) => Math.max(most, pair.high), 0), LARGEST);
  return walk(smoothed(pairs, (RARE * tail) / share), low, high, fineness);
}

function walk(points, low, high, fineness) {
  const edges = [0, low];
  const widths = [points[0].w, points[0].w];
  let [at, k] = [low, 0];
  while (at < high) {
    if (edges.length > MOST_CELLS) return walk(points, low, high, 1.5 * fineness);
    while (k < points.length - 2 && points[k + 1].x <= at) k += 1;
    const [one, other] = [points[k], points[Math.min(k + 1, points.length - 1)]];
    const share = one.x < other.x ? Math.min(Math.max((at - one.x) / (other.x - one.x), 0), 1) : 0;
    // beyond the last point, widths grow with the values
    const width = (one.w + share * (other.w - one.w)) * Math.max(1, at / points[points.length - 1].x);
    const wider = one.wider + share * (other.wider - one.wider);
    at += Math.min(Math.max(fineness * width * wider, at * 16 * UNIT), at);
    edges.push(at);
    widths.push(width);
  }
  return { edges: Float64Array.from(edges), widths: Float64Array.from(widths) };
}

/** Values with at most this probability under Q below, and under P above. */
function range({ values, masses }, tail) {
  let [first, last] = [0, values.length - 1];
  let sum = masses[0];
  while (first < last && (sum <= tail || values[first] === 0)) sum += masses[(first += 1)];
  sum = masses[last] * values[last];
  while (last > first && sum <= tail) sum += masses[(last -= 1)] * values[last];
  return [values[first], values[last]];
}

/**
 * Edges that also cover the sum or the product of two upper distributions, except for their tails.
 *
 * @param edges Those that were planned with a rough pass, in which the tails may be shorter.
 */
export function extended(edges, a, b, times, tail) {
  const [one, other] = [range(a, tail), a === b ? range(a, tail) : range(b, tail)];
  const ends = one.map((x, k) => Math.min(Math.max(times ? x * other[k] : x + other[k], SMALLEST), LARGEST));
  const n = edges.length;
  if (ends[0] >= edges[1] && ends[1] <= edges[n - 1]) return edges;
  const below = beyond(edges[1], edges[2] / edges[1], (at, ratio) => (at > ends[0] ? at / ratio : null));
  const above = beyond(edges[n - 1], edges[n - 1] / edges[n - 2], (at, ratio) => (at < ends[1] ? at * ratio : null));
  return Float64Array.from([0, ...below.reverse(), ...edges.subarray(1), ...above]);
}

/** Edges in steps whose ratios grow, until `next` is null. */
function beyond(from, ratio, next) {
  const found = [];
  let growth = Math.min(ratio - 1, 1);
  for (let at = next(from, 1 + growth); at !== null; at = next(at, 1 + growth)) {
    found.push(at);
    growth = Math.min(1.5 * growth, 1);
  }
  return found;
}
