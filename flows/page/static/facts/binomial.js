// The binomial distribution with proved relative errors, for closed forms.

const UNIT = 2 ** -53;
const TINY = 2 ** -120; // masses below this part of the largest one are cut, and bounded

/**
 * The probabilities of a binomial distribution around its mode.
 *
 * Each mass is a product of ratios (n - k) / (k + 1) * p / (1 - p) from the mode, divided by the sum. A ratio errs by at most
 * 6 units, a sum of m positive terms by m units. Beyond a cut the ratios fall further, so the rest is at most a geometric series.
 *
 * @param n Number of trials, a whole number >= 0, at most 1e7.
 * @param p Probability of success, in (0, 1).
 * @returns `first`, the smallest count that is kept; `masses`, by count; `slack`, a bound of the relative error of every
 *   mass and of every sum of masses; and `rest`, a bound of the probability of all other counts.
 */
export function binomial(n, p) {
  const odds = p / (1 - p);
  const mode = Math.min(Math.floor((n + 1) * p), n);
  const [down, up] = [[], []];
  let [lost, mass] = [0, 1];
  for (let k = mode; k > 0; k -= 1) {
    const ratio = k / ((n - k + 1) * odds);
    mass *= ratio;
    if (mass < TINY) {
      lost += mass / (1 - ratio);
      break;
    }
    down.push(mass);
  }
  mass = 1;
  for (let k = mode; k < n; k += 1) {
    const ratio = ((n - k) * odds) / (k + 1);
    mass *= ratio;
    if (mass < TINY) {
      lost += mass / (1 - ratio);
      break;
    }
    up.push(mass);
  }
  const masses = [...down.reverse(), 1, ...up];
  const total = masses.reduce((sum, each) => sum + each, 0);
  const slack = (16 * masses.length + 64) * UNIT + 2 * lost;
  return { first: mode - down.length, masses: masses.map((each) => each / total), slack, rest: 2 * lost };
}

/** The probability of at least `count` successes, as a lower and an upper end. */
export function tail({ first, masses, slack, rest }, count) {
  let sum = 0;
  for (let k = masses.length - 1; k >= 0 && first + k >= count; k -= 1) sum += masses[k];
  return { lower: sum * (1 - slack), upper: Math.min(1, sum * (1 + slack) + rest) };
}

/** The mean of a function with values in [0, 1], which errs by at most 4 units, as a lower and an upper end. */
export function mean({ first, masses, slack, rest }, value) {
  const sum = masses.reduce((all, mass, k) => all + mass * value(first + k), 0);
  return { lower: sum * (1 - 2 * slack), upper: Math.min(1, sum * (1 + 2 * slack) + rest) };
}
