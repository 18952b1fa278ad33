// The tables of stored answers: the question in the form and in the address, and its answers.

import { onlyStored, show, showBox, showError } from "./answer.js";
import { axes, drawChart } from "./chart.js";
import { connectNoise, curveOf, forget, offerCurve, offerNoise, tighten } from "./computed.js";
import { hasStatement, KINDS, STATEMENT } from "./copies.js";
import { at, fill, html } from "../dom.js";
import { DomainError, question as asked } from "../fields.js";
import { draw, mark } from "./form.js";
import { showFact } from "../facts/panel.js";
import { unstored } from "./hull.js";
import { Contradiction, lookup, stated } from "./lookup.js";
import { exactly } from "../numbers.js";
import { ask, open, told } from "./source.js";

const state = { source: null, catalogue: null, table: null, texts: {}, question: null, found: null, kind: "Python" };
const last = new Map(); // texts by problem, so that a tab shows its last question again
let [writing, drawing] = [0, 0];

const tabOf = (name) => state.catalogue.tabs.find(({ problems }) => problems.includes(name));
const fullest = ({ problems }) => {
  const rows = (name) => state.catalogue.problems[name].rows;
  return problems.reduce((best, name) => (rows(name) > rows(best) ? name : best));
};
const texts = (question) => Object.fromEntries(Object.entries(question).map(([name, value]) => [name, exactly(value)]));

function notice(...said) {
  fill("notice", said);
  at("notice").hidden = !said.length;
}

// -------------------------------------------------------------------------------------- questions

/** The address of a question, `#problem=allocation-epsilon&sigma=1`. */
const addressOf = (problem, texts) => `#${new URLSearchParams({ problem, ...texts })}`;

async function choose(name, given = last.get(`${name} texts`), write = true) {
  const problem = state.catalogue.problems[name];
  const tab = tabOf(name);
  state.highlight(tab.name);
  fill(
    "problem",
    tab.problems.map((each) => html("option", { value: each, selected: each === name }, each.replaceAll("-", " "))),
  );
  state.wanted = name;
  window.clearTimeout(writing);
  at("content").setAttribute("aria-busy", "true"); // it shows another problem while the table loads
  const table = await state.source.table(name);
  if (state.wanted !== name) return; // another problem or tab was chosen while the table was loading
  at("content").removeAttribute("aria-busy");
  state.table = table;
  last.set(tab.name, name);
  notice();
  at("content").hidden = false;
  at("content").classList.toggle("unstored", unstored(table));
  fill("meaning", problem.meaning, onlyStored(table));
  const fields = axes(state.table);
  fill("axis", fields.map((field) => html("option", { value: field.name, selected: field.name === "sigma" }, field.name.replaceAll("_", " "))));
  at("chart-section").hidden = !fields.length || (!table.brackets.lower.length && !unstored(table));
  offerStatement(problem);
  showBox(state.table);
  fill("footer", footer(problem));
  const start = texts(problem.start);
  redraw(Object.fromEntries(problem.fields.map((f) => [f.name, given?.[f.name] ?? preset(f, start, given)])), write);
}

/** The text of a field that is not given: nothing if a question must state it, so that the reader chooses. */
function preset(field, start, given) {
  if (field.stated) return "";
  return given && field.default !== null ? exactly(field.default) : start[field.name];
}

function redraw(given, write = true) {
  draw(state.table, given, answer);
  answer(given, write);
}

/** Answer the question in the form, and show all results. */
function answer(given, write = true) {
  const { table, catalogue } = state;
  last.set(`${table.problem.name} texts`, given);
  window.clearTimeout(writing);
  if (write) writing = window.setTimeout(() => history.replaceState(null, "", addressOf(table.problem.name, given)), 150);
  try {
    state.question = asked(table.problem, given);
    state.found = lookup(table, state.question);
  } catch (error) {
    if (!(error instanceof DomainError) && !(error instanceof Contradiction)) throw error;
    state.question = null;
    mark(error.field);
    at("content").classList.add("refused");
    showError(error.message);
    forget();
    offerNoise(table.problem, null);
    fill("computed");
    at("compute").hidden = true;
    fill("chart");
    fill("curve");
    showCopy();
    return;
  }
  mark(null);
  at("content").classList.remove("refused");
  state.stated = stated(table, state.question);
  show(state, (near) => {
    redraw(texts(near));
    at("answer").focus(); // the button no longer exists
  });
  window.cancelAnimationFrame(drawing);
  drawing = window.requestAnimationFrame(showChart); // once a frame, however fast a slider moves
  state.tight = null;
  offerNoise(table.problem, state.question);
  tighten(table.problem, state.question, state.found, (tight) => {
    state.tight = tight;
    showCopy();
  });
  fill("computed");
  at("compute").hidden = !catalogue.live;
  document.documentElement.dataset.firstAnswer ??= String(performance.now());
  showCopy();
}

/** Compute the answer to the question in the form, if a server can. */
async function compute() {
  const { question, table, catalogue } = state;
  if (state.computing === question) return; // pressed twice
  state.computing = question;
  fill("computed", html("p", {}, "Computing..."));
  let shown;
  try {
    shown = told(table.problem, await ask(catalogue.live, table.problem, question));
  } catch (error) {
    shown = html("p", { class: "error" }, error.message);
  }
  if (state.computing === question) state.computing = null;
  if (state.question === question) fill("computed", shown);
}

function showChart() {
  const { table, question, found } = state;
  const field = table.problem.fields.find(({ name }) => name === at("axis").value);
  if (!field || !question) return;
  const computed = curveOf(question, field);
  if (unstored(table) && !computed.length) fill("chart");
  else drawChart(table, question, unstored(table) ? state.tight : found, field, computed);
  offerCurve(table, question, field, showChart);
}

function showCopy() {
  const text = state.question ? KINDS[state.kind](state) : "";
  at("copy-text").textContent = text ?? "A statement needs a proved upper end, which this answer lacks.";
  at("copy-button").disabled = !text;
  at("copied").textContent = "";
}

// ------------------------------------------------------------------------------------------ parts

function drawKinds() {
  const choices = Object.keys(KINDS).map((kind) => {
    const input = html("input", { type: "radio", name: "copy", value: kind, checked: kind === state.kind });
    input.addEventListener("change", () => {
      state.kind = kind;
      showCopy();
    });
    return html("label", {}, input, html("span", {}, kind));
  });
  at("copy-kinds").append(...choices);
  at("copy-button").addEventListener("click", async () => {
    const text = at("copy-text");
    window.getSelection().selectAllChildren(text);
    try {
      await navigator.clipboard.writeText(text.textContent);
      at("copied").textContent = "Copied.";
    } catch {
      at("copied").textContent = "Selected; copy it with the keys of your system.";
    }
  });
}

/** Offer the privacy statement only for problems that have one. */
function offerStatement(problem) {
  const input = document.querySelector(`#copy-kinds input[value="${STATEMENT}"]`);
  input.parentElement.hidden = !hasStatement(problem);
  if (!input.checked || hasStatement(problem)) return;
  [state.kind] = Object.keys(KINDS);
  document.querySelector(`#copy-kinds input[value="${state.kind}"]`).checked = true;
}

function footer({ file, name }) {
  const { release, version, date, rows } = state.catalogue;
  const link = (href, text) => html("a", { href, download: true }, text);
  return [
    html("p", {}, `privsweep ${release}, table ${version} of ${date}, ${rows} rows. Every end is proved, unless a confidence or an import is shown with it.`),
    html(
      "p",
      {},
      "Download: ",
      link("table.parquet", "all answers (Parquet)"),
      ", ",
      file ? [link(`data/${name}.parquet`, `${name} (Parquet)`), ", "] : null,
      link("catalogue.json", "catalogue (JSON)"),
    ),
  ];
}

function failed(error) {
  notice(error instanceof Error ? error.message : String(error));
}

/** Load the catalogue, once. */
function begun() {
  state.starting ??= start().catch((error) => {
    state.starting = null;
    throw error;
  });
  return state.starting;
}

async function start() {
  state.source = await open();
  state.catalogue = state.source.catalogue;
  const { version, date } = state.catalogue;
  at("edition").textContent = `Table ${version}${date ? `, ${date}` : ""}`;
  drawKinds();
  connectNoise();
  at("problem").addEventListener("change", ({ target }) => choose(target.value).catch(failed));
  at("axis").addEventListener("change", showChart);
  at("compute").addEventListener("click", compute);
}

/** Forget a table that is still loading: another tab is shown. */
export function leave() {
  state.wanted = null;
  window.clearTimeout(writing);
  forget();
}

/**
 * Show a tab: its last question, or its problem with the most rows.
 *
 * @param name Of the tab.
 * @param highlight Called with its name.
 * @param given The parameters of the address, for the question in words.
 */
export async function select(name, highlight, given = null) {
  state.highlight = highlight;
  state.wanted = name;
  highlight(name);
  showFact(name, given);
  await begun();
  if (state.wanted !== name) return;
  const tab = state.catalogue.tabs.find((each) => each.name === name);
  if (tab.problems.length) {
    await choose(last.get(tab.name) ?? fullest(tab), undefined, false);
    return;
  }
  state.wanted = null;
  window.clearTimeout(writing);
  at("content").hidden = true;
  history.replaceState(null, "", `#tab=${tab.name}`);
  const [run, build] = [`privsweep run ${tab.sweep}`, "privsweep page build"].map((each) => html("code", {}, each));
  notice("Nothing is stored on this tab. ", run, " computes points to show, and ", build, " writes the page again.");
}

/**
 * Show the question in an address.
 *
 * @param given The parameters of the address.
 * @param highlight Called with the name of a tab.
 * @returns Whether its problem is known.
 */
export async function follow(given, highlight) {
  state.highlight = highlight;
  const { problem, tab, ...texts } = Object.fromEntries(given);
  if (problem === undefined) {
    await select(tab, highlight, given);
    return true;
  }
  await begun();
  if (!state.catalogue.problems[problem] || !tabOf(problem)) return false;
  showFact(tabOf(problem).name, null);
  await choose(problem, texts);
  return true;
}
