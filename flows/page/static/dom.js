// Elements with text in them: content is always text, never markup.

const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** An HTML element; children are elements or texts. */
export const html = (name, attributes = {}, ...children) =>
  filled(document.createElement(name), attributes, children);

/** An SVG element. */
export const svg = (name, attributes = {}, ...children) =>
  filled(document.createElementNS(SVG, name), attributes, children);

/** The element of an id. */
export const at = (id) => document.getElementById(id);

/** Replace the content of an element by children. */
export const fill = (id, ...children) =>
  at(id).replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));

/** A list of terms; an entry without a description is left out. */
export const terms = (entries) =>
  html(
    "dl",
    {},
    entries.filter(([, text]) => text).map(([term, text]) => [html("dt", {}, term), html("dd", {}, text)].flat()).flat(),
  );

/** A table with a header row; the first cell of a row is its header. */
export const grid = (names, rows) =>
  html(
    "table",
    {},
    html("thead", {}, html("tr", {}, names.map((name) => html("th", { scope: "col" }, name)))),
    html(
      "tbody",
      {},
      rows.map(([head, ...cells]) =>
        html("tr", {}, html("th", { scope: "row" }, head), cells.map((cell) => html("td", {}, cell))),
      ),
    ),
  );
