// Epsilon and delta of a distribution of the likelihood ratio, with all rounding errors on the safe side.

import { ELEMENTARY, UNIT, exp, log } from "./elementary.js";

/** The mean of (X - kappa)+, without the mean at infinity. */
function excess({ values, masses }, kappa) {
  let sum = 0;
  for (let i = values.length - 1; i >= 0 && values[i] > kappa; i -= 1) sum += masses[i] * (values[i] - kappa);
  return sum;
}

/** The mean of (y - X)+. */
function shortfall({ values, masses }, y) {
  let sum = 0;
  for (let i = 0; i < values.length && values[i] < y; i += 1) sum += masses[i] * (y - values[i]);
  return sum;
}

/** Factor for the errors of all masses, of the sums, and of a few operations. */
const factor = (x, errors) => (errors + (x.values.length + 32) * UNIT) * (1 + 1e-3);

/** A bound of delta at epsilon; `upper` says whether it is an upper bound from an upper distribution. */
export function deltaOf(x, epsilon, remove, upper) {
  const moved = (x.valueError + 2 * ELEMENTARY) * (1 + 1e-3);
  const slack = factor(x, x.massError + x.valueError);
  if (!(slack < 1e-3 && moved < 1e-3)) return upper ? 1 : 0; // so that 1.001 times an error covers e^error
  let found;
  if (remove) {
    // E (X' - kappa)+ <= e^(mass + value) E (X - kappa e^-value)+, and the reverse for a lower distribution
    const kappa = exp(epsilon) * (upper ? 1 - moved : 1 + moved);
    found = excess(x, kappa) + (upper ? x.infinity : 0);
  } else {
    // E (1 - kappa X')+ <= e^mass E (1 - kappa e^-value X)+ = e^mass E (y - X)+ / y with y = e^value / kappa
    const y = exp(-epsilon) * (upper ? 1 + moved : 1 - moved);
    found = y > 0 ? (y < Infinity ? shortfall(x, y) / y : 1) : upper ? x.masses[0] : 0;
  }
  return upper ? Math.min(1, found * (1 + slack)) : Math.min(1, found * (1 - slack));
}

/** A bound of the smallest epsilon >= 0 at delta. */
export function epsilonOf(x, delta, remove, upper) {
  const slack = factor(x, x.massError + x.valueError);
  if (!(slack < 0.01) || !x.values.length) return upper ? Infinity : 0;
  if (upper && deltaOf(x, 0, remove, true) <= delta) return 0;
  const target = upper ? delta * (1 - slack) : delta * (1 + 2 * slack);
  // `enough`: at this threshold the computed delta is at most the target
  const enough = remove
    ? (kappa) => excess(x, kappa) + (upper ? x.infinity : 0) <= target
    : (kappa) => shortfall(x, 1 / kappa) * kappa <= target;
  const at = remove ? crossing(x, target, upper ? x.infinity : 0) : 1 / reversed(x, target);
  if (upper && !(at < Infinity)) return Infinity;
  for (let shift = 4 * UNIT; shift < 0.1; shift *= 2) {
    // 1 / kappa and the product with kappa err by UNIT each, which moves the threshold by at most 4 units
    const kappa = upper ? Math.max(at, 1) * (1 + shift) : Math.max(at, 0) * (1 - shift);
    if (!upper && kappa <= 1) return 0;
    if (enough(kappa) === upper) {
      const size = log(kappa);
      const error = x.valueError * (1 + 1e-3) + 8 * UNIT + size * 2 * ELEMENTARY;
      return upper ? size + error : Math.max(0, size - error);
    }
  }
  return upper ? Infinity : 0;
}

/** The threshold at which E (X - kappa)+ plus the mean at infinity falls to the target, about. */
function crossing({ values, masses }, target, infinity) {
  if (infinity > target) return Infinity;
  let [sum, mass] = [infinity, 0];
  for (let i = values.length - 1; i > 0; i -= 1) {
    mass += masses[i];
    const next = sum + mass * (values[i] - values[i - 1]);
    if (next > target) return values[i] - (target - sum) / mass;
    sum = next;
  }
  return 0;
}

/** The largest y with E (y - X)+ <= target * y, about: the inverse of the threshold of the other direction. */
function reversed({ values, masses }, target) {
  let [sum, mass] = [0, 0];
  const n = values.length;
  for (let i = 0; i < n; i += 1) {
    mass += masses[i];
    const next = i + 1 < n ? sum + mass * (values[i + 1] - values[i]) : Infinity;
    if (i + 1 === n || next > target * values[i + 1]) {
      if (mass <= target) return values[i];
      return values[i] + Math.max(0, (target * values[i] - sum) / (mass - target));
    }
    sum = next;
  }
  return values[n - 1];
}
