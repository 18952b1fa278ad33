// Means and products of independent likelihood ratios, collected into the cells of a grid.

import { UNIT } from "./elementary.js";
import { LEAST_MASS, LEAST_MEAN, distribution } from "./distribution.js";

const INWARD = 1 - 4 * UNIT; // keeps a share of a cell at most 1

/** Atoms of a lower distribution below this mass are dropped, so that products do not lose digits. */
const DROPPED = 1e-280;

/**
 * Collect all pairs of atoms into the cells between the edges.
 *
 * A pair of mass p at the place lo + f w of the cell [lo, lo + w] counts p f for the right end and p (1 - f) for
 * the left end. Every term passes through at most one sum along a row and one over the rows.
 *
 * @param edges Rising, the first one is 0.
 * @param times Whether values are multiplied, otherwise added.
 * @returns {{left, right, top, excess}} Sums for each cell, and mass and excess mean beyond the last edge.
 */
function collect(a, b, edges, times) {
  const same = a === b;
  const [x, p, y, q] = [a.values, a.masses, b.values, b.masses];
  const cells = edges.length - 1;
  const left = new Float64Array(cells);
  const right = new Float64Array(cells);
  const inverse = new Float64Array(cells);
  for (let k = 0; k < cells; k += 1) inverse[k] = INWARD / (edges[k + 1] - edges[k]);
  const last = edges[cells];
  let [top, excess, begin] = [0, 0, 0];
  for (let i = 0; i < x.length; i += 1) {
    const xi = x[i];
    const pi = same ? 2 * p[i] : p[i];
    let j = same ? i : 0;
    let s = times ? xi * y[j] : xi + y[j];
    while (begin < cells && s >= edges[begin + 1]) begin += 1;
    let k = begin;
    let half = same; // the pair of an atom with itself counts once
    while (k < cells && j < y.length) {
      const lo = edges[k];
      const hi = edges[k + 1];
      const inv = inverse[k];
      let l = 0;
      let r = 0;
      while (s < hi) {
        const mass = half ? 0.5 * pi * q[j] : pi * q[j];
        half = false;
        const part = mass * ((s - lo) * inv);
        r += part;
        l += mass - part;
        j += 1;
        if (j === y.length) break;
        s = times ? xi * y[j] : xi + y[j];
      }
      left[k] += l;
      right[k] += r;
      if (j < y.length) {
        k += 1;
        while (k < cells && s >= edges[k + 1]) k += 1;
      }
    }
    for (; j < y.length; j += 1) {
      s = times ? xi * y[j] : xi + y[j];
      const often = same && !half ? 2 : 1;
      const mass = often * p[i] * q[j];
      half = false;
      top += mass;
      // the mean of a product is the product of the means: the masses alone could underflow
      excess += times ? often * (p[i] * xi) * (q[j] * y[j]) * (1 - last / s) : mass * (s - last);
    }
  }
  return { left, right, top, excess };
}

/** The largest relative width of a cell, from the second cell. */
function widest(edges) {
  let found = 0;
  for (let k = 1; k < edges.length - 1; k += 1) found = Math.max(found, (edges[k + 1] - edges[k]) / edges[k]);
  return found;
}

/** Errors of masses and values of the pairs, before cells are formed. */
function errors(a, b, times) {
  const massError = a.massError + b.massError + (a.values.length + b.values.length + 16) * UNIT;
  const valueError = times ? a.valueError + b.valueError + UNIT : Math.max(a.valueError, b.valueError) + UNIT;
  return { massError, valueError };
}

/** The mean-preserving spread of the pairs: the mass of each cell moves to its ends. */
export function spread(a, b, times, { edges, widths }) {
  const { left, right, top, excess } = collect(a, b, edges, times);
  const masses = new Float64Array(edges.length).fill(LEAST_MASS);
  for (let k = 0; k < left.length; k += 1) {
    masses[k] += left[k];
    masses[k + 1] += right[k];
  }
  masses[left.length] += top;
  const { massError, valueError } = errors(a, b, times);
  // the place of a pair in its cell errs by 11 units of the width, which is at most the value (`edgesOf`)
  const place = 16 * UNIT * Math.max(1, widest(edges));
  const infinity = a.infinity + b.infinity + excess + LEAST_MEAN;
  return { ...distribution(edges, masses, infinity, massError, valueError + place), widths };
}

/** The conditional means of the pairs in each cell; the outermost cells are dropped. */
export function means(a, b, times, { edges }) {
  const { left, right } = collect(a, b, edges, times);
  const { massError, valueError } = errors(a, b, times);
  const kept = [];
  let wide = 0;
  for (let k = 1; k < left.length; k += 1) {
    if (left[k] + right[k] > DROPPED) {
      kept.push(k);
      wide = Math.max(wide, (edges[k + 1] - edges[k]) / edges[k]);
    }
  }
  const masses = Float64Array.from(kept, (k) => left[k] + right[k]);
  const values = Float64Array.from(kept, (k, n) => edges[k] + (edges[k + 1] - edges[k]) * (right[k] / masses[n]));
  // Weights that err by the factors exp(+- m) move the mean of a cell by at most m / 2 of its width, and the
  // sums by as much again.
  const moved = (massError + 16 * UNIT) * wide + 2 * UNIT;
  return distribution(values, masses, 0, massError, valueError + moved);
}

/** A distribution of weight * X. */
export function scaled(x, weight) {
  const exact = weight === 0.5;
  const values = x.values.map((value) => value * weight);
  const valueError = x.valueError + (exact ? 0 : 2 * UNIT);
  const widths = x.widths?.map((width) => width * weight);
  return { ...distribution(values, x.masses, x.infinity * weight, x.massError, valueError), widths };
}
