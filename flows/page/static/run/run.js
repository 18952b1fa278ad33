// "My training run": one form in the words of training code, the answer, and its consequence.

import { at, fill, html } from "../dom.js";
import { DomainError } from "../fields.js";
import { exactly, number, roundedDown, roundedUp } from "../numbers.js";
import { answers, attackOf, bracketOf, halt, noiseOf, renew, Stale } from "./answers.js";
import { showBrackets } from "./brackets.js";
import { COPIES, optionsText } from "./copies.js";
import { AXES, trace } from "./curve.js";
import { LOADERS, loaderOf, options, read, relation, roundedSteps, UNKNOWN } from "./loaders.js";
import { plot } from "./plot.js";
import { accountant, attacked, brief, consequence, headline, high, percent, rateText, runText } from "./words.js";

const FIELDS = ["loader", "n", "batch", "epochs", "noise", "delta", "change", "over", "fpr", "target"];
const NAMES = Object.fromEntries(FIELDS.map((field) => [field, `run-${field}`]));
const TITLE = document.title;
const PAUSE = 120; // milliseconds after the last key
const TOLERANCE = 0.001;
const RATES = Array.from({ length: 24 }, (_, k) => Number((10 ** (k / 4 - 6)).toPrecision(3)));
const ORDER = [
  "poisson", "none", "allocation", "balls-in-bins", "with-replacement", "fixed-size", "shuffling-drop-last", "shuffling",
]; // fast ones first

const state = { run: null, loader: null, rows: [], own: null, current: () => false };
let [timer, shownAt] = [0, null];

const texts = () => Object.fromEntries(FIELDS.map((field) => [field, at(NAMES[field]).value]));

/** The question that the engine answers for a loader: `{question}`, or `{said}`, a sentence. */
function questionOf(loader, run) {
  const question = loader.ask(run);
  if (typeof question === "string") return { said: question };
  if (answers(question)) return { question };
  const wide = loader.wide?.(run);
  if (wide && answers(wide)) return { question: wide, wide: true };
  return { said: "not computed by this page: choose this loader, and copy the command", question };
}

/** Show the form's fields of an address, and the usual ones if it leaves some out; an empty address changes nothing. */
export function open(given) {
  for (const field of given.size ? FIELDS : []) {
    const element = at(NAMES[field]);
    element.value = given.get(field) ?? element.defaultValue ?? element.options[0].value;
  }
  if (!loaderOf(at(NAMES.loader).value) && at(NAMES.loader).value !== UNKNOWN) at(NAMES.loader).value = "";
  ask();
}

function address(given) {
  return `#${new URLSearchParams(Object.entries(given).filter(([field, text]) => field !== "loader" || text !== ""))}`;
}

/** Let go of the question: another tab is shown. */
export function leave() {
  window.clearTimeout(timer);
  timer = 0;
  state.current = renew();
}

function mark(field) {
  for (const id of Object.values(NAMES)) {
    if (field && id === NAMES[field]) at(id).setAttribute("aria-invalid", "true");
    else at(id).removeAttribute("aria-invalid");
  }
}

function say(big, small, ...words) {
  fill("run-number", big);
  fill("run-kind", small);
  fill("run-says", words.flat().map((word) => (word.strong ? html("strong", {}, word.strong) : word)));
}

/** Answer the form. */
function ask() {
  const given = texts();
  timer = 0;
  document.title = TITLE;
  at("run-relation").textContent = "";
  history.replaceState(null, "", address(given));
  state.current = renew();
  state.own = null;
  state.loader = loaderOf(given.loader) ?? null;
  state.unknown = given.loader === UNKNOWN;
  fill("copy-said");
  at("run-copied").hidden = true;
  fill("noise-said");
  for (const id of ["attack-section", "curve-section", "run-tools", "run-why"]) at(id).hidden = true;
  try {
    state.run = read(given);
    mark(null);
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    mark(error.field);
    say("", "", html("span", { class: "error" }, error.message));
    fill("brackets");
    fill("brackets-axis");
    at("brackets-rule").textContent = "";
    return;
  }
  answer(state.current).catch((error) => {
    if (!(error instanceof Stale)) say("", "", html("span", { class: "error" }, error.message));
  });
}

async function answer(current) {
  const { run, loader } = state;
  state.rows = LOADERS.map((each) => ({ loader: each, found: null, ...questionOf(each, run) }));
  state.rows.forEach((row) => (row.said ??= "computing"));
  const row = state.rows.find((each) => each.loader === loader);
  if (!row) {
    invite();
    fill("run-kind", "computing in this browser ", stopper());
  } else if (!row.question) say("", "", row.said);
  else if (row.said !== "computing") say("", "", "This page does not compute epsilon for this loader; the command below does.");
  else say("…", "computing in this browser", progress());
  if (row) offer(row);
  showBrackets(state.rows, loader?.key ?? null);
  const wanted = [...new Set([loader?.key, ...ORDER])].filter(Boolean).map((key) => state.rows.find((each) => each.loader.key === key));
  for (const each of wanted) {
    if (each.said !== "computing") continue;
    try {
      each.found = await bracketOf(each.question, TOLERANCE, current, each === row ? advance : undefined);
    } catch (error) {
      if (!current()) throw new Stale();
      each.said = error.message;
      if (error.stopped) wanted.forEach((other) => (other.said = other.said === "computing" ? error.message : other.said));
      if (each === row) say("", "", error.message);
    }
    if (!current()) throw new Stale();
    conclude(each === row || each.loader.key === "poisson");
    showBrackets(state.rows, loader?.key ?? null);
    if (each.loader.key === "poisson" && row?.found) await further(row, current);
  }
  if (!row) fill("run-kind");
  if (state.unknown) worst();
}

const progress = () => [html("progress", { max: 1, value: 0, id: "run-progress", "aria-label": "progress of the computation" }), " ", stopper()];

function stopper() {
  const button = html("button", { type: "button", id: "run-stop" }, "Stop");
  button.addEventListener("click", halt);
  return button;
}

function advance({ done, of }) {
  document.getElementById("run-progress")?.setAttribute("value", done / of);
}

/** Before a loader is chosen: the answer depends on it. */
function invite() {
  const words = state.unknown
    ? "All of these loaders at once: the worst one counts."
    : "Choose how your code picks a batch. With equal noise, ε depends on it by a factor of ten or more, so this page assumes none.";
  say("", "", words);
}

/** The answer for a reader who does not know the loader: the largest of all. */
function worst() {
  const known = state.rows.filter(({ found }) => found);
  if (!known.length) return;
  const missing = state.rows.filter(({ found, question }) => !found && question).map(({ loader }) => loader.title);
  const most = known.reduce((best, row) => (row.found.upper > best.found.upper ? row : best));
  const [every, left] = missing.length
    ? ["for the loaders that this page computes", ` It does not compute: ${missing.join(", ")}.`]
    : ["for every loader below", ""];
  say(`ε at most ${high(most.found.upper)}`, every, `The largest upper end is that of ${most.loader.title}.${left} Find out how your code picks a batch: ε may be much smaller.`);
  document.title = `Unknown loader, ${runText(state.run)}: ε at most ${high(most.found.upper)} · privsweep`;
}

/** Show the headline and the consequence. */
function conclude(changed) {
  const { loader, rows, run } = state;
  const row = rows.find((each) => each.loader === loader);
  if (!changed || !row?.found) return;
  state.own = row.found;
  const [big, small] = headline(row.found, roundedSteps(loader, run));
  const more = row.wide ? " The upper end is that of a known order; the command under Copy uses the batch size, and proves a smaller one in about half a minute." : "";
  say(big, small, ...consequence(loader, row.found, accountant(rows)), more);
  const first = loader.title[0].toUpperCase() + loader.title.slice(1);
  document.title = `${first}, ${runText(run)}: ε ${brief(row.found)} · privsweep`;
  at("run-relation").textContent = `Each bar is proved: the true ε lies inside it. Neighbours: ${relation(loader, run)}.`;
  shownAt ??= performance.now();
  document.documentElement.dataset.firstAnswer ??= String(shownAt);
}

/** Show the tools and the fields, which need no answer. */
function offer(row) {
  at("run-tools").hidden = false;
  at("run-why").hidden = false;
  const given = Object.entries(options(row.loader, state.run)).map(([name, value]) => `${name}=${exactly(value)}`);
  const asked = row.question ? `${row.question.problem}: ${Object.entries(row.question.fields).map(([name, value]) => `${name}=${exactly(value)}`).join(" ")}` : "";
  fill("why-fields", `${row.loader.code}: ${row.loader.help}. `, html("code", {}, given.join(" ")), asked ? [html("br"), html("code", {}, asked)] : []);
}

/** After the headline: the best attack, the details, and the curve. */
async function further(row, current) {
  const { run, loader } = state;
  const { lower, upper, seconds, detail } = row.found;
  const time = seconds < 0.1 ? "less than 0.1 s" : `${seconds.toFixed(1)} s`;
  fill("why-detail", `ε ∈ [${exactly(lower)}, ${exactly(upper)}], all digits; computed in this browser in ${time}: ${detail}.`);
  await attack(row, current);
  await trace(loader, run, row.found, at(NAMES.over).value in AXES ? at(NAMES.over).value : "noise", current);
}

/** A rate of false positives as typed, `1 %` or `0.01`, or NaN. */
const rateOf = (text) => (text.trim().endsWith("%") ? number(text.trim().slice(0, -1)) / 100 : number(text));

async function attack(row, current) {
  const rate = rateOf(at(NAMES.fpr).value);
  const valid = rate > 0 && rate < 1;
  const rates = [...new Set([...RATES, ...(valid ? [rate] : [])])].sort((a, b) => a - b);
  const poisson = state.rows.find((each) => each.loader.key === "poisson");
  const both = row === poisson || !poisson.found ? [row] : [row, poisson];
  try {
    const found = [];
    for (const { question } of both) found.push(await attackOf(question, rates, current));
    if (!current()) return;
    at("attack-section").hidden = false;
    const series = found.map(({ lower, upper }, k) => ({
      key: both[k].loader.key,
      label: both[k].loader.title,
      points: rates.map((x, i) => ({ x, lower: lower[i], upper: upper[i] })),
    }));
    const [first, second] = series.map(({ points }) => points.find(({ x }) => x === rate));
    plot("attack", {
      name: "The largest true positive rate of any membership test over its false positive rate.",
      across: "false positive rate",
      up: "true positive rate",
      guess: true,
      mark: valid ? rate : 0.01,
      series,
      read: (point) => `at ${rateText(point.x)}: ${percent(point.lower, false)} – ${percent(Math.min(point.upper, 1), true)}`,
    });
    fill("attack-says", valid ? attacked(first, second) : "Expected a false positive rate in (0, 1), such as 1 % or 0.001.");
  } catch (error) {
    if (!current() || error instanceof Stale) throw new Stale();
    at("attack-section").hidden = false;
    fill("attack", html("p", { class: "help" }, error.message));
    fill("attack-says");
  }
}

/** Find the smallest noise multiplier for the target. */
async function findNoise() {
  const target = number(at(NAMES.target).value);
  const row = state.rows.find(({ loader }) => loader === state.loader);
  if (!(target > 0 && target <= 10000)) {
    fill("noise-said", html("span", { class: "error" }, "Expected an epsilon in (0, 10000]."));
    return;
  }
  if (!row?.question || row.question.problem === "run-epsilon" || !answers(row.question)) {
    const words = Object.entries(options(state.loader, state.run)).filter(([name]) => name !== "sigma");
    fill("noise-said", "This command finds it: ", html("code", {}, `privsweep noise --epsilon ${exactly(target)} ${optionsText(words)}`));
    return;
  }
  const { current } = state;
  fill("noise-said", "Computing in this browser ", stopper());
  try {
    const { lower, upper } = await noiseOf(row.question, target, current);
    if (!current()) return;
    if (upper === Infinity) {
      fill("noise-said", "No noise multiplier up to 1000000 is proved to suffice.");
      return;
    }
    const use = html("button", { type: "button", id: "noise-use" }, "Use it");
    use.addEventListener("click", () => {
      at(NAMES.noise).value = roundedUp(upper);
      ask();
    });
    fill("noise-said", html("strong", { id: "noise-bracket" }, `σ ${roundedUp(upper)} suffices.`), lower > 0 ? ` With ${roundedDown(lower)}, ε is above ${exactly(target)}. ` : " ", use);
  } catch (error) {
    if (current()) fill("noise-said", error.message);
  }
}

async function copy(kind) {
  if (timer) {
    window.clearTimeout(timer);
    ask();
  }
  const { loader, run, own, rows } = state;
  const row = rows.find((each) => each.loader === loader);
  let text;
  if (!own && ["Statement", "Citation"].includes(kind)) text = "The answer is still missing.";
  else text = await COPIES[kind]({ loader, run, found: own, question: row.question });
  at("run-copied").hidden = false;
  at("run-copied").textContent = text;
  try {
    await navigator.clipboard.writeText(text);
    fill("copy-said", `${kind} copied.`);
  } catch {
    window.getSelection().selectAllChildren(at("run-copied"));
    fill("copy-said", "Selected; copy it with the keys of your system.");
  }
}

/** Connect the form. */
export function connect() {
  fill(
    NAMES.loader,
    html("option", { value: "" }, "choose"),
    LOADERS.map(({ key, code }) => html("option", { value: key }, code)),
    html("option", { value: UNKNOWN }, "I do not know"),
  );
  fill(NAMES.over, Object.entries(AXES).map(([key, { name }]) => html("option", { value: key }, name)));
  for (const field of FIELDS.filter((each) => each !== "target")) {
    const element = at(NAMES[field]);
    element.addEventListener(element.localName === "select" ? "change" : "input", () => {
      window.clearTimeout(timer);
      timer = window.setTimeout(ask, PAUSE);
    });
  }
  at(NAMES.target).addEventListener("change", () => history.replaceState(null, "", address(texts())));
  at(NAMES.target).addEventListener("keydown", ({ key }) => key === "Enter" && findNoise());
  at("noise-find-run").addEventListener("click", findNoise);
  fill("copies", Object.keys(COPIES).map((kind) => {
    const button = html("button", { type: "button", "data-copy": kind }, kind);
    button.addEventListener("click", () => copy(kind));
    return button;
  }));
  at("run-form").addEventListener("submit", (event) => event.preventDefault());
}
