// The same run under all loaders: a bar from the lower to the upper end of each, on one logarithmic axis.

import { at, fill, html } from "../dom.js";
import { accountant, brief, printed } from "./words.js";

const TICKS = [1, 2, 5];

/** Round numbers between two ends, not more than about seven. */
function ticksBetween(least, most) {
  const found = [];
  for (let power = Math.floor(Math.log10(least)); power <= Math.ceil(Math.log10(most)); power += 1) {
    for (const digit of TICKS) found.push(Number(`${digit}e${power}`));
  }
  const inside = found.filter((x) => x >= least && x <= most);
  const tens = inside.filter((x) => Number.isInteger(Math.log10(x)));
  return inside.length <= 7 || tens.length < 2 ? inside : tens.filter((_, k) => k % Math.ceil(tens.length / 7) === 0);
}

/** Places on the axis, in percent, of the values from the smallest to the largest end. */
function scaleOf(rows) {
  const ends = rows.flatMap(({ found }) => (found ? [found.lower, found.upper] : [])).filter((x) => x > 0 && x < Infinity);
  if (!ends.length) return null;
  const [least, most] = [Math.min(...ends) / 1.25, Math.max(...ends) * 1.25];
  const place = (x) => {
    const share = (Math.log(Math.max(x, least)) - Math.log(least)) / (Math.log(most) - Math.log(least));
    return 100 * Math.min(Math.max(share, 0), 1);
  };
  return { place, ticks: ticksBetween(least, most) };
}

function moved(element, left, width) {
  element.style.setProperty("left", `${left}%`); // the policy of the page forbids style attributes
  if (width !== undefined) element.style.setProperty("width", `${width}%`);
  return element;
}

function track(scale, { loader, found, said }, poisson) {
  const lines = scale ? scale.ticks.map((x) => moved(html("i", { class: "grid" }), scale.place(x))) : [];
  const rule = scale && poisson ? moved(html("i", { class: "poisson-rule" }), scale.place(poisson.upper)) : null;
  if (!found || !scale) {
    return html("span", { class: "track" }, lines, rule, html("span", { class: "reason" }, found ? brief(found) : said));
  }
  const [left, right] = [scale.place(found.lower), found.upper === Infinity ? 100 : scale.place(found.upper)];
  const bar = moved(html("i", { class: `bar ${loader.key}` }), left, right - left);
  const text = html("b", {}, brief(found));
  const after = right <= 74;
  moved(text, after ? right : left);
  text.classList.add(after ? "after" : "before");
  return html("span", { class: "track" }, lines, rule, bar, text);
}

/**
 * Show the brackets.
 *
 * @param rows For each loader `{loader, found, said}`: its bracket, or null and a sentence instead.
 * @param chosen The key of the chosen loader, or null.
 */
export function showBrackets(rows, chosen) {
  const scale = scaleOf(rows);
  const poisson = accountant(rows);
  const sorted = [...rows].sort((a, b) => (a.found?.upper ?? Infinity) - (b.found?.upper ?? Infinity));
  const items = sorted.map((row) =>
    html(
      "li",
      { class: row.loader.key === chosen ? "chosen" : chosen ? "other" : null, "data-loader": row.loader.key },
      html("span", { class: "loader" }, html("strong", {}, row.loader.title), html("small", {}, row.loader.code)),
      track(scale, row, poisson),
    ),
  );
  const ticks = scale ? scale.ticks.map((x) => moved(html("span", {}, String(x)), scale.place(x))) : [];
  fill("brackets", items);
  fill("brackets-axis", html("span", { class: "track" }, ticks));
  at("brackets-rule").textContent = poisson ? `Dashed: a Poisson accountant prints ${printed(poisson)} for all of them.` : "";
}
