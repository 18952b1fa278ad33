// The choice of cells from the answer: where a mean-preserving spread of an intermediate ratio moves it most.
//
// A spread of an atom x of an intermediate ratio by a small variance v moves the mean of phi(X) of the final ratio by
// v / 2 times the mean of the second derivative of phi, given that this ratio is x. For the profile at kappa, phi'' is a point
// mass at kappa; going back through the operations gives the mean for every atom of every intermediate ratio. If m is its
// value times x^2 and the probability of the atom, then cells of the relative width r at x widen the bracket by m r^2 / 8.
// For a given number of cells, this is smallest if widths fall like the cube root of the density of m.
// Any choice is valid, so nothing here is rounded with care.

import { reachOf } from "./distribution.js";
import { UNIT, cubeRoot, length, log } from "./elementary.js";
import { placesOf } from "./evaluate.js";
import { combines } from "./program.js";

/** Widest cells in local standard deviations. */
const WIDEST = 0.6;

/** Beyond this number of cells, an operation has too many pairs of atoms. */
const MOST_CELLS = 100000;

/** The farthest smearing, relative to the place. */
const FARTHEST = 0.9;

/** Rough cells on either side whose density counts. */
const NEIGHBOURS = 2;

/** Widths of the final ratio, in local standard deviations, over which the point mass at kappa is smeared. */
const SMEARED = 0.5;

/** The ratio 1. */
const ONE = { values: [1], masses: [1], widths: [0] };

const square = (x) => x * x;

/** Half the width over which a point mass is smeared at each atom: a share of the local standard deviation, or the cell. */
function smearing({ values, widths }) {
  return Float64Array.from(values, (x, k) => {
    const [before, after] = [values[Math.max(k - 1, 0)], values[Math.min(k + 1, values.length - 1)]];
    return Math.max(SMEARED * widths[k], 0.5 * (after - before));
  });
}

/** Add to the weights of `a`, a factor of the final ratio, those of the point masses at the thresholds. */
function backFrom(into, a, b, [shareA, shareB], thresholds, times, often) {
  const [x, y, q, u, v] = [a.values, b.values, b.masses, smearing(a), smearing(b)];
  for (const { at, weight } of thresholds) {
    for (let i = 0; i < x.length; i += 1) {
      const xi = shareA * x[i];
      if (!(xi > 0)) continue;
      let sum = 0;
      for (let j = 0; j < y.length; j += 1) {
        const value = times ? xi * y[j] : xi + shareB * y[j];
        const off = Math.abs(value / at - 1);
        if (off >= FARTHEST) continue;
        const spread = times ? length(u[i] * y[j], xi * v[j]) : length(shareA * u[i], shareB * v[j]);
        const reach = Math.max(Math.min(spread / value, FARTHEST), 1e-15);
        if (off < reach) sum += ((q[j] * (1 - off / reach)) / reach) * (times ? 1 : square(xi / value));
      }
      into[i] += often * weight * sum;
    }
  }
}

/** Add to the weights of `a` the mean weights of the combination with `b`. */
function back(into, a, b, [shareA, shareB], out, weights, times, often) {
  const [x, y, q, z] = [a.values, b.values, b.masses, out.values];
  for (let i = 0; i < x.length; i += 1) {
    const xi = shareA * x[i];
    if (!(xi > 0)) continue;
    let [sum, k] = [0, 1];
    for (let j = 0; j < y.length && k < z.length; j += 1) {
      const at = times ? xi * y[j] : xi + shareB * y[j];
      while (k < z.length && z[k] < at) k += 1;
      if (k === z.length) break;
      const [one, other] = [weights[k - 1], weights[k]];
      if (one === 0 && other === 0) continue;
      const weight = one + (other - one) * ((at - z[k - 1]) / (z[k] - z[k - 1]));
      sum += q[j] * Math.max(weight, 0) * (times ? 1 : square(xi / at));
    }
    into[i] += often * sum;
  }
}

/** The weights of the atoms of all operations for point masses: each of them has `at`, its place, and a `weight`. */
export function weightsOf(nodes, found, thresholds) {
  const weights = nodes.map((node, k) => (found[k] ? new Float64Array(found[k].values.length) : null));
  const end = nodes.length - 1;
  if (!combines(nodes[end])) backFrom(weights[end], found[end], ONE, [1, 1], thresholds, true, 1);
  for (let k = end; k >= 0; k -= 1) {
    const { kind, a, b, rate, shares } = nodes[k];
    if (kind === "mixed") {
      const [out, given] = [found[k].values, weights[k]];
      found[a].values.forEach((x, i) => (weights[a][i] += given[i] * square((rate * x) / out[i])));
    } else if (combines(nodes[k])) {
      const times = kind === "product";
      const [one, other] = times ? [1, 1] : shares;
      const add = (i, j, both, often) =>
        k === end
          ? backFrom(weights[i], found[i], found[j], both, thresholds, times, often)
          : back(weights[i], found[i], found[j], both, found[k], weights[k], times, often);
      add(a, b, [one, other], a === b ? 2 : 1);
      if (a !== b) add(b, a, [other, one], 1);
    }
  }
  return weights;
}

/**
 * Points of an operation: value, the root of the density of the weight that sets the best width, and the widest cell.
 *
 * In a heavy tail the rough cells are narrower than the distance of the atoms that were combined, so that only some of
 * them have much mass; so the largest density among neighbours counts.
 */
export function pointsOf({ values, masses, widths }, weights) {
  const first = values.findIndex((value) => value > 0);
  const count = values.length - first;
  const [lengths, roots] = [new Float64Array(count), new Float64Array(count)];
  for (let k = 0; k < count; k += 1) {
    const [before, after] = [first + Math.max(k - 1, 0), first + Math.min(k + 1, count - 1)];
    lengths[k] = log(values[after] / values[before]) / Math.max(after - before, 1);
    roots[k] = lengths[k] > 0 ? cubeRoot((masses[first + k] * weights[first + k]) / lengths[k]) : 0;
  }
  let area = 0;
  const points = Array.from(roots, (_, k) => {
    const density = Math.max(...roots.subarray(Math.max(k - NEIGHBOURS, 0), k + NEIGHBOURS + 1));
    area += density * lengths[k];
    return { x: values[first + k], density, most: (WIDEST * widths[first + k]) / values[first + k] };
  });
  return { points, area };
}

/**
 * The best widths of the cells of all operations up to a common factor; null for those without cells.
 *
 * @param nodes From `program`.
 * @param found From `probed`.
 * @param weights From `weightsOf`.
 */
export function planned(nodes, found, weights) {
  const plans = nodes.map((node, k) =>
    ["mixed", "given"].includes(node.kind) || (k === nodes.length - 1 && combines(node)) ? null : pointsOf(found[k], weights[k]),
  );
  const total = plans.reduce((sum, plan) => sum + (plan ? plan.area * Math.sqrt(plan.area) : 0), 0);
  const scale = Math.sqrt(8 / Math.max(total, 1e-300));
  // n cells cost n^2 and widen by area^3 / n^2: the sum is smallest if n grows like area^(3/4)
  return plans.map((plan) => plan && { points: plan.points, share: scale * Math.sqrt(Math.sqrt(Math.max(plan.area, 1e-300))) });
}

/** Cells for which the bracket widens by about factor^2. */
export function gridsOf(nodes, plans, factor, tail) {
  return plans.map((plan, k) => {
    if (plan === null) return null;
    const { points, share } = plan;
    const widest = Math.min(1, 12 * factor);
    const widths = points.map(({ density, most }) => Math.min((factor * share) / density, most * widest));
    if (nodes[k].kind !== "step") return { edges: edgesAlong(points, widths) };
    const { s } = nodes[k];
    const widthAt = along(points.map(({ x }) => log(x) / s + s / 2), widths.map((width) => width / s));
    return { places: placesOf(nodes[k], reachOf(tail), widthAt) };
  });
}

/** Edges from the first point to beyond the last one. */
function edgesAlong(points, widths) {
  const widthAt = along(points.map(({ x }) => x), widths);
  const edges = [0, points[0].x];
  const last = points[points.length - 1].x;
  let at = points[0].x;
  while (at < last) {
    // the cells of a spread are at most as wide as their values
    at += at * Math.min(Math.max(widthAt(at), 16 * UNIT), 1);
    edges.push(at);
    if (edges.length > MOST_CELLS) break; // the pairs are too many, too
  }
  return Float64Array.from(edges);
}

/** The pairs of atoms of all combinations, about. */
export function pairsOf(nodes, grids) {
  const sizes = [];
  nodes.forEach((node, k) => sizes.push(grids[k] ? (grids[k].edges ?? grids[k].places).length : (node.size ?? sizes[node.a])));
  return nodes.reduce((sum, node) => sum + (combines(node) ? sizes[node.a] * sizes[node.b] : 0), 0);
}

/** A function of rising places that interpolates values at points. */
export function along(places, values) {
  let k = 0;
  return (at) => {
    while (k < places.length - 2 && places[k + 1] <= at) k += 1;
    if (places.length < 2) return values[0];
    const share = Math.min(Math.max((at - places[k]) / (places[k + 1] - places[k]), 0), 1);
    return values[k] + share * (values[k + 1] - values[k]);
  };
}
