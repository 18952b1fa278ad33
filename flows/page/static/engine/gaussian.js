// The profile of the Gaussian mechanism, by an integral without cancellation.

import { UNIT, exp, expm1, log } from "./elementary.js";
import { NODE, STEEPEST, WEIGHT, density } from "./quadrature.js";

/** Checked: relative error of the integral, in addition to the error of its lower limit. */
const INTEGRAL = 1e-13;

/** Squared length of the tail that is left out; its share is below e^-50. */
const FAR = 110;

/**
 * A bracket of delta at epsilon of the Gaussian mechanism with the distance mu of the means.
 *
 * With a = epsilon / mu - mu / 2 it is the integral of phi(u) (1 - exp(-mu (u - a))) over u > a: all terms are
 * positive. Rounding a by a relative amount r of its terms changes the logarithm of the integral by at most
 * (1 + |a|) r times their sum, since its derivative is below the hazard rate 1 + |a|.
 *
 * @returns {{lower: number, upper: number}}
 */
export function gaussianDelta(mu, epsilon) {
  const terms = Math.abs(epsilon / mu) + mu / 2;
  const a = epsilon / mu - mu / 2;
  if (a > 37) return { lower: 0, upper: 1e-295 };
  if (a < -1e6) return { lower: 0, upper: 1 };
  return integral(a, mu, terms);
}

/** The integral beyond a; without mu that of phi alone, the probability of a standard normal number beyond a. */
function integral(a, mu = Infinity, terms = Math.abs(a)) {
  const positive = Math.max(a, 0);
  const end = Math.sqrt(positive * positive + FAR);
  const start = Math.max(a, -11);
  let [sum, from] = [0, start];
  while (from < end) {
    const flat = mu === Infinity || mu * (from - a) > 44; // there 1 - exp(-mu (u - a)) is 1 within 1e-19
    const steep = Math.max(Math.abs(from), 1) + 0.4 + (flat ? 0 : mu);
    const width = Math.min((2 * STEEPEST) / steep, 0.2, end - from);
    for (let k = 0; k < 8; k += 1) {
      const u = from + width * NODE[k];
      const kept = flat ? 1 : -expm1(-mu * (from - a + width * NODE[k]));
      sum += width * WEIGHT[k] * density(u) * kept;
    }
    if (from + width === from) return { lower: 0, upper: 1 };
    from += width;
  }
  const slack = INTEGRAL + 8 * UNIT * (1 + Math.abs(a)) * terms;
  if (!(slack < 0.5)) return { lower: 0, upper: 1 };
  return { lower: Math.max(0, sum * (1 - slack)), upper: Math.min(1, sum * (1 + slack)) };
}

/** A bracket of the smallest epsilon >= 0 of the Gaussian mechanism with the distance mu, at a delta. */
export function gaussianEpsilon(mu, delta) {
  // epsilon <= mu^2 / 2 + mu sqrt(2 ln(1 / delta)), by the bound exp(-a^2 / 2) of the normal tail
  const most = (0.5 * mu * mu + mu * Math.sqrt(-2 * log(delta))) * (1 + 1e-12) + 1e-290;
  if (gaussianDelta(mu, 0).upper <= delta) return { lower: 0, upper: 0 };
  const upper = last(0, most, (epsilon) => gaussianDelta(mu, epsilon).upper > delta)[1];
  const lower = last(0, upper, (epsilon) => gaussianDelta(mu, epsilon).lower > delta)[0];
  return { lower, upper };
}

/** The probability of a standard normal number beyond a. */
function tail(a) {
  if (a > 37) return { lower: 0, upper: 1e-295 };
  return a < -37 ? { lower: 1 - UNIT, upper: 1 } : integral(a);
}

/** The probability beyond a, about. */
export const tailOf = (a) => tail(a).upper;

/** The number beyond which a standard normal one is with this probability, about. */
export function quantile(rate) {
  // Newton's method for the logarithm of the tail
  let a = Math.sqrt(-2 * log(2 * Math.min(rate, 1 - rate))) * (rate < 0.5 ? 1 : -1);
  for (let k = 0; k < 12; k += 1) {
    const found = tailOf(a);
    const step = (rate < 0.5 ? found * log(found / rate) : found - rate) / density(a);
    a += step;
    if (Math.abs(step) < 1e-12 * (1 + Math.abs(a))) break;
  }
  return a;
}

/** A bracket of the largest true positive rate at a false positive rate, of tests that report outputs beyond a threshold. */
export function gaussianTpr(mu, rate) {
  const a = quantile(rate);
  let [lower, upper] = [rate, 1];
  for (let slack = 1e-12; slack < 1e-3 && (lower === rate || upper === 1); slack *= 8) {
    const move = slack * (1 + Math.abs(a));
    if (tail(a + move).upper <= rate) lower = Math.max(lower, tail(a + move - mu).lower);
    if (tail(a - move).lower >= rate) upper = Math.min(upper, tail(a - move - mu).upper);
  }
  return { lower, upper };
}

/** Two neighbouring numbers, relative distance 1e-13: `holds` at the first one (or it is `low`), not at the second. */
function last(low, high, holds) {
  let [from, to] = [low, high];
  for (let k = 0; k < 200 && to - from > 1e-13 * to; k += 1) {
    const middle = from > 0 ? 0.5 * (from + to) : to / 16;
    if (holds(middle)) from = middle;
    else to = middle;
    if (to < 1e-290) break;
  }
  return [from, to];
}
