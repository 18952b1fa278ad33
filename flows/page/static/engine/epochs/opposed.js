// A lower distribution of the ratio of two mixtures: means of N(far e_j) and N(near e_j) over random steps j, by joint
// conditional means (docs/shuffling.md).
//
// A and B are the mean densities of some steps with respect to N(0). Cells of outcomes keep their mass under N(0) and the means
// of A and B; two parts are combined for all pairs of cells. Any cells are valid, and only the tightness depends on them: they
// are intervals of the ratio that results if all other steps are typical.

import { UNIT, exp, log } from "../elementary.js";
import { STEP, distribution, reachOf, short } from "../distribution.js";
import { quantile, tailOf } from "../gaussian.js";
import { NODE, STEEPEST, WEIGHT, density } from "../quadrature.js";
import { edgesBetween, groups, scales } from "./scales.js";

/** Smaller cells are dropped, which lowers both directions. */
const SMALLEST = 1e-140;

/** Largest size of the logarithm of a density, so that products stay within the doubles. */
const LARGEST_EXPONENT = 330;

/** Number of the largest outputs, among all steps, that typical means leave out. */
const RARE = 3;

/** Cells of one output in standard deviations, relative to the fineness. */
const INNER = 1.2;

/** One step in cells of its output: masses under N(0), and the means of both densities. */
function step([far, near], tail, fineness) {
  const [low, high] = [Math.min(0, far, near), Math.max(0, far, near)];
  const reach = reachOf(tail);
  if ((high - low) * (reach + 0.5 * (high - low)) > LARGEST_EXPONENT) throw new RangeError("The ratio of a step is too large.");
  const width = Math.max(Math.round((INNER * fineness) / Math.max(1, 0.5 * (high - low)) / STEP), 1) * STEP;
  const first = Math.floor((low - reach) / width);
  const count = Math.ceil((high + reach) / width) - first;
  const panels = Math.ceil((width * (reach + high - low + 1)) / (2 * STEEPEST));
  const [p, a, b] = [0, 0, 0].map(() => new Float64Array(count));
  for (let k = 0; k < count; k += 1) {
    const z = (first + k) * width;
    const mass = [0, far, near].map((mean) => {
      let sum = 0;
      for (let panel = 0; panel < panels; panel += 1) {
        for (let i = 0; i < 8; i += 1) sum += WEIGHT[i] * density(z - mean + (width / panels) * (panel + NODE[i]));
      }
      return (sum * width) / panels;
    });
    p[k] = mass[0];
    a[k] = mass[1] / mass[0];
    b[k] = mass[2] / mass[0];
  }
  const largest = reach + high - low + 1;
  return { steps: 1, p, a, b, error: (64 + 8 * largest * largest) * UNIT };
}

/** Means of both densities of a step below the quantile that few of all steps exceed. */
function typical(shifts, steps) {
  const most = quantile(Math.min(0.5, RARE / steps));
  const below = 1 - tailOf(most);
  return shifts.map((mean) => (1 - tailOf(most - mean)) / below);
}

/** Groups of neighbours with their means. */
function pictured({ p, a, b }) {
  return groups(p).map(([first, last]) => {
    let [mass, x, y] = [0, 0, 0];
    for (let k = first; k <= last; k += 1) {
      mass += p[k];
      x += p[k] * a[k];
      y += p[k] * b[k];
    }
    return { p: mass, a: x / mass, b: y / mass };
  });
}

/** Edges of cells of the expected ratio. */
function edgesOf(one, other, [u, v], [share, alpha, beta], fineness) {
  const [first, second] = [pictured(one), one === other ? null : pictured(other)];
  const atoms = first.flatMap((c) =>
    (second ?? first).map((d) => {
      const [a, b] = [share * (u * c.a + v * d.a) + alpha, share * (u * c.b + v * d.b) + beta];
      return { x: a / b, p: c.p * d.p * b };
    }),
  );
  atoms.sort((c, d) => c.x - d.x);
  const kept = atoms.filter(({ p }) => p > SMALLEST);
  if (!(kept.length > 1)) throw new RangeError("The ratio of an epoch is too large.");
  const ends = [kept[0].x, kept[kept.length - 1].x];
  return Float64Array.from(edgesBetween(...ends, scales(kept, 1e-12 * ends[1]), fineness));
}

/** The union of two disjoint parts of the steps. */
function combined(one, other, steps, rest, fineness) {
  const n = one.steps + other.steps;
  const [u, v, share] = [one.steps / n, other.steps / n, n / steps];
  const [alpha, beta] = rest.map((mean) => (1 - share) * mean);
  const edges = edgesOf(one, other, [u, v], [share, alpha, beta], fineness);
  const cells = edges.length + 1; // the outermost ones are beyond the edges
  const [mass, x, y] = [0, 0, 0].map(() => new Float64Array(cells));
  const same = one === other;
  const last = edges.length - 1;
  let begin = 0; // the number of edges at or below a ratio
  for (let i = 0; i < one.p.length; i += 1) {
    const [pi, ai, bi] = [one.p[i], u * one.a[i], u * one.b[i]];
    const start = same ? i : 0;
    let [cell, m, f, g] = [begin, 0, 0, 0];
    for (let j = start; j < other.p.length; j += 1) {
      const a = ai + v * other.a[j];
      const b = bi + v * other.b[j];
      const ratio = (share * a + alpha) / (share * b + beta);
      if ((cell <= last && ratio >= edges[cell]) || (cell > 0 && ratio < edges[cell - 1])) {
        mass[cell] += pi * m;
        x[cell] += pi * f;
        y[cell] += pi * g;
        [m, f, g] = [0, 0, 0];
        while (cell <= last && ratio >= edges[cell]) cell += 1;
        while (cell > 0 && ratio < edges[cell - 1]) cell -= 1;
      }
      if (j === start) begin = cell;
      const p = same && j > i ? 2 * other.p[j] : other.p[j];
      m += p;
      f += p * a;
      g += p * b;
    }
    mass[cell] += pi * m;
    x[cell] += pi * f;
    y[cell] += pi * g;
  }
  const kept = [...mass.keys()].filter((k) => mass[k] > SMALLEST);
  const means = { p: kept.map((k) => mass[k]), a: kept.map((k) => x[k] / mass[k]), b: kept.map((k) => y[k] / mass[k]) };
  // every sum has at most as many terms as there are rows and columns, and a few roundings in each
  const error = one.error + other.error + (one.p.length + other.p.length + 32) * UNIT;
  return { steps: n, ...means, error };
}

/**
 * The lower distribution of an epoch.
 *
 * @param shifts The two means in standard deviations; they may err by 8 units if both are less than the exact ones by as much.
 * @param steps Number of steps.
 * @param used Share of the examples that an epoch uses; the others leave all outputs at N(0).
 * @param limits `tail`, the probability of a step beyond its cells, and `fineness` of the cells.
 */
export function opposed(shifts, steps, used, { tail, fineness }) {
  const given = shifts.map((shift) => (shift < 0 ? -short(-shift, false) : short(shift, false)));
  const [first, rest] = [step(given, tail, fineness), typical(given, steps)];
  let part = first;
  for (const bit of steps.toString(2).slice(1)) {
    part = combined(part, part, steps, rest, fineness);
    if (bit === "1") part = combined(part, first, steps, rest, fineness);
  }
  const left = 1 - used;
  const atoms = Array.from(part.p, (p, k) => {
    const [a, b] = [used * part.a[k] + left, used * part.b[k] + left];
    return { x: a / b, p: p * b };
  });
  atoms.sort((c, d) => c.x - d.x);
  const values = Float64Array.from(atoms, ({ x }) => x);
  // the mass of a cell under N(0) is a factor of both densities
  const error = 2 * part.error + 8 * UNIT;
  return distribution(values, Float64Array.from(atoms, ({ p }) => p), 0, error, error);
}
