// The form: for every field an exact input, and a slider or a list of the stored values.

import { fill, html } from "./dom.js";
import { range, reach, stored, unstored } from "./hull.js";
import { sizes } from "./sizes.js";
import { slider as sliderOf } from "./slider.js";

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
  const sized = rounded ? sizes(rounded === "up", fields.map(({ name }) => name), set) : null;
  fill("form", sized, rows);
}

/** Mark the field that an error names, and only this field. */
export function mark(name) {
  for (const input of document.querySelectorAll("#form input[type=text], #form textarea, #form select")) {
    if (input.id === `exact-${name}`) input.setAttribute("aria-invalid", "true");
    else input.removeAttribute("aria-invalid");
  }
}
