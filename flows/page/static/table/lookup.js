// The lookup: the bounds that rows of the table prove for a question, on the grid or off it, never interpolated.
//
// The true value depends on the axes of a problem: fields, and products of fields that alone matter. It is proved to grow
// or fall along some of them. A stored problem that differs from the question only along these axes, and along each only
// towards larger true values, is a corner above: its upper end holds for the question, too. Corners below give the lower
// end. Between stored values of delta, two corners together give better ends, since the privacy profile is convex
// in exp(epsilon): the functions of privcore/numerics/profile_chord.py, with the proof there, the same operations in
// the same order. `Store.lookup` in Python does the same, and chooses the same row among equals.

const NEAREST = 4; // stored values on each side of a question whose corners are combined

/** Two stored brackets contradict one another, so that neither can be trusted. */
export class Contradiction extends Error {}

const NUMBERS = { inf: Infinity, "-inf": -Infinity }; // JSON has no infinity

/**
 * Return the table of a problem, ready to be searched.
 *
 * @param problem Entry of the catalogue.
 * @param content The content of its data file: columns of `brackets`, and of `stated` answers, whose confidence is below 1.
 */
export function prepare(problem, content) {
  const columns = (source) => {
    const made = {};
    for (const [name, values] of Object.entries(source)) {
      const field = problem.fields.find((each) => each.name === name);
      const words = /_(point|imported)$/.test(name) || ["text", "choice"].includes(field?.kind);
      made[name] = words ? values : new Float64Array(values.map((value) => (typeof value === "string" ? NUMBERS[value] : value)));
    }
    made.upper_point = made.upper_point.map((id, row) => (id === "=" ? made.lower_point[row] : id)); // the same row
    return made;
  };
  const table = {
    problem,
    methods: problem.methods,
    brackets: columns(content.brackets),
    stated: columns(content.stated),
    fixed: problem.axes.filter((axis) => axis.trend === 0).map((axis) => axis.factors[0]),
    groups: new Map(),
  };
  const trended = problem.axes.filter((axis) => axis.trend !== 0);
  table.moving = trended.map((axis) => ({ ...axis, column: columnOn(table, axis) }));
  table.brackets.lower.forEach((_, row) => {
    const key = keyOf(table, (name) => table.brackets[name][row]);
    if (!table.groups.has(key)) table.groups.set(key, []);
    table.groups.get(key).push(row);
  });
  return table;
}

/** The lookup tables of some rows, each the row of an end. */
function tablesOf({ brackets }, ends) {
  const tables = ends.map(([end, row]) => brackets[`${end}_imported`]?.[row]);
  return [...new Set(tables.filter(Boolean))].sort();
}

/** The fields without a proved trend: rows must share them for one to bound the other. */
function keyOf(table, valueOf) {
  return JSON.stringify(table.fixed.map((name) => String(valueOf(name))));
}

/** The fields of a row of the brackets. */
export function fieldsOf(table, row) {
  return Object.fromEntries(table.problem.fields.map(({ name }) => [name, table.brackets[name][row]]));
}

/** The rows that equal a question in all fields without a trend. */
export function group(table, question) {
  return table.groups.get(keyOf(table, (name) => question[name])) ?? [];
}

/** Whether a corner on this side of a question has a larger value on the axis. */
const larger = (axis, end) => axis.trend > 0 === (end === "upper");

/** The value of a question on an axis: a field, or a product of fields. */
const valueOn = ({ factors: [first, ...rest] }, question) =>
  rest.reduce((x, name) => x * question[name], question[first]);

/** The values of all stored problems on an axis. */
function columnOn(table, { factors: [first, ...rest] }) {
  const { [first]: column } = table.brackets;
  if (!rest.length) return column;
  return column.map((x, row) => rest.reduce((y, name) => y * table.brackets[name][row], x));
}

/** Whether a row is the question itself. */
function same(table, question, row) {
  return table.problem.fields.every(({ name }) => table.brackets[name][row] === question[name]);
}

/** The rows of a group that bound one side, the best end first; sorted on first use. */
function ranked(table, rows, end) {
  rows.ranked ??= {};
  const [ends, methods] = [table.brackets[end], table.brackets[`${end}_method`]];
  const order = end === "upper" ? (one, other) => ends[one] - ends[other] : (one, other) => ends[other] - ends[one];
  rows.ranked[end] ??= rows.filter((row) => methods[row] >= 0).sort(order);
  return rows.ranked[end];
}

/** The row that gives the best end on one side, or -1. */
function corner(table, question, end, rows, own = true) {
  const ends = table.brackets[end];
  const bounds = table.moving.map((axis) => {
    return [axis.column, valueOn(axis, question), larger(axis, end) ? 1 : -1];
  });
  let best = -1;
  for (const row of ranked(table, rows, end)) {
    if (best >= 0 && ends[row] !== ends[best]) break;
    let proves = true;
    for (const [column, asked, sign] of bounds) {
      if (sign > 0 ? column[row] < asked : column[row] > asked) {
        proves = false;
        break;
      }
    }
    if (proves && (best < 0 || preferred(table, question, end, row, best, own))) best = row;
  }
  return best;
}

/** Whether a row comes before another with an equal end. */
function preferred(table, question, end, row, other, own) {
  const first = table.problem.tie === "first";
  if ((own || first) && same(table, question, row)) return true;
  if (first || (own && same(table, question, other))) return false;
  for (const axis of table.moving.toReversed()) {
    const [one, two] = [row, other].map((each) => axis.column[each]);
    if (one !== two) return one < two === larger(axis, end);
  }
  return false;
}

/** The nearest stored values of a field on both sides of a value; none if the value itself is stored. */
function neighbours(table, name, value) {
  table.stops ??= {};
  table.stops[name] ??= [...new Set(table.brackets[name])].sort((one, other) => one - other);
  const { [name]: stops } = table.stops;
  if (stops.includes(value)) return [];
  const place = stops.filter((each) => each < value).length;
  return stops.slice(Math.max(0, place - NEAREST), place + NEAREST);
}

/** The best end on each side: its bound and the row `near` of its corner; and, by convexity, a second row `far`; -1 for none. */
function bestEnds(table, question, rows) {
  const { lower, upper } = table.brackets;
  const [below, above] = ["lower", "upper"].map((end) => corner(table, question, end, rows));
  const found = {
    lower: { bound: below < 0 ? 0 : lower[below], near: below, far: -1 },
    upper: { bound: above < 0 ? Infinity : upper[above], near: above, far: -1 },
  };
  for (const name of Object.keys(table.problem.convex ?? {})) {
    const { [name]: asked } = question;
    const { [name]: at } = table.brackets;
    const values = neighbours(table, name, asked);
    const corners = (end) =>
      values.map((value) => corner(table, { ...question, [name]: value }, end, rows, false)).filter((row) => row >= 0);
    const [lowers, uppers] = [corners("lower"), corners("upper")];
    for (const near of uppers) {
      for (const far of uppers) {
        if (!(at[near] < asked && asked < at[far])) continue;
        const bound = epsilonAbove(asked, [at[near], upper[near]], [at[far], upper[far]]);
        if (bound < found.upper.bound) found.upper = { bound, near, far };
      }
    }
    for (const near of lowers) {
      for (const far of uppers) {
        if (!((asked < at[near] && at[near] < at[far]) || (at[far] < at[near] && at[near] < asked))) continue;
        const bound = epsilonBelow(asked, [at[near], lower[near]], [at[far], upper[far]]);
        if (bound > found.lower.bound) found.lower = { bound, near, far };
      }
    }
  }
  return found;
}

/**
 * Return the best bracket that the table proves, or null if it proves no bound.
 *
 * @param table From `prepare`.
 * @param question A value for every field.
 * @returns Names and values of `storage.Found`, and the rows `lower_row` and `upper_row`, -1 for none.
 * @throws Contradiction
 */
export function lookup(table, question) {
  const rows = group(table, question);
  const { brackets, methods } = table;
  const { lower, upper } = bestEnds(table, question, rows);
  if (lower.near < 0 && upper.near < 0) return null;
  const fields = (row) => (row < 0 ? null : fieldsOf(table, row));
  const method = (end, row) => (row < 0 ? null : methods[brackets[`${end}_method`][row]]);
  const found = {
    lower: lower.bound,
    upper: upper.bound,
    exact: rows.some((row) => same(table, question, row)),
    lower_from: fields(lower.near),
    upper_from: fields(upper.near),
    lower_method: method("lower", lower.near),
    upper_method: method("upper", upper.near),
    lower_also: fields(lower.far),
    upper_also: fields(upper.far),
    lower_also_method: method("upper", lower.far),
    upper_also_method: method("upper", upper.far),
    lower_row: lower.near,
    upper_row: upper.near,
    tables: tablesOf(table, [["lower", lower.near], ["upper", upper.near], ["upper", lower.far], ["upper", upper.far]]),
  };
  if (found.lower > found.upper) {
    const from = (end, { near, far }) => {
      const tables = tablesOf(table, [[end, near], ["upper", far]]);
      return tables.length ? ` (imported from the table ${tables.join(" and ")})` : "";
    };
    throw new Contradiction(
      `The table contradicts itself about ${table.problem.name}: ${found.lower_method}${from("lower", lower)} has at least ` +
        `${found.lower}, but ${found.upper_method}${from("upper", upper)} at most ${found.upper}.`,
    );
  }
  return found;
}

/** The same for other values than the question: null also if the table contradicts itself. */
export function agreed(table, question) {
  try {
    return lookup(table, question);
  } catch (error) {
    if (error instanceof Contradiction) return null;
    throw error;
  }
}

/** The stored answers to exactly this question with a confidence below 1, as a list. */
export function stated(table, question) {
  const { stated: columns, methods } = table;
  const found = [];
  columns.lower.forEach((lower, row) => {
    if (table.problem.fields.some(({ name }) => columns[name][row] !== question[name])) return;
    found.push({
      lower,
      upper: columns.upper[row],
      confidence: columns.confidence[row],
      method: methods[columns.lower_method[row]],
      point: columns.lower_point[row],
      tables: [columns.lower_imported?.[row]].filter(Boolean),
    });
  });
  return found;
}

const SLACK = 2 ** -40;
const MOVE = 2 ** -48;
const TERMS = 40;
const [LARGEST_FALL, LARGEST_RISE, LARGEST_LOSS, LARGEST_RATIO] = [60, 2, 0.75, 1e15];

/** The first terms of exp(x) - 1, for x >= 0, by Horner's rule. */
function grown(x) {
  let total = 1;
  for (let k = TERMS; k > 1; k -= 1) total = 1 + (x * total) / k;
  return x * total;
}

/** The first terms of log((1 + u) / (1 - u)), for u in [0, 1), by Horner's rule. */
function logarithm(u) {
  let total = 0;
  for (let k = 2 * TERMS - 1; k > 0; k -= 2) total = 1 / k + u * u * total;
  return 2 * (u * total);
}

/** An upper bound of epsilon at a delta between two places `[delta, upper end of epsilon]`. */
export function epsilonAbove(delta, [leftDelta, most], [rightDelta, least]) {
  if (!(least < most)) return most;
  const share = (delta - leftDelta) / (rightDelta - leftDelta);
  const fallen = grown(Math.min(most - least, LARGEST_FALL));
  const part = share * (fallen / (1 + fallen)) * (1 - SLACK);
  const gain = logarithm(part / (2 - part)) * (1 - SLACK);
  return Math.min(most, most - gain + most * MOVE);
}

/** A lower bound of epsilon at a delta from `[delta, lower end]` near it, and `[delta, upper end]` beyond that. */
export function epsilonBelow(delta, [nearDelta, least], [farDelta, most]) {
  const ratio = (nearDelta - delta) / (farDelta - nearDelta);
  if (nearDelta > delta) {
    if (!(most < least)) return least;
    const fallen = grown(Math.min(least - most, LARGEST_FALL));
    const part = Math.min(ratio, LARGEST_RATIO) * (fallen / (1 + fallen)) * (1 - SLACK);
    const gain = logarithm(part / (2 + part)) * (1 - SLACK);
    return Math.max(least, least + gain - (least + gain) * MOVE);
  }
  const rise = Math.max(most - least, 0);
  if (!(rise <= LARGEST_RISE)) return 0;
  const part = ratio * grown(rise) * (1 + SLACK);
  if (!(part <= LARGEST_LOSS)) return 0;
  const loss = logarithm(part / (2 - part)) * (1 + SLACK);
  return Math.max(0, least - loss - least * MOVE);
}
