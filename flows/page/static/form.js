// The form: for every field an exact input, and a slider or a list of the stored values.

import { fill, html } from "./dom.js";
import { range, stored } from "./hull.js";
import { sizes } from "./sizes.js";
import { slider as sliderOf } from "./slider.js";

function choice(field, values, text) {
  const words = field.kind === "choice" ? field.choices : values;
  const options = [...new Set([...words, text])].map((word) => {
    const known = values.includes(word);
    return html("option", { value: word, selected: word === text }, known ? word : `${word} (not stored)`);
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
    const values = stored(table)[name];
    const numeric = field.kind === "real" || field.kind === "integer";
    const text = texts[name] ?? "";
    const help = html("p", { class: "help", id: `help-${name}` }, `${field.meaning}. Stored: ${range(values)}.`);
    const unit = field.unit ? html("span", { class: "unit" }, field.unit) : null;
    if (!numeric) {
      const select = choice(field, values, text);
      select.addEventListener("change", report);
      inputs.set(name, select);
      return html("div", { class: "field" }, label(field), select, help);
    }
    const input = html("input", {
      id: `exact-${name}`,
      type: "text",
      autocomplete: "off",
      spellcheck: "false",
      maxlength: 60,
      "aria-describedby": `help-${name}`,
    });
    input.value = text;
    inputs.set(name, input);
    const slider = values.length > 1 ? sliderOf(field, values, input, report) : null;
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
  const sized = rounded ? sizes(rounded === "up", fields.map(({ name }) => name), set) : null;
  fill("form", sized, rows);
}

/** Mark the field that an error names, and only this field. */
export function mark(name) {
  for (const input of document.querySelectorAll("#form input[type=text], #form select")) {
    if (input.id === `exact-${name}`) input.setAttribute("aria-invalid", "true");
    else input.removeAttribute("aria-invalid");
  }
}
