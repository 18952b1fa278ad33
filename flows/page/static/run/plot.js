// A chart of proved bands: curves over one axis, read with the pointer, a finger or the arrow keys.

import { axis } from "../axis.js";
import { at, fill, html, svg } from "../dom.js";

const [TOP, RIGHT, BOTTOM, LEFT] = [28, 14, 44, 68];
const LOGARITHMIC = 3; // ratio of the largest to the smallest value, from which an axis is logarithmic

const path = (points) => points.map(([x, y], k) => `${k ? "L" : "M"}${x} ${y}`).join("");

/** A band and its upper and lower curve; a band without width is one line. */
function band({ key, points, label }, x, y) {
  const uppers = points.map((each) => [x.at(each.x), y.at(each.upper)]);
  const lowers = points.map((each) => [x.at(each.x), y.at(each.lower)]);
  const [tx, ty] = uppers[Math.floor(0.42 * uppers.length)];
  return [
    svg("path", { class: `area ${key}`, d: `${path(uppers)}${path([...lowers].reverse()).replace("M", "L")}Z` }),
    svg("path", { class: `curve ${key}`, d: path(uppers) }),
    svg("path", { class: `curve ${key}`, d: path(lowers) }),
    label ? svg("text", { class: `label ${key}`, x: tx, y: ty - 8, "text-anchor": "middle" }, label) : null,
  ];
}

/**
 * Draw a chart into the figure of an id, with a slider below it that moves the place to read.
 *
 * @param id Of the figure.
 * @param content `name`, a sentence for readers who do not see it; `across` and `up`, texts of the axes; `series`, a list
 *   of `{key, label, points}` with points `{x, lower, upper}` by growing x; the first series is read; `guess`, whether
 *   the diagonal is drawn; `mark`, an x that is marked; and `read`, the text for a point of the first series.
 */
export function plot(id, { name, across, up, series, guess = false, mark = null, read }) {
  const figure = at(id);
  const width = Math.max(Math.min(figure.clientWidth || 420, 560), 240);
  const height = Math.round(Math.min(0.72 * width, 320));
  const all = series.flatMap(({ points }) => points);
  const ends = all.flatMap(({ lower, upper }) => [lower, upper]).filter((end) => end > 0 && end < Infinity);
  const x = axis(all.map((point) => point.x), LEFT, width - RIGHT, false, LOGARITHMIC);
  const y = axis(guess ? [...ends, ...all.map((point) => point.x)] : ends, height - BOTTOM, TOP, false, LOGARITHMIC);
  const [first] = series;
  const text = guess ? (value) => `${Number((100 * value).toPrecision(3))} %` : (_, tick) => tick;
  const frame = [
    x.ticks.map(([value, tick], k) =>
      guess && k % 2 ? null : svg("text", { x: x.at(value), y: height - BOTTOM + 18, "text-anchor": "middle" }, text(value, tick)),
    ),
    y.ticks.map(([value, tick]) => [
      svg("line", { class: "rule", x1: LEFT, x2: width - RIGHT, y1: y.at(value), y2: y.at(value) }),
      svg("text", { x: LEFT - 6, y: y.at(value) + 4, "text-anchor": "end" }, text(value, tick)),
    ]),
    svg("text", { class: "axis", x: (LEFT + width - RIGHT) / 2, y: height - 6, "text-anchor": "middle" }, across),
    svg("text", { class: "axis", x: 2, y: 11 }, up),
  ].flat(3);
  const diagonal = guess ? path(first.points.map((point) => [x.at(point.x), y.at(point.x)])) : null;
  const cursor = svg("line", { class: "cursor", y1: TOP, y2: height - BOTTOM });
  const dot = svg("path", { class: "dot" });
  const picture = svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": name },
    frame,
    diagonal ? svg("path", { class: "guess", d: diagonal }) : null,
    [...series].reverse().flatMap((each) => band(each, x, y)),
    cursor,
    dot,
  );
  const slider = html("input", {
    type: "range", min: 0, max: first.points.length - 1, step: 1, "aria-label": `${across}, to read the chart`,
  });
  const said = html("output", { class: "reading" });
  const show = (k) => {
    const point = first.points[k];
    const place = x.at(point.x);
    cursor.setAttribute("x1", place);
    cursor.setAttribute("x2", place);
    const [above, below] = [y.at(point.upper), y.at(point.lower)];
    dot.setAttribute("d", `M${place - 4} ${above}h8M${place} ${above}V${below}M${place - 4} ${below}h8`);
    slider.value = k;
    said.textContent = read(point);
    slider.setAttribute("aria-valuetext", said.textContent);
  };
  const nearest = (px) =>
    first.points.reduce((best, point, k) => (Math.abs(x.at(point.x) - px) < Math.abs(x.at(first.points[best].x) - px) ? k : best), 0);
  picture.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect();
    show(nearest(((event.clientX - box.left) * width) / box.width));
  });
  slider.addEventListener("input", () => show(Number(slider.value)));
  const held = figure.contains(document.activeElement);
  fill(id, picture, slider, said);
  if (held) slider.focus();
  show(mark === null ? 0 : nearest(x.at(mark)));
}
