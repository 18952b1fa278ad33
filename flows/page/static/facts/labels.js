// Labels released as shares in bags, compared with randomized response.

import { log } from "../engine/elementary.js";
import { binomial, mean } from "./binomial.js";

const SLACK = 1e-13; // far above the errors of a few operations and of the logarithm

/**
 * The probability that the best guess of a label is right, if the shares of label 1 in bags are released.
 *
 * The labels of a bag are independent, each 1 with probability p, and nothing else is known of them. Given the number c of
 * ones among k, each label is 1 with probability c / k, so the accuracy is the mean of max(c, k - c) / k
 * (arXiv:2406.02797v1; `label-advantage` with the prior point(p) is this accuracy minus max(p, 1 - p)).
 */
export function accuracy(k, p) {
  return mean(binomial(k, p), (c) => Math.max(c, k - c) / k);
}

/** The epsilon of randomized response whose best guess is right with this probability; 0 if a blind guess is as good. */
export function response({ lower, upper }, p) {
  const blind = Math.max(p, 1 - p);
  const of = (x) => (x >= 1 ? Infinity : Math.max(0, log(x / (1 - x))));
  if (upper <= blind * (1 + SLACK)) return { lower: 0, upper: of(upper) * (1 + SLACK) + SLACK };
  return { lower: lower > blind ? of(lower) * (1 - SLACK) : 0, upper: of(upper) * (1 + SLACK) + SLACK };
}
