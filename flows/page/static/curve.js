// Brackets along the axis of the chart, computed in the browser one after another.

import { at, fill, html } from "./dom.js";
import { compute, stop } from "./engine/client.js";
import { covers } from "./engine/questions.js";
import { reach } from "./hull.js";

const POINTS = 13; // along the axis
const TOLERANCE = 0.02;
const LOGARITHMIC = 3; // ratio of the largest to the smallest value

let known = { question: null, field: null, points: [] };

/** The computed brackets of a question over a field, for `drawChart`. */
export const curveOf = (question, field) => (known.question === question && known.field === field ? known.points : []);

/** Values over the range of a field and the question. */
export function places(values, asked, whole) {
  const all = [...values, asked].filter(Number.isFinite);
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const ratios = low > 0 && high / low >= LOGARITHMIC;
  const found = Array.from({ length: POINTS }, (_, k) => {
    const share = k / (POINTS - 1);
    const x = ratios ? low * (high / low) ** share : low + (high - low) * share;
    const rounded = Number(x.toPrecision(3));
    return Math.min(Math.max(whole ? Math.round(rounded) : rounded, low), high);
  });
  return [...new Set(found)];
}

/**
 * Offer to compute brackets along the axis.
 *
 * @param table From `prepare`.
 * @param question The question, whose other fields stay.
 * @param field Entry of the catalogue.
 * @param changed Called after each computed bracket.
 */
export function offerCurve(table, question, field, changed) {
  if (known.question === question && known.field === field) return; // computing, or computed
  known = { question: null, field: null, points: [] };
  if (!covers(table.problem.name, question)) {
    fill("curve");
    return;
  }
  const button = html("button", { type: "button", id: "curve-start" }, `Compute along ${field.name.replaceAll("_", " ")}`);
  button.addEventListener("click", () => run(table, question, field, changed));
  fill("curve", button);
}

async function run(table, question, field, changed) {
  const mine = { question, field, points: [] };
  known = mine;
  const button = html("button", { type: "button" }, "Stop");
  button.addEventListener("click", () => stop());
  fill("curve", "Computing in this browser ", button);
  let said = null;
  for (const x of places(reach(table, field), question[field.name], field.kind === "integer")) {
    const fields = { ...question, [field.name]: x };
    try {
      const { lower, upper } = await compute({ problem: table.problem.name, fields, tolerance: TOLERANCE });
      if (known !== mine) return;
      mine.points.push({ from: x, to: x, lower, upper });
      changed();
    } catch (error) {
      if (known !== mine) return;
      said = error.message;
      if (error.stopped) break;
    }
  }
  fill("curve", mine.points.length ? "Thick bars: computed in this browser." : said);
}
