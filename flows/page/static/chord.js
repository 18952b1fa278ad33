// Bounds of epsilon between two deltas, by the convexity of the privacy profile in exp(epsilon).
//
// The functions of privcore/numerics/profile_chord.py, with the proof there, and with the same results to the bit:
// only sums, products and quotients, in the same order.

const SLACK = 2 ** -40;
const MOVE = 2 ** -48;
const TERMS = 40;
const [LARGEST_FALL, LARGEST_RISE, LARGEST_LOSS, LARGEST_RATIO] = [60, 2, 0.75, 1e15];

/** The first terms of exp(x) - 1, for x >= 0, by Horner's rule. */
function grown(x) {
  let total = 1;
  for (let k = TERMS; k > 1; k -= 1) total = 1 + (x * total) / k;
  return x * total;
}

/** The first terms of log((1 + u) / (1 - u)), for u in [0, 1), by Horner's rule. */
function logarithm(u) {
  let total = 0;
  for (let k = 2 * TERMS - 1; k > 0; k -= 2) total = 1 / k + u * u * total;
  return 2 * (u * total);
}

/** An upper bound of epsilon at a delta between two places `[delta, upper end of epsilon]`. */
export function epsilonAbove(delta, [leftDelta, most], [rightDelta, least]) {
  if (!(least < most)) return most;
  const share = (delta - leftDelta) / (rightDelta - leftDelta);
  const fallen = grown(Math.min(most - least, LARGEST_FALL));
  const part = share * (fallen / (1 + fallen)) * (1 - SLACK);
  const gain = logarithm(part / (2 - part)) * (1 - SLACK);
  return Math.min(most, most - gain + most * MOVE);
}

/** A lower bound of epsilon at a delta from `[delta, lower end]` near it, and `[delta, upper end]` beyond that. */
export function epsilonBelow(delta, [nearDelta, least], [farDelta, most]) {
  const ratio = (nearDelta - delta) / (farDelta - nearDelta);
  if (nearDelta > delta) {
    if (!(most < least)) return least;
    const fallen = grown(Math.min(least - most, LARGEST_FALL));
    const part = Math.min(ratio, LARGEST_RATIO) * (fallen / (1 + fallen)) * (1 - SLACK);
    const gain = logarithm(part / (2 + part)) * (1 - SLACK);
    return Math.max(least, least + gain - (least + gain) * MOVE);
  }
  const rise = Math.max(most - least, 0);
  if (!(rise <= LARGEST_RISE)) return 0;
  const part = ratio * grown(rise) * (1 + SLACK);
  if (!(part <= LARGEST_LOSS)) return 0;
  const loss = logarithm(part / (2 - part)) * (1 + SLACK);
  return Math.max(0, least - loss - least * MOVE);
}
