// An upper bound of the profile of a shuffled epoch that leaves out examples, by sums of independent numbers
// (docs/shuffling.md).
//
// R_m = exp(m s z - m^2 s^2 / 2) with z standard normal. A number D has above 0 the distribution of R_a - kappa R_b, a > b, and
// below 0 that of another such difference with a < b; the rest of its mass is at 0.

import { UNIT, exp, expm1, log } from "../elementary.js";
import { reachOf } from "../distribution.js";
import { NODE, STEEPEST, WEIGHT, density } from "../quadrature.js";
import { signed } from "./signed.js";
import { excessOfSum, planOf } from "./sums.js";

/** Relative errors of masses, means and nodes of D: exponents of at most 700 with a few roundings, and quadrature. */
const ERROR = 4e-12;

/** Largest exponent of a ratio. */
const LARGEST_EXPONENT = 330;

/** The widest and the narrowest cells of D in standard deviations, and a step for its derivative. */
const [INNER, NARROWEST, DIFFERENCE] = [0.25, 0.02, 1e-3];

/** Error of a profile by its cells, relative to it. */
const FINENESS = 0.02;

/** Sums below this many of those that a single step can make positive are moved up. */
const FARTHEST = 16;

/** `[a, b]` above 0 and below 0, by relation and direction (true: remove). */
export const BRANCHES = {
  "zero-out": (remove) => (remove ? [[2, 1], [0, 1]] : [[1, 0], [1, 2]]),
  "replace-one": () => [[2, 0], [0, 2]],
  "in-place": () => [[1, -1], [-1, 1]],
};

/**
 * The values |R_a - kappa R_b| in cells of z from their zero upwards, spread to the ends; everything errs upwards in D.
 *
 * @returns Nodes with their masses in the order of z, and bounds of the mass and of the mean beyond the last one.
 */
function branch(s, kappa, [a, b], tail, widthAt) {
  const above = a > b;
  const gap = Math.abs(a - b) * s;
  const terms = [log(kappa) / gap, 0.5 * (a + b) * s];
  const moved = 32 * UNIT * (Math.abs(terms[0]) + Math.abs(terms[1]));
  const zero = above ? terms[0] + terms[1] - moved : terms[1] - terms[0] + moved;
  const factor = above ? b : a;
  const size = (z) => (above ? kappa : 1) * exp(factor * s * z - 0.5 * factor * factor * s * s) * expm1(gap * (z - zero));
  const reach = reachOf(tail);
  const most = Math.max(a, b) * s;
  const start = Math.max(zero, -reach);
  const end = most + reach;
  if (most * end > LARGEST_EXPONENT || log(kappa) > LARGEST_EXPONENT) throw new RangeError("The ratio of a step is too large.");
  const beyond = (z) => 0.5 * exp(-0.5 * z * z) * (1 + 1e-9); // bounds the normal tail for z >= 0
  if (start >= end) return { nodes: [0], masses: [0], mass: beyond(start), mean: beyond(start - most) };
  const fastest = Math.max(1, 0.5 * most, above ? start - most : 1);
  const sign = above ? 1 : -1;
  const ends = [start];
  for (let z = start; z < end; ends.push(z)) {
    const wanted = widthAt ? (DIFFERENCE * widthAt(sign * size(z))) / (size(z + DIFFERENCE) - size(z)) : INNER;
    z += Math.min(Math.max(wanted, NARROWEST), INNER) / fastest;
  }
  const nodes = ends.map((z) => sign * size(z) * (1 + sign * ERROR));
  const masses = new Float64Array(nodes.length);
  for (let k = 0; k + 1 < nodes.length; k += 1) {
    const width = ends[k + 1] - ends[k];
    const panels = Math.ceil((width * (Math.abs(start) + end + 2 * most + 2)) / (2 * STEEPEST));
    let [mass, moment] = [0, 0];
    for (let panel = 0; panel < panels; panel += 1) {
      for (let i = 0; i < 8; i += 1) {
        const z = ends[k] + (width / panels) * (panel + NODE[i]);
        const share = WEIGHT[i] * density(z);
        mass += share;
        moment += share * size(z);
      }
    }
    const mean = sign * (moment / mass) * (1 + 4 * sign * ERROR);
    const place = Math.min(Math.max((mean - nodes[k]) / (nodes[k + 1] - nodes[k]), 0), 1);
    const found = (mass * width * (1 + ERROR)) / panels;
    masses[k + 1] += found * place;
    masses[k] += found * (1 - place);
  }
  return { nodes, masses, mass: beyond(end), mean: beyond(reach) };
}

/** An upper bound of the mean of (D - level)+ for a level >= 0, which may err by 16 units: an integral from the place of the level. */
function excess(s, kappa, [a, b], level, tail) {
  const gap = (a - b) * s;
  const zero = log(kappa) / gap + 0.5 * (a + b) * s;
  const size = (z) => kappa * exp(b * s * z - 0.5 * b * b * s * s) * expm1(gap * (z - zero));
  const end = Math.max(a * s, zero) + reachOf(tail);
  if (a * s * end > LARGEST_EXPONENT || log(kappa) > LARGEST_EXPONENT) throw new RangeError("The ratio of a step is too large.");
  let [from, to] = [zero, end];
  for (let k = 0; k < 60; k += 1) {
    const middle = 0.5 * (from + to);
    if (size(middle) > level) to = middle;
    else from = middle;
  }
  let [sum, whole] = [0, 0];
  for (let z = from; z < end; ) {
    const width = Math.min(0.2, (2 * STEEPEST) / (Math.abs(z) + 2 * (Math.abs(a) + Math.abs(b)) * s + 2));
    for (let i = 0; i < 8; i += 1) {
      const at = z + width * NODE[i];
      const [mass, value] = [width * WEIGHT[i] * density(at), size(at)];
      sum += mass * (value - level);
      whole += mass * value;
    }
    z += width;
  }
  return sum + ERROR * whole + 0.5 * exp(-0.5 * (end - a * s) * (end - a * s)) * (1 + 1e-9);
}

/** The number D from above. */
function difference(s, kappa, [over, under], tail, widthAt) {
  const [up, down] = [branch(s, kappa, over, tail, widthAt), branch(s, kappa, under, tail, widthAt)];
  // mass beyond the last cell: above, its mean counts in full; below 0, it moves up to the lowest node
  up.masses[up.masses.length - 1] += up.mass;
  down.masses[down.masses.length - 1] += down.mass;
  const total = (masses) => masses.reduce((sum, mass) => sum + mass, 0);
  const left = Math.max(1 - total(up.masses) - total(down.masses), 0) + ERROR;
  const values = [...down.nodes.slice(1).reverse(), Math.max(down.nodes[0], 0), ...up.nodes.slice(1)];
  const masses = [...Array.from(down.masses).slice(1).reverse(), down.masses[0] + left + up.masses[0], ...Array.from(up.masses).slice(1)];
  return signed(Float64Array.from(values), Float64Array.from(masses), up.mean);
}

/** Thresholds share a plan of the cells if they and their distances from 1 differ by less than these shares. */
const [ALIKE, NEAR] = [0.05, 0.2];

/**
 * Upper bounds of the profile of an epoch in one direction.
 *
 * @param epoch Its `s`, `steps`, `relation`, and `used`, the share of the examples that it uses.
 * @param remove The direction.
 * @param tail Mean of a step that may lie beyond its cells.
 * @returns A function of the threshold kappa, at least 1.
 */
export function profileAbove({ s, steps, relation, used }, remove, tail) {
  let [plan, at] = [null, 0];
  return (kappa) => {
    const level = ((1 - used) / used) * (kappa - 1) * steps;
    const number = (widthAt) => difference(s, kappa, BRANCHES[relation](remove), tail, widthAt);
    if (steps === 1) return Math.min(1, used * excess(s, kappa, BRANCHES[relation](remove)[0], level, tail) * (1 + 16 * UNIT));
    if (!(Math.abs(kappa - at) < Math.max(ALIKE * Math.min(1, s), Math.min(NEAR * (at - 1), 2 * ALIKE * at)))) {
      const low = FARTHEST * Math.max(2 * steps * (kappa - 1), 8);
      const least = 0.05 * kappa * Math.min(1, s);
      plan = planOf(number, steps, level, { fineness: FINENESS, tail, low, least });
      at = kappa;
    }
    return Math.min(1, (used / steps) * excessOfSum(number, level, plan) * (1 + 16 * UNIT));
  };
}
