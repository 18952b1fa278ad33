// Elementary functions with proved error bounds. The functions of the platform have none: ECMAScript calls
// them "implementation-approximated", also x ** y, and their last bits differ between browsers. All modules of the engine
// use only +, -, *, /, Math.sqrt and functions such as Math.floor, which are exact or correctly rounded.

/** The unit roundoff of doubles. */
export const UNIT = 1 / 9007199254740992;

/** Checked: relative error of `exp`, for results above 1e-300, and of `expm1` and `log`. */
export const ELEMENTARY = 4 * UNIT;

// ln 2 in two parts: multiples of the high part by an exponent of a double are exact (32 bits and 11 bits).
const LN2_HIGH = 6.93147180369123816490e-1;
const LN2_LOW = 1.90821492927058770002e-10;
const PER_LN2 = 1.44269504088896338700;

const whole = new Float64Array(1);
const words = new Uint32Array(whole.buffer);
const HIGH = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1 ? 1 : 0; // the index of the high word

/** 2^k for a whole number k in [-1022, 1023]. */
export function power(k) {
  words[1 - HIGH] = 0;
  words[HIGH] = (k + 1023) << 20;
  return whole[0];
}

/** The whole number k with 2^k <= x < 2^(k + 1), for x >= 2^-1022. */
export function exponent(x) {
  whole[0] = x;
  return (words[HIGH] >>> 20) - 1023;
}

// 1 / n! for n = 2 to 14. The rest of the series of e^r is below 3e-19 for |r| <= ln(2) / 2.
const TAYLOR = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14].map((n) => {
  let product = 1;
  for (let k = 2; k <= n; k += 1) product *= k; // exact up to 18!
  return 1 / product;
});

/** e^r - 1 for |r| <= 0.35 and a correction c of r, which is below a unit in the last place of r. */
function small(r, c) {
  let q = TAYLOR[12];
  for (let n = 11; n >= 0; n -= 1) q = q * r + TAYLOR[n];
  return r + (r * r * q + c);
}

/** The whole number k and the two parts of r in x = k ln 2 + r, |r| <= ln(2) / 2. */
const reduced = { k: 0, r: 0, c: 0 };
function reduce(x) {
  const k = Math.round(x * PER_LN2);
  const high = x - k * LN2_HIGH;
  const low = k * LN2_LOW;
  const r = high - low;
  reduced.k = k;
  reduced.r = r;
  reduced.c = high - r - low;
}

/** e^x; Infinity if it exceeds the doubles. */
export function exp(x) {
  if (!(x < 709.78)) return x >= 709.78 ? Infinity : NaN;
  if (x < -745.2) return 0;
  reduce(x);
  const { k } = reduced;
  const y = 1 + small(reduced.r, reduced.c);
  if (k > 1023) return y * power(k - 1) * 2;
  return k < -1021 ? y * power(k + 64) * power(-64) : y * power(k);
}

/** e^x - 1, with a small relative error near 0 too. */
export function expm1(x) {
  if (Math.abs(x) < 0.34) return small(x, 0);
  if (x > 700) return exp(x);
  if (x < -40) return -1;
  reduce(x);
  const scale = power(reduced.k);
  return scale * small(reduced.r, reduced.c) + (scale - 1);
}

// 2 / (2 n + 1) for n = 1 to 12: the series of 2 artanh(s) / s - 2 in s^2 <= 0.0295. Its rest is below 1e-20.
const ARTANH = Array.from({ length: 12 }, (_, k) => 2 / (2 * k + 3));

/** The natural logarithm of a positive number, with a small relative error near 1 too. */
export function log(x) {
  if (!(x > 0)) return x === 0 ? -Infinity : NaN;
  if (x === Infinity) return x;
  const shift = x < 1e-300 ? 64 : 0; // subnormal numbers have no leading bit
  whole[0] = shift ? x * power(64) : x;
  let k = (words[HIGH] >>> 20) - 1023 - shift;
  words[HIGH] = (words[HIGH] & 0xfffff) | 0x3ff00000;
  let m = whole[0];
  if (m > 1.4142135623730951) {
    m /= 2;
    k += 1;
  }
  const f = m - 1; // exact
  const s = f / (2 + f);
  const z = s * s;
  let rest = ARTANH[11];
  for (let n = 10; n >= 0; n -= 1) rest = rest * z + ARTANH[n];
  const half = 0.5 * f * f;
  return k * LN2_HIGH - (half - (s * (half + z * rest) + k * LN2_LOW) - f);
}

/** The cube root of x >= 0 for the choice of cells, without a checked error. */
export const cubeRoot = (x) => exp(log(x) / 3);

/** The root of x^2 + y^2 for x, y >= 0 whose squares may exceed the doubles; without a checked error. */
export function length(x, y) {
  const most = Math.max(x, y);
  if (most === 0) return 0;
  const ratio = Math.min(x, y) / most;
  return most * Math.sqrt(1 + ratio * ratio);
}
