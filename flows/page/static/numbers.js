// Numbers as text, by the same rules as privsweep's command line: ends rounded outwards, fields without loss.

const DIGITS = 6;

/** Digits and exponent of a positive number, exact to 100 digits. */
function expanded(x) {
  const [mantissa, exponent] = x.toExponential(99).split("e");
  return [mantissa.replace(".", ""), Number(exponent)];
}

function rounded(x, up, digits) {
  if (Number.isNaN(x)) throw new RangeError("Expected a number to print, got NaN.");
  if (!Number.isFinite(x)) return x > 0 ? "inf" : "-inf";
  if (x === 0) return "0";
  const [all, magnitude] = expanded(Math.abs(x));
  let exponent = magnitude;
  let kept = all.slice(0, digits);
  if (up === x > 0 && /[1-9]/.test(all.slice(digits))) {
    kept = String(Number(kept) + 1);
    if (kept.length > digits) exponent += 1;
  }
  return (x < 0 ? "-" : "") + written(kept.replace(/0+$/, ""), exponent);
}

/** Digits with an exponent: in full between 1e-5 and 1e7, else as 1.5e-9. */
function written(digits, exponent) {
  if (exponent < -5 || exponent > 6) {
    const rest = digits.length > 1 ? `.${digits.slice(1)}` : "";
    return `${digits[0]}${rest}e${exponent < 0 ? "-" : "+"}${Math.abs(exponent)}`;
  }
  if (exponent < 0) return `0.${"0".repeat(-exponent - 1)}${digits}`;
  const whole = digits.padEnd(exponent + 1, "0");
  return whole.length > exponent + 1 ? `${whole.slice(0, exponent + 1)}.${whole.slice(exponent + 1)}` : whole;
}

/** The smallest decimal of six digits, or another number of them, that is at least x. */
export const roundedUp = (x, digits = DIGITS) => rounded(x, true, digits);

/** The largest decimal of six digits, or another number of them, that is at most x. */
export const roundedDown = (x, digits = DIGITS) => rounded(x, false, digits);

/** A value as people write it, without loss: the shortest text that reads back the same. */
export function exactly(value) {
  if (typeof value !== "number") return String(value);
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  if (value === 0 || Number.isSafeInteger(value)) return String(value);
  const [mantissa, exponent] = value.toExponential().split("e");
  const power = Number(exponent);
  if (power >= -4 && power < 16) {
    const sign = value < 0 ? "-" : "";
    const digits = mantissa.replace(/[-.]/g, "");
    if (power < 0) return `${sign}0.${"0".repeat(-power - 1)}${digits}`;
    const whole = digits.padEnd(power + 1, "0");
    return sign + whole.slice(0, power + 1) + (whole.length > power + 1 ? `.${whole.slice(power + 1)}` : "");
  }
  return `${mantissa}e${power}`;
}

/** The number in a text, or NaN; also NaN for a number out of the range of floats, such as 1e-400. */
export function number(text) {
  const word = text.trim();
  if (/^[+]?inf(inity)?$/i.test(word)) return Infinity;
  const [, digits] = /^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?$/i.exec(word) ?? [];
  const x = digits === undefined ? NaN : Number(word);
  return Number.isFinite(x) && (x !== 0 || !/[1-9]/.test(digits)) ? x : NaN;
}

/** A number with three digits, for a slider. */
export const about = (x) => Number(x.toPrecision(3));
