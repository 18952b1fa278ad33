// Steps and sampling rate from the number of examples and the batch size.

const MOST = 1e15;

/** Whether b examples of n make a batch. */
export const sound = (n, b) => Number.isInteger(n) && Number.isInteger(b) && b >= 1 && b <= n && n <= MOST;

/** The steps n / b of an epoch, rounded up or down: the direction whose upper end of epsilon is safe. */
export const steps = (n, b, up) => (BigInt(n) + (up ? BigInt(b) - 1n : 0n)) / BigInt(b);

/** b / n, rounded up: the quotient of doubles is the nearest, and integers compare it with the exact one. */
export function rate(n, b) {
  const q = b / n;
  const shift = 54 - Math.floor(Math.log2(q));
  return BigInt(q * 2 ** shift) * BigInt(n) >= BigInt(b) << BigInt(shift) ? q : Math.min(1, next(q));
}

/** The next double above a positive one. */
function next(x) {
  const bits = new BigInt64Array(new Float64Array([x]).buffer);
  bits[0] += 1n;
  return new Float64Array(bits.buffer)[0];
}
