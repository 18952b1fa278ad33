// A slider over the stored range of a field: equal ratios lie equally far apart, as on a logarithmic axis.

import { html } from "./dom.js";
import { about, exactly, number } from "./numbers.js";

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
export function slider(field, values, input, changed) {
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
    element.setAttribute("aria-valuetext", input.value);
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
