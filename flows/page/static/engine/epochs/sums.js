// Sums of many copies of a number by doubling, on cells that are chosen from the answer as in importance.js.
//
// A rough pass gives all partial sums. A spread of an atom of a partial sum by a small variance v raises the mean of
// (sum - level)+ by v / 2 times the density of the other terms at the level; going back through the sums gives it for every
// atom. Any cells are valid, so nothing of this is rounded with care.

import { cubeRoot } from "../elementary.js";
import { edgesBetween, picture, scales } from "./scales.js";
import { added, meanExcess } from "./signed.js";

/** Cells of the rough pass in local scales, and the widest ones afterwards. */
const [ROUGH, WIDEST] = [0.5, 1];

/** The most cells of a partial sum, about. */
const MOST_CELLS = 250;

/** Pairs of a smaller mass do not count for the choice of cells. */
const NEGLIGIBLE = 1e-200;

/** The partial sums as pairs of earlier ones: the first one is the number itself. The last pair is the whole sum. */
function partial(times) {
  const pairs = [null];
  let last = 0;
  const add = (a, b) => (last = pairs.push([a, b]) - 1);
  for (const bit of (times >> 1).toString(2).slice(1)) {
    add(last, last);
    if (bit === "1") add(last, 0);
  }
  const half = last;
  if (times % 2) add(half, 0);
  pairs.push([half, last]);
  return pairs;
}

/** All pairs of two pictures, rising. */
function pairsOf(a, b) {
  const one = picture(a.values, a.masses);
  const other = a === b ? one : picture(b.values, b.masses);
  const found = [];
  one.forEach((u, i) => {
    for (let j = a === b ? i : 0; j < other.length; j += 1) {
      found.push({ x: u.x + other[j].x, p: u.p * other[j].p * (a === b && i !== j ? 2 : 1) });
    }
  });
  return found.filter(({ p }) => p > NEGLIGIBLE).sort((u, v) => u.x - v.x);
}

/** Edges from the lowest node to an end beyond which the mean is small in the picture, with an edge at 0. */
function through(start, end, widthAt, fineness) {
  if (!(start < 0 && end > 0)) return Float64Array.from(edgesBetween(start, Math.max(end, start + widthAt(start)), widthAt, fineness));
  const left = edgesBetween(start, 0, widthAt, fineness).filter((edge) => edge < 0);
  return Float64Array.from([...left, ...edgesBetween(0, end, widthAt, fineness)]);
}

/** The sum of two numbers on rough cells, with the widths at its nodes. */
function roughly(a, b, { tail, low, least }) {
  const atoms = pairsOf(a, b);
  const [x, y] = [a.values, b.values];
  const start = Math.max(x[0] + y[0], -low);
  let [end, mass, moment] = [x[x.length - 1] + y[y.length - 1], 0, 0];
  for (let k = atoms.length - 1; k >= 0; k -= 1) {
    mass += atoms[k].p;
    moment += atoms[k].p * atoms[k].x;
    if (moment - atoms[k].x * mass > 1e-6 * tail) break;
    end = Math.min(end, atoms[k].x);
  }
  const widthAt = scales(atoms, least);
  const edges = through(start, end, widthAt, ROUGH);
  return { ...added(a, b, edges), widths: edges.map(widthAt) };
}

/** Half the distance of the neighbours of each node. */
const gaps = (values) => values.map((_, k) => 0.5 * (values[Math.min(k + 1, values.length - 1)] - values[Math.max(k - 1, 0)]));

/** A function of rising places that is linear between nodes, and beyond them 0, or as at the ends if it is `constant` there. */
export function linear(places, values, constant = false) {
  let k = 0;
  const n = places.length;
  return (at) => {
    if (!(at > places[0] && at < places[n - 1])) return constant ? values[at > places[0] ? n - 1 : 0] : 0;
    while (places[k] > at) k -= 1;
    while (places[k + 1] <= at) k += 1;
    return values[k] + ((at - places[k]) / (places[k + 1] - places[k])) * (values[k + 1] - values[k]);
  };
}

/** Add to the weights of `a` the mean weights of its sum with `b`, which are linear between the nodes of the sum. */
function back(into, a, b, out, weights, often) {
  const [x, y, q, z] = [a.values, b.values, b.masses, out.values];
  const n = z.length;
  for (let i = 0; i < x.length; i += 1) {
    let sum = 0;
    for (let j = 0, k = 1; j < y.length; j += 1) {
      const at = x[i] + y[j];
      if (at <= z[0]) continue;
      while (k < n && z[k] <= at) k += 1;
      if (k === n) break;
      const low = weights[k - 1];
      const high = weights[k];
      if (low + high > 0) sum += q[j] * (low + ((at - z[k - 1]) / (z[k] - z[k - 1])) * (high - low));
    }
    into[i] += often * sum;
  }
}

/** The weights of the atoms of all partial sums. */
function weightsOf(pairs, sums, level) {
  const weights = sums.map(({ values }) => new Float64Array(values.length));
  const end = pairs.length - 1;
  for (let k = end; k > 0; k -= 1) {
    const [a, b] = pairs[k];
    for (const [one, other] of a === b ? [[a, b]] : [[a, b], [b, a]]) {
      const often = a === b ? 2 : 1;
      if (k < end) back(weights[one], sums[one], sums[other], sums[k], weights[k], often);
      else {
        const gap = gapsOf(sums[other]);
        const near = linear(sums[other].values, sums[other].masses.map((mass, j) => mass / gap[j]));
        sums[one].values.forEach((x, i) => (weights[one][i] += often * near(level - x)));
      }
    }
  }
  return weights;
}

const gapsOf = (number) => (number.gaps ??= gaps(number.values));

/** The widths of the cells of all partial sums, and of the number itself, for an error of the answer. */
function widthsOf(pairs, sums, level, error) {
  const weights = weightsOf(pairs, sums, level);
  const plans = sums.map((number, k) => {
    const roots = number.masses.map((mass, i) => cubeRoot((mass * weights[k][i]) / gapsOf(number)[i]));
    const density = roots.map((root, i) => Math.max(root, roots[Math.max(i - 1, 0)], roots[Math.min(i + 1, roots.length - 1)]));
    return { density, area: density.reduce((sum, each, i) => sum + each * gapsOf(number)[i], 0) };
  });
  const total = plans.reduce((sum, { area }) => sum + area * Math.sqrt(area), 0);
  const most = Math.max(...plans.map(({ area }) => Math.sqrt(area * Math.sqrt(area))));
  const many = Math.min(Math.sqrt(total / (8 * error)), MOST_CELLS / most);
  return plans.map(({ density, area }, k) => {
    const { values, widths } = sums[k];
    const narrow = area > 0 ? area / (many * Math.sqrt(area * Math.sqrt(area))) : Infinity; // n cells with n = many area^(3/4)
    return linear(values, values.map((_, i) => Math.min(narrow / density[i], widths ? WIDEST * widths[i] : 1e300)), true);
  });
}

/**
 * The plan of a sum of copies: its partial sums, and the places and widths of their cells.
 *
 * @param number The number from above, as a function of the widths of its cells, or of none for rough ones.
 * @param times The number of independent copies, at least 2.
 * @param level At least 0; it may have 16 roundings upwards.
 * @param cells `fineness`, the error relative to the answer, `tail`, a mean that may lie beyond the highest node, `low`, below
 *   whose negative mass is moved up, and `least`, the smallest scale that matters.
 */
export function planOf(number, times, level, cells) {
  const pairs = partial(times);
  const sums = [number()];
  for (const [a, b] of pairs.slice(1, -1)) sums.push(roughly(sums[a], sums[b], cells));
  const [a, b] = pairs[pairs.length - 1];
  const rough = meanExcess(sums[a], sums[b], level);
  const widths = widthsOf(pairs, sums, level, cells.fineness * Math.max(rough, cells.tail));
  return { pairs, widths, ends: sums.map(({ values }) => [values[0], values[values.length - 1]]) };
}

/** An upper bound of the mean of (sum of copies - level)+ with the cells of a plan, perhaps of a similar number. */
export function excessOfSum(number, level, { pairs, widths, ends }) {
  const sums = [number(widths[0])];
  for (let k = 1; k < widths.length; k += 1) {
    const [a, b] = pairs[k];
    sums.push(added(sums[a], sums[b], through(...ends[k], widths[k], 1)));
  }
  const [a, b] = pairs[pairs.length - 1];
  return meanExcess(sums[a], sums[b], level);
}
