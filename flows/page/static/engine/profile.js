// Epsilon and delta of a likelihood ratio, with all rounding errors on the safe side.

import { ELEMENTARY, UNIT, exp, log } from "./elementary.js";
import { LEAST_MEAN } from "./distribution.js";

/** Thresholds below this are not divided by, so that quotients have few digits lost to underflow: see `LEAST`. */
const SMALL = 1e-150;

/** The smallest threshold; below it, upper bounds use this one. */
const LEAST_THRESHOLD = 1e-300;

/** Added to the probabilities of a shortfall: more than all products that underflow, divided by `SMALL`. */
const LEAST = 1e-160;

/** The largest threshold: below the product of two largest values. */
const MOST_RATIO = 1e290;

/**
 * Means of (Y - c)+ and (c - Y)+ in constant time, from sums over the atoms; all terms are positive.
 *
 * `above[j]` is the mass from atom j on, `mean[j]` the mean of Y there, and `excess[j]` that of (Y - y_j)+; `below[j]` is the
 * mass up to atom j, `part[j]` the mean of Y there, and `short[j]` that of (y_j - Y)+. Their relative errors are at most
 * twice the number of atoms in units, and a few.
 */
function tables({ values, masses }) {
  const n = values.length;
  const [above, mean, excess, below, part, short] = [0, 0, 0, 0, 0, 0].map(() => new Float64Array(n));
  for (let j = n - 1; j >= 0; j -= 1) {
    above[j] = masses[j] + (j + 1 < n ? above[j + 1] : 0);
    mean[j] = masses[j] * values[j] + (j + 1 < n ? mean[j + 1] : 0);
    excess[j] = j + 1 < n ? excess[j + 1] + above[j + 1] * (values[j + 1] - values[j]) : 0;
  }
  for (let j = 0; j < n; j += 1) {
    below[j] = masses[j] + (j ? below[j - 1] : 0);
    part[j] = masses[j] * values[j] + (j ? part[j - 1] : 0);
    short[j] = j ? short[j - 1] + below[j - 1] * (values[j] - values[j - 1]) : 0;
  }
  return { above, mean, excess, below, part, short };
}

/** Logarithms of thresholds below and above all positive ratios. */
function rangeOf(x, y, times) {
  const [least, most] = [[x, y].map((each) => Math.max(each.find((value) => value > 0), 1e-145)), [x[x.length - 1], y[y.length - 1]]];
  const ends = [least, most].map(([a, b]) => log(times ? a * b : a + b));
  return [ends[0] - 1e-3, ends[1] + 1e-3];
}

/**
 * The profile of the product, or of the sum, of two independent ratios, without cells: for every atom of the first ratio,
 * the mean over the second one has a threshold of its own, which errs by a unit.
 *
 * @param times Whether values are multiplied, otherwise added.
 * @param upper Whether quotients by tiny thresholds are rounded up.
 * @returns `excess(kappa)`, the mean of (X - kappa)+ without the mean at infinity, `shortfall(y)`, that of (1 - X / y)+,
 *   `test(at, above)`, the mass of X above or below `at` and the mean of X there, `terms`, the number of additions, and the
 *   errors of a distribution.
 */
export function pairProfile(a, b, times, upper) {
  const [x, p, y] = [a.values, a.masses, b.values];
  const n = y.length;
  const { above, mean, excess, below, part, short } = tables(b);
  return {
    infinity: a.infinity + b.infinity + LEAST_MEAN,
    massError: a.massError + b.massError,
    valueError: (times ? a.valueError + b.valueError : Math.max(a.valueError, b.valueError)) + 4 * UNIT,
    terms: n && x.length ? x.length + 2 * n : 0,
    range: n && x.length ? rangeOf(x, y, times) : [0, 0],
    excess(kappa) {
      let sum = 0;
      for (let i = 0, j = n; i < x.length; i += 1) {
        const c = times ? kappa / x[i] : kappa - x[i];
        while (j > 0 && y[j - 1] > c) j -= 1;
        if (j < n) sum += (times ? p[i] * x[i] : p[i]) * (excess[j] + above[j] * (y[j] - c));
      }
      return sum;
    },
    shortfall(y0) {
      const threshold = Math.max(y0, LEAST_THRESHOLD); // it rises with the threshold
      if (threshold > y0 && !upper) return 0;
      let sum = 0;
      for (let i = 0, j = n - 1; i < x.length; i += 1) {
        const c = times ? threshold / x[i] : threshold - x[i];
        if (!(c >= 0)) break;
        while (j >= 0 && y[j] >= c) j -= 1;
        if (j < 0) break;
        const by = times ? c : threshold;
        if (by === Infinity) sum += p[i] * below[j];
        else if (by > SMALL) sum += p[i] * ((short[j] + below[j] * (c - y[j])) / by);
        else if (upper) sum += p[i] * below[j];
      }
      return sum;
    },
    test(at, over) {
      let [mass, moment, j] = [0, 0, over ? n : n - 1];
      for (let i = 0; i < x.length; i += 1) {
        const c = times ? at / x[i] : at - x[i];
        if (over) while (j > 0 && y[j - 1] > c) j -= 1;
        else while (j >= 0 && y[j] >= c) j -= 1;
        if (j < 0) break;
        if (j === n) continue;
        const [found, share] = over ? [above[j], mean[j]] : [below[j], part[j]];
        mass += p[i] * found;
        moment += times ? p[i] * x[i] * share : p[i] * (x[i] * found + share);
      }
      return [mass, moment];
    },
  };
}

/** The profile of a distribution: that of its product with the ratio 1. */
export const profile = (x, upper) =>
  pairProfile(x, { values: [1], masses: [1], infinity: 0, massError: 0, valueError: 0 }, true, upper);

/** Factor for the errors of all masses, of the sums, and of a few operations. */
const factor = (x, errors) => (errors + (x.terms + 64) * UNIT) * (1 + 1e-3);

/** The computed delta at the threshold kappa, or for the other direction at its inverse. */
const computed = (x, at, remove, upper) => {
  if (remove) return x.excess(at) + (upper ? x.infinity : 0);
  return x.shortfall(at) + (upper ? LEAST : -LEAST);
};

/**
 * A bound of the mean of (X - at)+, or of (1 - X / at)+ in the other direction, for a threshold that errs by 8 units; `upper`
 * says whether it is an upper bound from an upper distribution.
 */
export function hingeOf(x, threshold, remove, upper) {
  const moved = (x.valueError + 2 * ELEMENTARY) * (1 + 1e-3);
  const slack = factor(x, x.massError + x.valueError);
  if (!(slack < 1e-3 && moved < 1e-3)) return upper ? 1 : 0; // so that 1.001 times an error covers e^error
  // E (X' - kappa)+ <= e^(mass + value) E (X - kappa e^-value)+, and E (1 - X' / y)+ <= e^mass E (1 - X / (y e^value))+;
  // the reverse holds for a lower distribution
  const found = computed(x, threshold * (remove === upper ? 1 - moved : 1 + moved), remove, upper);
  return Math.max(0, Math.min(1, found * (upper ? 1 + slack : 1 - slack)));
}

/** A bound of delta at epsilon. */
export const deltaOf = (x, epsilon, remove, upper) => hingeOf(x, exp(remove ? epsilon : -epsilon), remove, upper);

/** Thresholds of a ladder over the range of a ratio, and bisections between two of them. */
const [RUNGS, LOOKS] = [64, 16];

/** Thresholds of two tests, whose false positive rates enclose a rate, if possible: the first one is at most the rate. */
function tests(x, rate, remove) {
  const wrong = remove ? 0 : 1;
  const side = (x.ladders ??= {});
  side[remove] ??= Array.from({ length: RUNGS + 1 }, (_, k) => {
    const at = exp(x.range[0] + (k / RUNGS) * (x.range[1] - x.range[0]));
    return { at, rate: x.test(at, remove)[wrong] };
  });
  const rungs = remove ? side[remove] : [...side[remove]].reverse(); // their rates fall
  const k = rungs.findIndex((rung) => rung.rate <= rate);
  let [strict, loose] = [rungs[k < 0 ? RUNGS : k].at, rungs[k < 0 ? RUNGS : Math.max(k - 1, 0)].at];
  for (let look = 0; look < LOOKS; look += 1) {
    const middle = Math.sqrt(strict) * Math.sqrt(loose);
    if (x.test(middle, remove)[wrong] > rate) loose = middle;
    else strict = middle;
  }
  return [strict, loose];
}

/** The threshold kappa of the best test with a false positive rate, about. */
export function kappaOf(x, rate, remove) {
  const [at] = tests(x, rate, remove);
  return remove ? at : 1 / at;
}

/**
 * A bound of the largest true positive rate of a test whose false positive rate is `rate`.
 *
 * From above it is kappa rate + H(kappa) for any kappa. From below, tests that report all ratios beyond a threshold have two
 * rates; other tests choose between two of these at random, or between one of them and a constant report.
 */
export function tprOf(x, rate, remove, upper) {
  const ends = tests(x, rate, remove);
  if (upper) {
    const bounds = ends.map((at) => (remove ? at : 1 / at) * rate + hingeOf(x, at, remove, true));
    return Math.min(1, ...bounds.map((bound) => bound * (1 + 4 * UNIT)));
  }
  const slack = factor(x, x.massError + x.valueError);
  if (!(slack < 1e-3)) return rate;
  // (X - kappa)+ is at least X - kappa on any event, for every kappa, and so is its mean
  const points = ends.map((at) => x.test(at, remove)).map(([q, p]) => (remove ? [q, p] : [p, q]));
  const known = [[0, 0], ...points.map(([wrong, right]) => [wrong * (1 + slack) + LEAST_MEAN, right * (1 - slack)]), [1, 1]];
  let best = rate;
  for (const [a, b] of known) {
    for (const [c, d] of known) {
      if (a <= rate && rate <= c && a < c) best = Math.max(best, (b + ((rate - a) / (c - a)) * (d - b)) * (1 - 8 * UNIT));
    }
  }
  return best;
}

/** A bound of the smallest epsilon >= 0 at delta. */
export function epsilonOf(x, delta, remove, upper) {
  const slack = factor(x, x.massError + x.valueError);
  if (!(slack < 0.01) || !x.terms) return upper ? Infinity : 0;
  if (upper && deltaOf(x, 0, remove, true) <= delta) return 0;
  const target = upper ? delta * (1 - slack) : delta * (1 + 2 * slack);
  const enough = (kappa) => computed(x, remove ? kappa : 1 / kappa, remove, upper) <= target;
  let [low, high] = [1, MOST_RATIO]; // not enough at the one, enough at the other
  if (!enough(high)) {
    if (upper) return Infinity;
    low = high;
  }
  while (high - low > 1e-13 * (high - 1)) {
    const middle = high > 2 * low ? Math.sqrt(low) * Math.sqrt(high) : low + 0.5 * (high - low);
    if (middle <= low || middle >= high) break;
    if (enough(middle)) high = middle;
    else low = middle;
  }
  if (!upper && low === 1) return 0;
  const size = log(upper ? high : low);
  // the inverse of kappa errs by a unit
  const error = x.valueError * (1 + 1e-3) + 8 * UNIT + size * 2 * ELEMENTARY;
  return upper ? size + error : Math.max(0, size - error);
}
