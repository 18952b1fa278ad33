// The epsilon that an audit in one run refutes: the bound of Steinke, Nasr and Jagielski (arXiv:2305.08846v1, Theorem 5.2).

import { log } from "../engine/elementary.js";
import { binomial, tail } from "./binomial.js";

const HALVINGS = 40;

/** Whether this many correct guesses are too unlikely for every mechanism with the odds `right / (1 - right)`. */
function unlikely({ canaries, guesses, correct, delta, confidence }, right) {
  const drawn = binomial(guesses, right);
  const at = tail(drawn, correct).upper;
  let [most, sum] = [0, at];
  const below = tail(drawn, correct).lower;
  if (delta > 0) {
    const { first, masses, slack } = drawn;
    most = Math.max(0, sum - below);
    // only where masses are kept does the sum grow, and without growth the quotient falls
    for (let i = Math.max(1, correct - first - masses.length + 1); i <= Math.min(correct - first, canaries); i += 1) {
      sum += masses[correct - i - first] * (1 + slack);
      most = Math.max(most, (sum - below) / i);
    }
  }
  return (at + 2 * canaries * delta * most) * (1 + 1e-12) <= 1 - confidence;
}

/**
 * The largest epsilon that the bound refutes, rounded down; 0 if it refutes none.
 *
 * Among at most `guesses` guesses about `canaries` canaries, each included by its own fair coin, `correct` are right. For an
 * (epsilon, delta)-private mechanism the probability of this is at most f(v) + 2 m delta max_i (f(v - i) - f(v)) / i with f the tail of
 * a binomial distribution of the guesses, each right with probability e^epsilon / (1 + e^epsilon).
 */
export function refuted(audit) {
  if (!unlikely(audit, 0.5)) return 0;
  let [low, high] = [0.5, 1 - 2 ** -40];
  for (let k = 0; k < HALVINGS; k += 1) {
    const middle = (low + high) / 2;
    if (unlikely(audit, middle)) low = middle;
    else high = middle;
  }
  return Math.max(0, log(low / (1 - low)) * (1 - 1e-13));
}
