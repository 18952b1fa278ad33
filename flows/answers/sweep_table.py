"""The lookup table of a sweep: one line for each problem, with the best bounds that are stored."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from flows.answers.ask import CONFLICT, UncoveredError, conditions
from flows.answers.show import methods_text, show_conditions, width_text
from flows.printing import as_json, exactly, listed, rounded_down, rounded_up, say, show
from flows.spec.sweep import Sweep, embedded, embedded_names, from_spec, load
from privcore import PROBLEMS, Bracket, Problem
from privcore.answer import attributed, tables_of
from privcore.errors import unknown
from storage import Store
from storage.errors import ContradictionError
from storage.schema import IMPORTS, NOT_RECOMPUTED, import_content, problem_id
from storage.sql.views import current, quoted, remedy, view_name

ENDS = ("lower", "upper", "lower_method", "upper_method", "lower_point", "upper_point")
"""Columns of the view `best` that make a bracket."""

MOST_ROWS = 1000
"""Largest number of lines of a printed table; JSON and SQL give all lines."""

MOST_CONDITIONS = 4
"""Largest number of assumptions below a printed table."""

NOTHING = Bracket()
"""The bracket of a problem without stored bounds."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One problem of a sweep with its stored bounds; without bounds, it has no methods.

    Attributes:
        problem: The problem.
        bracket: The best stored bracket.
        intervals: Number of stored intervals with a confidence below 1, which the bracket leaves out.
    """

    problem: Problem
    bracket: Bracket = NOTHING
    intervals: int = 0

    @property
    def stored(self) -> bool:
        """Whether any bound is stored."""
        return bool(self.bracket.lower_by or self.bracket.upper_by)

    @property
    def method(self) -> str:
        """The methods of the bracket, or the reason why there is none."""
        if self.bracket.crossed:
            return f"{methods_text(self.bracket)}, which contradict one another"
        if self.stored:
            return methods_text(self.bracket)
        return "intervals only" if self.intervals else "not stored"


def sweep_named(name: str, store: Store) -> Sweep | None:
    """Return the sweep of that name: as it ran on this store, or embedded, or in a TOML file.

    Args:
        name: Name of a sweep, path of a TOML file, or name of a problem.
        store: Opened with `missing_ok`.

    Returns:
        The sweep, or None for the name of a problem.

    Raises:
        SweepError: The file is wrong or missing.
        UnknownNameError: The name is unknown; the closest name is suggested.
    """
    if name.endswith(".toml"):
        return load(name)
    ran = {manifest.name: manifest.spec for manifest in store.manifests()} if store.exists else {}
    if name in ran:
        return from_spec(ran[name], f"sweep {name}")
    known = embedded()
    if name in known:
        sweep = load(name)
        return from_spec(ran[sweep.name], f"sweep {name}") if sweep.name in ran else sweep
    problems = [kind.name for kind in PROBLEMS]
    if name in problems:
        return None
    raise unknown("problem or sweep", name, [*problems, *ran, *embedded_names()])


def show_sweep(sweep: Sweep, store: Store, option: str | None, json: bool) -> None:
    """Print the table of a sweep.

    Args:
        sweep: The sweep.
        store: The store.
        option: Name of the store for other commands, or None for the default.
        json: Whether to print JSON.

    Raises:
        UncoveredError: No point of the sweep is stored.
        ContradictionError: After the table is printed: stored brackets contradict one another.
    """
    if not store.exists:
        raise UncoveredError(f"Nothing of sweep {sweep.name} is stored: there is no store at {store.name}.")
    lines = sweep_lines(sweep, store)
    crossed = [line.bracket for line in lines if line.bracket.crossed]
    if not any(line.stored or line.intervals for line in lines):
        raise UncoveredError(f"Nothing of sweep {sweep.name} is stored in {store.name}.")
    if json:
        say(as_json({"sweep": sweep.name, "problems": [_line_content(line) for line in lines]}))
    else:
        for k, kind in enumerate(dict.fromkeys(type(line.problem) for line in lines)):
            say("\n" if k else "", end="")
            _show_kind(sweep, kind, [line for line in lines if type(line.problem) is kind], option)
    if crossed:
        several = f"{len(crossed)} problem{'s' * (len(crossed) != 1)}"
        raise ContradictionError(
            f"contradicts itself about {several} of sweep {sweep.name}: a lower end is above the upper end",
            f"see the view conflicts; {remedy(tables_of(*crossed))}",
        )


def sweep_lines(sweep: Sweep, store: Store) -> list[Line]:
    """Return one line for each problem of a sweep: by kind in the sweep's order, then sorted by fields."""
    asked: dict[type[Problem], dict[str, Problem]] = {}
    for grid in sweep.grids:
        asked.setdefault(grid.problem, {}).update((problem_id(p), p) for p in grid.problems())
    lines = []
    for kind, problems in asked.items():
        best = stored_brackets(store, ["problem_id"], f"from best where problem = '{kind.name}'")
        known, counts = {row["problem_id"]: each for row, each in best}, _intervals(store, kind)
        some = [
            Line(problem=problem, bracket=known.get(key, NOTHING), intervals=counts.get(key, 0))
            for key, problem in problems.items()
        ]
        lines += sorted(some, key=lambda line: tuple(line.problem.as_fields().values()))
    return lines


def _intervals(store: Store, kind: type[Problem]) -> dict[str, int]:
    """Return the numbers of stored intervals with a confidence below 1, by the id of the problem."""
    table = store.sql(
        f"select problem_id, count(*) as n from results "
        f"where problem = '{kind.name}' and confidence < 1 and {current()} group by problem_id"
    )
    return dict(zip(table["problem_id"].to_pylist(), table["n"].to_pylist(), strict=True))


def stored_brackets(
    store: Store, names: Sequence[str], rows: str
) -> Iterator[tuple[dict[str, Any], Bracket]]:
    """Yield columns of rows of the view `best`, or of one with the same columns, each row with its bracket.

    Args:
        store: The store.
        names: The columns.
        rows: Query for the rows, without its columns.
    """
    tables = store.tables()
    for row in store.sql(f"select {quoted([*names, *ENDS])} {rows}").to_pylist():
        lower_by, upper_by = (
            attributed(row[f"{end}_method"] or "", tables.get(row[f"{end}_point"]))
            for end in ("lower", "upper")
        )
        yield row, Bracket(lower=row["lower"], upper=row["upper"], lower_by=lower_by, upper_by=upper_by)


def _line_content(line: Line) -> dict[str, Any]:
    bracket = line.bracket
    return {
        "problem": line.problem.name,
        "fields": line.problem.as_fields(),
        "lower": bracket.lower,
        "upper": bracket.upper,
        "lower_method": bracket.lower_by or None,
        "upper_method": bracket.upper_by or None,
        "status": CONFLICT if bracket.crossed else "ok" if line.stored else "missing",
        **({"intervals": line.intervals} if line.intervals else {}),
        **import_content(bracket.tables),
        **conditions(line.problem),
    }


def _show_kind(sweep: Sweep, kind: type[Problem], lines: Sequence[Line], option: str | None) -> None:
    """Print the lines of one kind of problem; fields that are equal in all lines go into the title."""
    columns = {name: [exactly(line.problem.as_fields()[name]) for line in lines] for name in kind.parameters}
    methods = [line.method for line in lines]
    same = {name: cells[0] for name, cells in columns.items() if len(set(cells)) == 1 and len(lines) > 1}
    table = {name: cells for name, cells in columns.items() if name not in same}
    table[f"{kind.asks} lower"] = [rounded_down(line.bracket.lower) if line.stored else "" for line in lines]
    table[f"{kind.asks} upper"] = [rounded_up(line.bracket.upper) if line.stored else "" for line in lines]
    table["width"] = [width_text(line.bracket) for line in lines]
    title = f"{sweep.name}: {kind.name}"
    title += f" with {listed(same)}" if same else ""
    if len(set(methods)) == 1:
        title += f", by {methods[0]}" if lines[0].stored else f", {methods[0]}"
    else:
        table["method"] = methods
    if theirs := sum(bool(line.bracket.tables) for line in lines):
        table[IMPORTS] = [" and ".join(line.bracket.tables) for line in lines]
    stored = sum(line.stored for line in lines)
    title += f"\n{len(lines)} problems, {'all' if stored == len(lines) else stored} with bounds"
    rows = list(zip(*table.values(), strict=True))
    show(list(table), rows[:MOST_ROWS], title=title)
    if len(rows) > MOST_ROWS:
        say(f"... and {len(rows) - MOST_ROWS} more: use --json, or privsweep sql")
    if theirs:
        several = "1 problem are" if theirs == 1 else f"{theirs} problems are"
        say(f"{IMPORTS}   bounds of {several} {NOT_RECOMPUTED}; the column names their lookup table")
    if doubtful := sum(line.intervals > 0 for line in lines):
        query = f'"from {view_name(kind.name)} where confidence < 1"'
        query += "" if option is None else f" --store {shlex.quote(option)}"
        several = "1 problem has" if doubtful == 1 else f"{doubtful} problems have"
        say(
            f"intervals  {several} stored intervals with a confidence below 1, which are left out; to print "
            f"them: `privsweep sql {query}`"
        )
    different = {tuple(conditions(line.problem).items()): line.problem for line in lines}
    for problem in list(different.values())[:MOST_CONDITIONS]:
        show_conditions(problem)
    if len(different) > MOST_CONDITIONS:
        say(f"... and {len(different) - MOST_CONDITIONS} more assumptions: use --json")
