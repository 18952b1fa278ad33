// The chart: the bracket as a band over one field, all others as in the question, which is marked.

import { assumedIn, sourceOf } from "./answer.js";
import { axis } from "../axis.js";
import { fill, html, svg } from "../dom.js";
import { fits, reach, stored, unstored } from "./hull.js";
import { agreed } from "./lookup.js";
import { exactly, roundedDown, roundedUp } from "../numbers.js";

const [WIDTH, HEIGHT] = [640, 340];
const [LEFT, RIGHT, TOP, BOTTOM] = [80, 28, 32, 56];
const MOST = 90; // values of a field
const SMALLEST = 1e-15; // of the largest end: smaller ends are drawn at the bottom

/** The fields over which a chart can be drawn: numbers with several values. */
export const axes = (table) =>
  table.problem.fields.filter((field) => {
    const { kind } = field;
    const values = reach(table, field);
    return kind !== "text" && kind !== "choice" && values.filter(Number.isFinite).length > 1;
  });

function between(one, other) {
  return one > 0 ? Math.sqrt(one) * Math.sqrt(other) : (one + other) / 2;
}

/** The proved brackets at the stored values of a field, and between them if the field has a trend. */
export function bands(table, question, field) {
  const found = (x) => {
    const there = { ...question, [field.name]: x };
    const end = fits(table.problem, there) ? agreed(table, there) : null;
    return end && { from: x, to: x, lower: end.lower, upper: end.upper, exact: end.exact, tables: end.tables };
  };
  const finite = stored(table)[field.name].filter(Number.isFinite);
  const every = Math.ceil(finite.length / MOST);
  const values = finite.filter((_, k) => k % every === 0 || k === finite.length - 1);
  const ends = values.map(found).filter(Boolean);
  if (field.trend === 0) return { at: ends, across: [] };
  const at = ends.filter(({ exact }) => exact);
  // With thinned values, a step would look proved across a left-out value; only points are drawn there.
  const across = values.slice(1).flatMap((to, k) => {
    const from = values[k];
    const whole = field.kind === "integer";
    if (whole && to - from < 2) return [];
    const middle = whole ? Math.max(from + 1, Math.floor(between(from, to))) : between(from, to);
    const step = every > 1 && finite.indexOf(to) > finite.indexOf(from) + 1 ? null : found(middle);
    return step ? [{ ...step, from, to }] : [];
  });
  return { at, across };
}

function frame(x, y, field, problem) {
  const below = HEIGHT - BOTTOM;
  return [
    ...x.ticks.map(([value, text]) => [
      svg("line", { class: "rule", x1: x.at(value), x2: x.at(value), y1: TOP, y2: below }),
      svg("text", { x: x.at(value), y: below + 20, "text-anchor": "middle" }, text),
    ]),
    ...y.ticks.map(([value, text]) => [
      svg("line", { class: "rule", x1: LEFT, x2: WIDTH - RIGHT, y1: y.at(value), y2: y.at(value) }),
      svg("text", { x: LEFT - 11, y: y.at(value) + 4, "text-anchor": "end" }, text),
    ]),
    svg("text", { class: "axis", x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 8, "text-anchor": "middle" }, name(field)),
    svg("text", { class: "axis", x: 0, y: 20 }, problem.asks),
  ].flat();
}

const name = ({ symbol, name: full, unit }) =>
  `${symbol ? `${symbol}, ` : ""}${full.replaceAll("_", " ")}${unit && unit !== full ? ` in ${unit}` : ""}`;

/** A bar from the lower to the upper end, with caps. */
function bar(x, y, { from, lower, upper }, kind) {
  const [place, low, high] = [x.at(from), y.at(lower), y.at(upper)];
  return svg("path", { class: kind, d: `M${place - 3} ${low}h6M${place} ${low}V${high}M${place - 3} ${high}h6` });
}

/** Draw the chart of a question over a field, with brackets that were computed in the browser. */
export function drawChart(table, question, found, field, computed = []) {
  const { problem } = table;
  const { at, across } = bands(table, question, field);
  const asked = question[field.name];
  const mine = found && Number.isFinite(asked) ? { from: asked, ...found } : null;
  const shown = [...at, ...across, ...computed, ...(mine ? [mine] : [])];
  if (!shown.length) {
    fill("chart", html("p", {}, `Nothing is stored along ${field.name} with all other fields as in the question.`));
    return;
  }
  const ends = shown.flatMap(({ lower, upper }) => [lower, upper]).filter((end) => end > 0 && end < Infinity);
  const zero = shown.some(({ lower }) => lower <= 0);
  const least = Math.max(...ends, 0) * SMALLEST;
  const x = axis(shown.flatMap(({ from, to }) => [from, to ?? from]), LEFT, WIDTH - RIGHT);
  const y = axis(ends.length ? ends.filter((end) => end >= least) : [0, 1], HEIGHT - BOTTOM, TOP, zero);
  const summary = found
    ? `At ${field.name}=${exactly(asked)} it lies in [${roundedDown(found.lower)}, ${roundedUp(found.upper)}].`
    : "The question itself has no bracket.";
  const picture = svg(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-labelledby": "chart-name chart-words" },
    svg("title", { id: "chart-name" }, `${problem.asks} over ${field.name}`),
    svg("desc", { id: "chart-words" }, `Brackets at ${at.length} stored values of ${field.name}. ${summary}`),
    frame(x, y, field, problem),
    across.map((step) => {
      const [top, low] = [y.at(step.upper), y.at(step.lower)];
      const [left, right] = [x.at(step.from), x.at(step.to)];
      return svg("rect", { class: "band", x: left, y: top, width: right - left, height: Math.max(low - top, 1) });
    }),
    at.map((end) => bar(x, y, end, end.exact ? "stored" : "derived")),
    computed.map((end) => bar(x, y, end, "computed")),
    mine
      ? [
          svg("line", { class: "asked-rule", x1: x.at(asked), x2: x.at(asked), y1: TOP, y2: HEIGHT - BOTTOM }),
          bar(x, y, mine, "asked"),
          svg("circle", { class: "asked-point", cx: x.at(asked), cy: y.at(mine.upper < Infinity ? mine.upper : mine.lower), r: 5 }),
        ]
      : [],
  );
  const others = problem.fields.filter((each) => each !== field);
  const fixed = others.map((each) => `${each.name}=${exactly(question[each.name])}`).join(" ");
  const open = [
    shown.some(({ upper }) => upper === Infinity) ? " Bars and bands that reach the top have no stored upper end." : "",
    shown.some(({ lower }) => lower < least || lower <= 0) ? " Bars and bands that reach the bottom have no lower end to show." : "",
  ].join("");
  if (unstored(table)) {
    fill("chart", picture, html("figcaption", {}, `${mine ? "Circle: your question. " : ""}At ${fixed}.`));
    return;
  }
  const source = sourceOf(...shown);
  const proved = source || assumedIn({ table, question }) ? "implied" : "proved";
  const light = field.trend === 0 ? `Light bars: ${proved} by other fields.` : `Bands: ${proved} by monotonicity.`;
  const origin = source ? ` Some were ${source}.` : "";
  const legend = `Bars: stored. ${light}${origin} ${mine ? "Circle: your question." : "Your question has no place here."}${open} At ${fixed}.`;
  fill("chart", picture, html("figcaption", {}, legend));
}
