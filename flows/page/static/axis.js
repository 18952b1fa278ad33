// Axes of charts: places of values, and ticks at round numbers.

import { exactly } from "./numbers.js";

/** A tick in a few letters: 1e6 for a million. */
const short = (x) => (x === 0 || (Math.abs(x) >= 1e-3 && Math.abs(x) < 1e5) ? exactly(x) : x.toExponential().replace("+", ""));

/** Round steps 1, 2 and 5 times a power of ten between two ends, about five of them. */
function linear(low, high) {
  const rough = (high - low) / 5;
  const ten = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * ten).find((each) => each >= rough);
  const first = Math.ceil(low / step);
  const count = Math.floor(high / step) - first + 1;
  return Array.from({ length: count }, (_, k) => Number(((first + k) * step).toPrecision(12)));
}

/** Powers of ten between two positive ends, with 2 and 5 between them if there are few. */
function decades(low, high) {
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const every = Math.ceil((last - first) / 7);
  const digits = last - first <= 2 ? [1, 2, 5] : [1];
  const found = [];
  for (let power = first; power <= last; power += every) {
    digits.forEach((digit) => found.push(Number(`${digit}e${power}`)));
  }
  return found.filter((x) => x >= low && x <= high);
}

/**
 * Return an axis.
 *
 * @param values The values to show.
 * @param from Position of the smallest value.
 * @param to Position of the largest value.
 * @param zero Whether a linear axis starts at 0.
 * @param ratio Of the largest to the smallest value, from which the axis is logarithmic.
 * @returns `at`, the position of a value, never outside; and `ticks`, values with their texts.
 */
export function axis(values, from, to, zero = false, ratio = 20) {
  let [low, high] = [Math.min(...values), Math.max(...values)];
  const logarithmic = low > 0 && high / low >= ratio;
  if (!logarithmic && zero) low = Math.min(low, 0);
  if (low === high) [low, high] = low === 0 ? [-1, 1] : [low - Math.abs(low) / 2, high + Math.abs(low) / 2];
  const scaled = logarithmic ? Math.log : (x) => x;
  const margin = (scaled(high) - scaled(low)) * 0.03;
  const [start, end] = [scaled(low) - margin, scaled(high) + margin];
  const at = (x) => {
    const place = logarithmic && x <= 0 ? 0 : (scaled(x) - start) / (end - start);
    return Number((from + (to - from) * Math.min(Math.max(place, 0), 1)).toFixed(2));
  };
  const ticks = logarithmic ? decades(low, high) : linear(low, high);
  return { at, ticks: ticks.map((x) => [x, short(x)]) };
}
