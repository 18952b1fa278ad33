// Distributions of a likelihood ratio on finitely many values, with bounds of their rounding errors.
//
// An upper distribution dominates the exact one: some distribution X' with the convex order of the exact ratio
// has, for every value x of mass p, the mass at most p exp(mass error) on values within x exp(+- value error),
// and the mean at infinity at most m exp(mass error + value error). A lower distribution is a part of some X'
// that the exact ratio dominates, with masses of at least p exp(-mass error). Mass that is missing in a lower
// one, or added to an upper one, only moves the bounds outwards; so tails need no exact care.

import { UNIT, exp, expm1, exponent, log, power } from "./elementary.js";
import { NODE, STEEPEST, WEIGHT, density } from "./quadrature.js";

/** Added to every mass of an upper distribution: more than all products that underflow (2^-1074 each). */
export const LEAST_MASS = 1e-306;

/** Added to the mean at infinity: more than the mean of all values that underflow. */
export const LEAST_MEAN = 1e-290;

/** Values stay within these ends, so that products of values and masses stay within the doubles. */
export const [SMALLEST, LARGEST] = [1e-147, 1e147];

/** Checked: relative error of the masses of `lognormal`, and of the share that a cell moves to its right end. */
const CELL_MASS = 64 * UNIT;

/** A distribution on rising values. */
export function distribution(values, masses, infinity, massError, valueError) {
  return { values, masses, infinity, massError, valueError };
}

/** x > 0 rounded up or down to about 24 bits. */
export function short(x, up) {
  const scale = power(23 - exponent(x));
  const rounded = up ? Math.ceil(x * scale) : Math.floor(x * scale);
  return rounded / scale;
}

/** Ends of cells of z are multiples of this, so that s z and s^2 / 2 are exact if s has 24 bits. */
export const STEP = 1 / 8192;

/** The distance from the ends of z to 0 and to s, for a probability beyond them under Q and under P. */
export const reachOf = (tail) => Math.sqrt(-2 * log(2 * Math.min(tail, 0.1))) * (1 + 1e-9);

/**
 * The upper or the lower distribution of exp(s Z - s^2 / 2), Z standard normal.
 *
 * @param s The inverse noise multiplier, with at most 24 bits.
 * @param places Ends of the cells of Z in multiples of `STEP`, rising: whole numbers from below `-reach` to above `s + reach`.
 * @param reach From `reachOf`.
 * @param upper Whether to spread the cells to their ends, or to replace them by their means.
 */
export function lognormal(s, places, reach, upper) {
  const n = places.length - 1;
  const edges = new Float64Array(n + 1);
  const left = new Float64Array(n);
  const right = new Float64Array(n);
  let [largest, widest] = [0, 0]; // size of an exponent, width of a cell
  for (let k = 0; k <= n; k += 1) {
    const z = places[k] * STEP;
    const exponent = s * z - 0.5 * s * s;
    largest = Math.max(largest, Math.abs(exponent));
    edges[k] = exp(exponent);
    if (k === n) break;
    const h = (places[k + 1] - places[k]) * STEP;
    widest = Math.max(widest, h);
    [left[k], right[k]] = cell(z, h, s);
  }
  const edgeError = (largest + 8) * UNIT;
  if (upper) return spread(edges, left, right, s, reach, edgeError);
  return means(edges, left, right, Math.max(expm1(s * widest), 0), edgeError);
}

/** The masses that a cell of Z moves to its left and right end; all terms are positive. */
function cell(z, h, s) {
  const panels = Math.ceil((h * (Math.abs(z) + h + s + 1)) / (2 * STEEPEST) + h / 0.2);
  const whole = expm1(s * h);
  const size = h / panels;
  let [left, right] = [0, 0];
  for (let panel = 0; panel < panels; panel += 1) {
    for (let k = 0; k < 8; k += 1) {
      const y = size * (panel + NODE[k]);
      const rest = size * (panels - 1 - panel + NODE[7 - k]); // h - y
      const mass = size * WEIGHT[k] * density(z + y);
      right += mass * expm1(s * y);
      left += mass * exp(s * y) * expm1(s * rest);
    }
  }
  return [left / whole, right / whole];
}

/** Both tails: the mass goes to 0 and the mean to infinity. exp(-z^2 / 2) / 2 bounds the normal tail. */
function spread(edges, left, right, s, reach, edgeError) {
  const n = left.length;
  const values = new Float64Array(n + 2);
  const masses = new Float64Array(n + 2).fill(LEAST_MASS);
  values.set(edges, 1);
  const tail = 0.5 * exp(-0.5 * reach * reach) * (1 + 1e-9);
  masses[0] += 2 * tail; // P(Z < -reach) + P(Z > s + reach)
  for (let k = 0; k < n; k += 1) {
    masses[k + 1] += left[k];
    masses[k + 2] += right[k];
  }
  const widths = values.map((value) => s * value); // local standard deviations
  return { ...distribution(values, masses, 2 * tail + LEAST_MEAN, CELL_MASS, edgeError), widths };
}

function means(edges, left, right, growth, edgeError) {
  const masses = left.map((mass, k) => mass + right[k]);
  const values = masses.map((mass, k) => edges[k] + (edges[k + 1] - edges[k]) * (right[k] / mass));
  // the share right / mass errs by the errors of both masses
  return distribution(values, masses, 0, CELL_MASS, edgeError + (2 * CELL_MASS + 4 * UNIT) * growth + 2 * UNIT);
}

/** The distribution of 1 - q + q X: an affine map keeps the convex order. */
export function mixed(x, q) {
  const rest = 1 - q;
  let share = 0;
  const values = x.values.map((value) => {
    const found = rest + q * value;
    share = Math.max(share, (q * value) / found);
    return found;
  });
  const widths = x.widths?.map((width) => q * width);
  return { ...distribution(values, x.masses, q * x.infinity, x.massError, x.valueError * share + 4 * UNIT), widths };
}
