// Epsilon of the run over one of its numbers: brackets at some values, computed one after another.

import { at, fill, html } from "../dom.js";
import { exactly } from "../numbers.js";
import { answers, bracketOf, Stale } from "./answers.js";
import { plot } from "./plot.js";
import { brief, runText } from "./words.js";

const TOLERANCE = 0.01;
const SLOW = 0.6; // seconds for one bracket, above which a curve waits for a click
const SHARES = [-6, -5, -4, -3, -2, -1, 1, 2, 3, 4, 5, 6];

/** The numbers of a run over which a curve is drawn, with the largest ratio to the value of the run. */
export const AXES = {
  noise: { name: "noise multiplier", ratio: 4, whole: false },
  epochs: { name: "epochs", ratio: 10, whole: true },
  batch: { name: "batch size", ratio: 16, whole: true },
  delta: { name: "delta", ratio: 1e4, whole: false },
  n: { name: "examples", ratio: 16, whole: true },
};

/** Values of an axis on both sides of the value of the run, those next to it first. */
export function valuesOf(run, axis) {
  const { ratio, whole } = AXES[axis];
  const inside = {
    noise: (x) => x >= 1e-3 && x <= 1e6,
    epochs: (x) => x >= 1 && x <= 1e6,
    batch: (x) => x >= 1 && x <= run.n,
    delta: (x) => x < 0.5,
    n: (x) => x >= run.batch,
  }[axis];
  const found = SHARES.map((share) => {
    const x = Number((run[axis] * ratio ** (share / 6)).toPrecision(2));
    return whole ? Math.round(x) : x;
  });
  const near = (x) => Math.abs(Math.log(x / run[axis]));
  return [...new Set(found)].filter((x) => inside(x) && x !== run[axis]).sort((a, b) => near(a) - near(b));
}

/**
 * Draw the curve, first from the bracket of the run, then from each further one.
 *
 * @param loader The chosen loader.
 * @param run From `read`.
 * @param own The bracket of the run.
 * @param axis A key of `AXES`.
 * @param current From `renew`.
 */
export async function trace(loader, run, own, axis, current) {
  const { name } = AXES[axis];
  const points = [{ x: run[axis], lower: own.lower, upper: own.upper }];
  const words = `${loader.title}, ${runText(run)}, δ ${exactly(run.delta)}`;
  const draw = () =>
    plot("run-curve", {
      name: `Epsilon over ${name}: ${points.length} proved brackets.`,
      across: name,
      up: "ε",
      mark: run[axis],
      series: [{ key: loader.key, points: [...points].sort((a, b) => a.x - b.x) }],
      read: (point) => `${name} ${exactly(point.x)}: ε ${brief(point)}`,
    });
  const go = async () => {
    fill("curve-said", "Computing in this browser.");
    try {
      for (const x of valuesOf(run, axis)) {
        const question = loader.ask({ ...run, [axis]: x });
        if (typeof question === "string" || !answers(question)) continue;
        const { lower, upper } = await bracketOf(question, TOLERANCE, current);
        if (!current()) return;
        if (!(upper > 0 && upper < Infinity)) continue;
        points.push({ x, lower, upper });
        draw();
      }
      fill("curve-said", `Proved at ${points.length} values; lines between them are drawn. ${words}.`);
    } catch (error) {
      if (error instanceof Stale || !current()) return;
      fill("curve-said", error.message);
    }
  };
  at("curve-section").hidden = !(own.upper > 0 && own.upper < Infinity); // a logarithmic axis has neither
  if (at("curve-section").hidden) return;
  if (own.seconds <= SLOW) {
    await go();
    return;
  }
  draw();
  const button = html("button", { type: "button", id: "curve-start" }, `Compute along ${name}`);
  button.addEventListener("click", go);
  fill("curve-said", button);
}
