"""The report of a sweep: questions, outcome, brackets in tables and charts, and provenance."""

from collections import Counter
from collections.abc import Iterator, Sequence

from flows.answers.ask import UncoveredError
from flows.answers.catalogue import meaning_of
from flows.answers.palette import NAMES
from flows.answers.samplers import SAMPLING
from flows.answers.sweep_table import Line, sweep_lines
from flows.printing import exactly, listed
from flows.reports.contradictions import contradictions_of
from flows.reports.document import Block, Document, Heading, Paragraph, TextTable, counted
from flows.reports.provenance import provenance, source
from flows.reports.stored import StoredAnswer, check_exists, conflicts, stored
from flows.reports.summary import summary
from flows.reports.sweep_charts import sweep_charts
from flows.reports.tables import of_answers, of_brackets, of_failures
from flows.runs.plan import check_size
from flows.runs.status import point_ids
from flows.spec.fields import fields_of
from flows.spec.grid import Axis, Grid
from flows.spec.sweep import Sweep, embedded
from flows.spec.typed import TYPED
from privcore import Problem, Status
from privcore.answer import FAILURES
from storage import Store
from storage.schema import problem_id


def sweep_report(sweep: Sweep, store: Store) -> Document:
    """Return the report of a sweep from its stored points.

    Args:
        sweep: The sweep.
        store: Opened with `missing_ok`.

    Raises:
        UncoveredError: The store has no points of the sweep.
        TooLargeError: The sweep has too many points to list.
        StoreError: The store cannot be read.
    """
    check_size(sweep)
    wanted = {problem: set(ids) for problem, ids in point_ids(sweep).items()}
    check_exists(store)
    lines = sweep_lines(sweep, store)
    kinds = list(dict.fromkeys(type(line.problem) for line in lines))
    asked = {problem_id(line.problem): line.problem for line in lines}
    # The brackets are the best of the store, so rows of other sweeps on these problems count too.
    answers = {kind: stored(store, kind, asked) for kind in kinds}
    contradictions = [each for each in conflicts(store) if each["problem_id"] in asked]
    everything = [answer for some in answers.values() for answer in some]
    if not everything:
        raise UncoveredError(f"No points of sweep {sweep.name} are stored in {store.name}.")
    own = [answer for answer in everything if answer.row["point_id"] in wanted[answer.problem]]
    total = sum(map(len, wanted.values()))
    blocks: list[Block] = [Heading(text=heading(sweep), level=1)]
    blocks += summary(lines)
    blocks += _asked(sweep)
    blocks += _came_of_it(own, total, len(contradictions))
    for kind in kinds:
        blocks += _of_kind(sweep, kind, [line for line in lines if type(line.problem) is kind], answers[kind])
    contradicted = contradictions_of(contradictions, asked)
    blocks += contradicted.blocks
    blocks += _troubles(own)
    blocks += provenance(everything, degraded=store.degraded)
    missing, failed = total - len(own), sum(answer.row["status"] in FAILURES for answer in own)
    incomplete = [f"{missing} of {total} points are not stored."] if missing else []
    incomplete += [f"{failed} of {total} points failed."] if failed else []
    incomplete += contradicted.incomplete
    return Document(name=sweep.name, blocks=blocks, incomplete=incomplete, source=source(everything))


def heading(sweep: Sweep) -> str:
    """Return the title of a sweep, with the samplers of its training runs unless it names them.

    Example:
        >>> from flows.spec.sweep import load
        >>> heading(load("allocation-figure2"))
        'Epsilon against noise for 100, 1000 and 10000 steps: random allocation, Poisson'
    """
    title = sweep.title or sweep.name
    families = [grid.problem.name.rpartition("-")[0] for grid in sweep.grids]
    samplers = {name: problem.rpartition("-")[0] for name, problem in SAMPLING.items()}
    if not set(families) <= set(samplers.values()):
        return title
    used = [name for name, family in samplers.items() if family in families]
    if all(name in title.casefold() or NAMES[name].casefold() in title.casefold() for name in used):
        return title
    return f"{title}: {', '.join(NAMES[name] for name in used)}"


# ------------------------------------------------------------------------------------- questions


def _asked(sweep: Sweep) -> Iterator[Block]:
    """Yield the questions of the sweep, one row for each grid."""
    yield Heading(text="Questions")
    command = f"privsweep run {sweep.name}{'' if sweep.name in embedded() else '.toml'}"
    rest = f"`{command}` computes the points that are not stored yet."
    if sweep.title.endswith(TYPED):
        rest = "Its grid was typed on the command line."
    yield Paragraph(text=f"Sweep `{sweep.name}`. {rest}")
    rows = []
    for grid, spec in zip(sweep.grids, sweep.spec["grid"], strict=True):
        methods = "; ".join(
            " ".join([method.name, listed(method.identity())]).strip() for method in grid.methods
        )
        where = str(spec.get("where", ""))
        rows.append([grid.problem.name, methods, _values(grid), where])
    names = ["problem", "methods", "values", "where"]
    used = [k for k, name in enumerate(names) if name != "where" or any(row[k] for row in rows)]
    yield TextTable(
        title="1 grid" if len(rows) == 1 else f"{len(rows)} grids",
        names=[names[k] for k in used],
        rows=[[row[k] for k in used] for row in rows],
        fold=len(rows) > 6,
    )


def _values(grid: Grid) -> str:
    """Return the values of the fields of a grid as text."""
    order = list(fields_of(grid.problem))
    parts = [
        f"{name} {_axis(axis)}"
        for name, axis in sorted(grid.product.items(), key=lambda item: order.index(item[0]))
    ]
    return "; ".join(parts + ([_pairs(grid, order)] if grid.zip else []))


def _pairs(grid: Grid, order: Sequence[str]) -> str:
    """Return the values of paired fields, such as `steps with sampling_probability: 100 with 0.01`."""
    names = sorted(grid.zip, key=order.index)
    rows = [" with ".join(map(exactly, row)) for row in zip(*(grid.zip[n] for n in names), strict=True)]
    told = ", ".join(rows) if len(rows) <= 8 else f"{rows[0]}, {rows[1]} ... {rows[-1]} ({len(rows)} rows)"
    return f"{' with '.join(names)}: {told}"


def _axis(axis: Axis) -> str:
    numbers = [exactly(number) for number in axis.numbers]
    if axis.rule == "list":
        return (
            " ".join(numbers)
            if len(numbers) <= 16
            else f"{numbers[0]} ... {numbers[-1]} ({len(numbers)} values)"
        )
    last = "step" if axis.rule == "range" else "values"
    return f"{axis.rule} {numbers[0]} to {numbers[1]} ({numbers[2]} {last})"


# ----------------------------------------------------------------------------------- outcome


def _came_of_it(answers: Sequence[StoredAnswer], total: int, contradictions: int) -> Iterator[Block]:
    """Yield the number of points by status."""
    statuses = Counter(str(answer.row["status"]) for answer in answers)
    rows = [[_words(status), str(count)] for status, count in statuses.most_common()]
    if missing := total - len(answers):
        rows.append(["not stored yet", str(missing)])
    rows.append(["total", str(total)])
    yield Heading(text="Outcome")
    yield TextTable(title="Points", names=["status", "points"], rows=rows)
    yield Paragraph(
        text="No contradictions between methods were found."
        if not contradictions
        else f"{counted(contradictions, 'contradiction')} between methods, so one of two is wrong. See below."
    )


def _words(status: str) -> str:
    return {Status.OK.value: "answered", Status.NOT_APPLICABLE.value: "method does not apply"}.get(
        status, status.replace("_", " ")
    )


def _of_kind(
    sweep: Sweep, kind: type[Problem], lines: Sequence[Line], answers: Sequence[StoredAnswer]
) -> Iterator[Block]:
    """Yield the section of a kind of problem: its meaning, chart and tables."""
    yield Heading(text=kind.name)
    yield Paragraph(text=meaning_of(kind).replace("`", ""))
    doubtful = [answer for answer in answers if answer.ok and not answer.proved]
    yield from sweep_charts(sweep.name, kind, lines, doubtful)
    if any(line.stored for line in lines):
        yield of_brackets(kind, lines)
    elif not doubtful:
        yield Paragraph(text="The store has no answers to this problem yet.")
    if len({answer.method for answer in answers if answer.proved}) > 1:
        proved = [answer for answer in answers if answer.proved]
        what = "answer" if any(answer.imported for answer in proved) else "proved answer"
        yield of_answers(kind, proved, f"Each method alone: {counted(len(proved), what)}")
    if doubtful:
        what = f"Simulated, from data, or under an assumption: {counted(len(doubtful), 'answer')}"
        yield of_answers(kind, doubtful, what)


def _troubles(answers: Sequence[StoredAnswer]) -> Iterator[Block]:
    """Yield the points without an answer, with their reasons."""
    if failed := [answer for answer in answers if answer.row["status"] in FAILURES]:
        yield Heading(text="Failures")
        yield of_failures(failed)
    if declined := [answer for answer in answers if answer.row["status"] == Status.NOT_APPLICABLE]:
        yield Heading(text="Methods that do not apply")
        yield of_failures(declined)
