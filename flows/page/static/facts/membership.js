// How well any membership attack can do, if records repeat.

import { binomial } from "./binomial.js";

/**
 * The largest advantage of any attack on any learner of n records from K equally likely ones.
 *
 * It is the mean absolute deviation of the share of one value from 1 / K, times K / 2. By de Moivre, for a binomial count X
 * with p = 1 / K and m = floor(n p) + 1 this is E|X - n p| = 2 m (1 - p) P(X = m), so the advantage is K m (1 - p) P(X = m) / n.
 */
export function repeated(values, records) {
  if (values === 1) return { lower: 0, upper: 0 };
  const p = 1 / values;
  // the floor of records / values in whole numbers: the quotient of doubles may round up to the next one
  const m = Number(BigInt(records) / BigInt(values)) + 1;
  const { first, masses, slack } = binomial(records, p);
  if (m > records) return { lower: 0, upper: 1 };
  const found = (values * m * (1 - p) * masses[m - first]) / records;
  return { lower: found * (1 - 2 * slack), upper: Math.min(1, found * (1 + 2 * slack)) };
}
