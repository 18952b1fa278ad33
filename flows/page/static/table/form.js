// The form: for every field an exact input, and a slider or a list of the stored values. A slider is logarithmic; examples and batch size determine other fields.

import { fill, html } from "../dom.js";
import { range, reach, stored, unstored } from "./hull.js";
import { about, exactly, number } from "../numbers.js";
import { rate, sound, steps } from "../sizes.js";

function choice(field, values, text) {
  const words = field.kind === "choice" ? field.choices : values;
  const options = [...new Set([...words, text])].map((word) => {
    const known = values.includes(word);
    const shown = word === "" ? "choose" : known ? word : `${word} (not stored)`;
    return html("option", { value: word, selected: word === text }, shown);
  });
  return html("select", { id: `exact-${field.name}`, "aria-describedby": `help-${field.name}` }, options);
}

function label(field) {
  const symbol = html("span", { class: "symbol" }, field.symbol);
  return html("label", { for: `exact-${field.name}` }, symbol, html("span", {}, field.name.replaceAll("_", " ")));
}

/**
 * Draw the form of a problem.
 *
 * @param table From `prepare`.
 * @param texts Text by field.
 * @param changed Called after every change, with the texts.
 */
export function draw(table, texts, changed) {
  const inputs = new Map();
  const sliders = new Map();
  const report = () => changed(Object.fromEntries([...inputs].map(([name, input]) => [name, input.value])));
  const rows = table.problem.fields.map((field) => {
    const { name } = field;
    const values = reach(table, field);
    const known = unstored(table) ? "" : ` Stored: ${range(stored(table)[name])}.`;
    const numeric = field.kind === "real" || field.kind === "integer";
    const text = texts[name] ?? "";
    const help = html("p", { class: "help", id: `help-${name}` }, `${field.meaning}.${known}`);
    const unit = field.unit ? html("span", { class: "unit" }, field.unit) : null;
    const typed = field.kind === "text" && unstored(table);
    if (!numeric && !typed) {
      const select = choice(field, values, text);
      select.addEventListener("change", report);
      inputs.set(name, select);
      return html("div", { class: "field" }, label(field), select, help);
    }
    const input = html(typed ? "textarea" : "input", {
      id: `exact-${name}`,
      type: typed ? null : "text",
      rows: typed ? 4 : null,
      autocomplete: "off",
      spellcheck: "false",
      maxlength: typed ? 1000 : 60,
      "aria-describedby": `help-${name}`,
    });
    input.value = text;
    inputs.set(name, input);
    const slider = numeric && values.length > 1 ? sliderOf(unstored(table) ? { ...field, trend: 1 } : field, values, input, report) : null;
    sliders.set(name, slider);
    input.addEventListener("input", () => {
      slider?.follow();
      report();
    });
    return html("div", { class: "field" }, label(field), html("span", { class: "exact" }, input, unit), slider?.element, help);
  });
  const { rounded, fields } = table.problem;
  const set = (found) => {
    for (const [name, value] of Object.entries(found)) {
      inputs.get(name).value = value;
      sliders.get(name)?.follow();
    }
    report();
  };
  const names = fields.map(({ name }) => name);
  const sized = rounded ? sizes(rounded === "up", names, set, table.problem.name.startsWith("shuffling-")) : null;
  fill("form", sized, rows);
}

/** Mark the field that an error names, and only this field. */
export function mark(name) {
  for (const input of document.querySelectorAll("#form input[type=text], #form textarea, #form select")) {
    if (input.id === `exact-${name}`) input.setAttribute("aria-invalid", "true");
    else input.removeAttribute("aria-invalid");
  }
}

const NAMES = [
  ["examples", "n"],
  ["batch_size", "b"],
];

/** The sentence about a loader whose epochs leave out a share of the examples. */
const DROPPING = (share) =>
  `The last batch is kept; for drop_last, ask with dropped=${share} in a phase shuffling(...) under Training runs.`;

/**
 * A row of the form that fills steps and sampling probability.
 *
 * @param up Whether the steps are rounded up.
 * @param fields Names of the fields of the problem.
 * @param set Called with the texts of the fields that follow.
 * @param shuffled Whether an epoch with drop_last leaves out the examples that do not fill a batch.
 */
export function sizes(up, fields, set, shuffled = false) {
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
    const left = shuffled && n % b ? ` ${DROPPING(exactly((n % b) / n))}` : "";
    known.textContent = `${exactly(n)} / ${exactly(b)} gives ${found.steps} steps an epoch${exact}.${left}`;
    set(found);
  };
  inputs.forEach((input) => input.addEventListener("input", changed));
  const label = html("label", { for: "size-examples" }, html("span", { class: "symbol" }, "n, b"), "examples, batch");
  return html("div", { class: "field" }, label, html("span", { class: "exact" }, ...inputs), known);
}

const LENGTH = 1000; // places of a slider
const RATIO = 3; // of the largest to the smallest positive value, from which a slider is logarithmic
const OF_ZERO = 0.06; // part of a logarithmic slider between 0 and the smallest positive value
const DECADES = 12; // above this number, a decade has nine values instead of ninety

/** Functions between values and places from 0 to 1; `log` says whether the scale is logarithmic. */
function scale(values) {
  const [low, high] = [values[0], values.at(-1)];
  const least = values.find((x) => x > 0) ?? high;
  const room = Math.log(high) - Math.log(least);
  if (low < 0 || !(room > Math.log(RATIO))) {
    return { log: false, least: low, high, place: (x) => (x - low) / (high - low), value: (p) => low + p * (high - low) };
  }
  const start = low === 0 ? OF_ZERO : 0;
  const place = (x) => (x < least ? 0 : start + ((1 - start) * (Math.log(x) - Math.log(least))) / room);
  return { log: true, least, high, place };
}

/** Numbers of two digits between two positive ones. */
function between(low, high) {
  const [first, last] = [low, high].map((x) => Math.floor(Math.log10(x)));
  const every = last - first > DECADES ? 10 : 1;
  const found = [];
  for (let power = first; power <= last; power += 1) {
    for (let digits = 10; digits < 100; digits += every) found.push(Number(`${digits}e${power - 1}`));
  }
  return found.filter((x) => x > low && x < high);
}

/** The values of a slider with their places: only the stored values, if nothing is proved between them. */
export function stops(field, values) {
  if (!values.every(Number.isFinite)) return values.map((value, k) => ({ value, place: k / (values.length - 1) }));
  const scaled = scale(values);
  const whole = field.kind === "integer" ? Number.isInteger : () => true;
  const inner = () => {
    if (scaled.log) return between(scaled.least, scaled.high);
    const every = Array.from({ length: LENGTH - 1 }, (_, k) => about(scaled.value((k + 1) / LENGTH)));
    return (field.kind === "integer" ? every.map(Math.round) : every).filter((x) => x > scaled.least && x < scaled.high);
  };
  const found = new Set([...values, ...(field.trend === 0 ? [] : inner().filter(whole))]);
  return [...found].sort((a, b) => a - b).map((value) => ({ value, place: scaled.place(value) }));
}

/**
 * A slider that moves the value of an input.
 *
 * @param field Entry of the catalogue.
 * @param values Its stored values, sorted, at least two.
 * @param input The exact input.
 * @param changed Called after every move.
 * @returns The element, and `follow`, which moves the slider to the value of the input.
 */
export function sliderOf(field, values, input, changed) {
  const places = stops(field, values);
  const element = html("input", {
    id: `slide-${field.name}`,
    type: "range",
    min: 0,
    max: LENGTH,
    step: 1,
    "aria-label": `${field.name.replaceAll("_", " ")}, slider`,
  });
  const nearest = (place) =>
    places.reduce((best, each) => (Math.abs(each.place - place) < Math.abs(best.place - place) ? each : best));
  const follow = () => {
    const x = number(input.value);
    const below = places.findLast(({ value }) => value <= x) ?? places[0];
    if (!Number.isNaN(x)) element.value = Math.round(LENGTH * below.place);
    element.setAttribute("aria-valuetext", input.value || "not chosen");
  };
  const move = (value) => {
    input.value = exactly(value);
    element.setAttribute("aria-valuetext", input.value);
    changed();
  };
  element.addEventListener("input", () => move(nearest(Number(element.value) / LENGTH).value));
  element.addEventListener("keydown", (event) => {
    const up = ["ArrowRight", "ArrowUp"].includes(event.key);
    if (!up && !["ArrowLeft", "ArrowDown"].includes(event.key)) return;
    event.preventDefault(); // each press leads to another value, however near its place is
    const x = number(input.value);
    const next = up ? places.find(({ value }) => value > x) : places.findLast(({ value }) => value < x);
    if (next === undefined) return;
    move(next.value);
    follow();
  });
  follow();
  return { element, follow };
}
