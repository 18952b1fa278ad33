// Powers by repeated doubling: the mean, or the product, of many independent copies of a likelihood ratio.

import { edgesOf } from "./cells.js";
import { productOf, sumOf, weighted } from "./combine.js";

/** Combinations that a power takes: the number of operations of `meanOf` and `powerOf`. */
export function combinations(times) {
  let found = 0;
  for (let n = times; n > 1; n = Math.floor(n / 2)) found += n % 2 ? 2 : 1;
  return found;
}

/** The mean of independent copies. `res` has the fineness, the tail for one copy, its share of delta, and `step`. */
export function meanOf(x, times, res) {
  return powered(x, times, res, (a, m, b, n) => {
    const one = weighted(a, m / (m + n));
    const other = a === b ? one : weighted(b, n / (m + n));
    const cells = edgesOf(one.upper, other.upper, false, { ...res, tail: res.tail * (m + n) });
    res.step(one.upper.values.length * other.upper.values.length);
    return sumOf(one, other, cells);
  });
}

/** The product of independent copies. */
export function powerOf(x, times, res) {
  return powered(x, times, res, (a, m, b, n) => multiplied(a, b, m + n, res));
}

/**
 * The product of two independent ratios, of `copies` basic ones.
 *
 * @throws RangeError The mean beyond the doubles exceeds `res.most`, so that no bound can follow.
 */
export function multiplied(a, b, copies, res) {
  const cells = edgesOf(a.upper, b.upper, true, { ...res, tail: res.tail * copies });
  const found = productOf(a, b, cells);
  if (found.upper.infinity > res.most) throw new RangeError("The likelihood ratio exceeds the range of doubles.");
  res.step(a.upper.values.length * b.upper.values.length);
  return found;
}

function powered(x, times, res, combine) {
  const bits = times.toString(2);
  let [found, copies] = [x, 1];
  for (const bit of bits.slice(1)) {
    found = combine(found, copies, found, copies);
    copies *= 2;
    if (bit === "1") {
      found = combine(found, copies, x, 1);
      copies += 1;
    }
  }
  return found;
}
