// Examples and batch size: the steps of an epoch, and the sampling probability, that they determine.

import { html } from "./dom.js";
import { exactly, number } from "./numbers.js";

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

const NAMES = [
  ["examples", "n"],
  ["batch_size", "b"],
];

/**
 * A row of the form that fills steps and sampling probability.
 *
 * @param up Whether the steps are rounded up.
 * @param fields Names of the fields of the problem.
 * @param set Called with the texts of the fields that follow.
 */
export function sizes(up, fields, set) {
  const known = html("p", { class: "help", id: "help-sizes", role: "status" }, "They fill the fields below.");
  const inputs = NAMES.map(([name, symbol]) =>
    html("input", {
      id: `size-${name}`,
      type: "text",
      inputmode: "numeric",
      autocomplete: "off",
      maxlength: 20,
      placeholder: symbol,
      "aria-label": name === "examples" ? "number of examples" : "batch size",
      "aria-describedby": "help-sizes",
    }),
  );
  const changed = () => {
    const [n, b] = inputs.map((input) => number(input.value));
    if (inputs.some((input) => !input.value.trim())) return;
    if (!sound(n, b)) {
      known.textContent = "Expected two whole numbers, and at most as many examples in a batch as there are.";
      return;
    }
    const found = { steps: String(steps(n, b, up)) };
    if (fields.includes("sampling_probability")) found.sampling_probability = exactly(rate(n, b));
    const exact = n % b === 0 ? "" : `, rounded ${up ? "up" : "down"}, which is safe for the upper end`;
    known.textContent = `${exactly(n)} / ${exactly(b)} gives ${found.steps} steps an epoch${exact}.`;
    set(found);
  };
  inputs.forEach((input) => input.addEventListener("input", changed));
  const label = html("label", { for: "size-examples" }, html("span", { class: "symbol" }, "n, b"), "examples, batch");
  return html("div", { class: "field" }, label, html("span", { class: "exact" }, ...inputs), known);
}
