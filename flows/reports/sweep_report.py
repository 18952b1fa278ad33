"""The report of a sweep: questions, outcome, brackets in tables and charts, and provenance."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from flows.answers.ask import UncoveredError
from flows.answers.catalogue import meaning_of
from flows.answers.parse import SAMPLING
from flows.answers.question import phases_of
from flows.answers.sweep_table import Line, sweep_lines
from flows.answers.training.along import sampling_of
from flows.answers.training.palette import NAMES
from flows.printing import counted, exactly, listed
from flows.reports.compare_training import scheme_entries
from flows.reports.comparison import side_by_side
from flows.reports.document import Block, Document, Heading, Paragraph, TextTable
from flows.reports.plot import Axes, Mark, Plot, axes, drawable, pairs
from flows.reports.stored import StoredAnswer, check_exists, conflicts, provenance, source, stored
from flows.reports.summary import summary
from flows.reports.tables import contradictions_of, of_answers, of_brackets, of_failures
from flows.runs.plan import check_size
from flows.runs.status import point_ids
from flows.spec.fields import fields_of
from flows.spec.grid import Axis, Grid
from flows.spec.sweep import Sweep, embedded
from flows.spec.typed import TYPED
from privcore import Bracket, Problem, Status
from privcore.answer import FAILURES
from privcore.parameter import Choice, Value
from storage import Store
from storage.schema import problem_id

Fields = Mapping[str, Value]


def sweep_charts(
    name: str, kind: type[Problem], lines: Sequence[Line], doubtful: Sequence[StoredAnswer]
) -> Iterator[Plot]:
    """Yield the charts of a kind of problem, if some field varies and some bound is stored.

    Args:
        name: Name of the sweep.
        kind: The kind of problem.
        lines: All problems of this kind in the sweep, with their proved brackets.
        doubtful: Answers without proof.
    """
    asked = [line.problem.as_fields() for line in lines]
    known = [*_proved(kind, lines), *_unproved(kind, doubtful)]
    field, layouts = _layouts(kind, asked)
    for value, layout in layouts.items():
        marks = [
            _placed(mark, fields, layout) for fields, mark in known if not field or fields[field] == value
        ]
        kept, notes = drawable(marks)
        if kept:
            same = [fields for fields in asked if not field or fields[field] == value]
            words, stem = (f", {field}={value}", f"-{value}") if field else ("", "")
            yield Plot(
                name=f"{name}-{kind.name}{stem}",
                title=f"{kind.asks.capitalize()} of {kind.name} over {layout.x}{words}",
                x_name=layout.x,
                y_name=kind.asks,
                series_name=", ".join([layout.series, *_led(layout, layout.series)]) if layout.series else "",
                marks=kept,
                labels=_labels(same, layout),
                notes=[*_followers(same, layout), *_fixed(same), *notes],
            )


def _led(layout: Axes, leader: str) -> list[str]:
    """Return the fields that a field determines."""
    return [name for name, by in layout.implied.items() if by == leader]


def _labels(asked: Sequence[Fields], layout: Axes) -> dict[Value, str]:
    """Return the texts of the series, with the values of the fields that they determine."""
    names = _led(layout, layout.series)
    if not names:
        return {}
    return {
        fields[layout.series]: ", ".join(exactly(fields[n]) for n in (layout.series, *names))
        for fields in asked
    }


def _followers(asked: Sequence[Fields], layout: Axes) -> list[str]:
    """Return a sentence for each field that changes with the horizontal axis."""
    said = []
    for name in _led(layout, layout.x):
        rows = [f"{exactly(value)} at {exactly(x)}" for x, value in sorted(pairs(asked, layout.x, name))]
        values = ", ".join(rows) if len(rows) <= 6 else f"{rows[0]}, {rows[1]}, ..., {rows[-1]}"
        said.append(f"{name} changes with {layout.x}: {values}.")
    return said


def _fixed(asked: Sequence[Fields]) -> list[str]:
    """Return the sentence about the fields that have one value in a chart."""
    first = asked[0]
    fixed = {n: value for n, value in first.items() if all(fields[n] == value for fields in asked)}
    return [f"All points have {listed(fixed)}."] if fixed else []


def _layouts(kind: type[Problem], asked: Sequence[Fields]) -> tuple[str, dict[Value, Axes]]:
    """Return the roles of the fields, in one chart, or in a chart for each value of a field.

    For example, randomized response varies in epsilon but bags vary in their size, so they get separate
    charts.
    """
    for name, parameter in kind.parameters.items():
        if isinstance(parameter, Choice):
            values = dict.fromkeys(fields[name] for fields in asked)
            parts = {value: axes([fields for fields in asked if fields[name] == value]) for value in values}
            if len({part.x for part in parts.values() if part}) > 1:
                return name, {value: part for value, part in parts.items() if part}
    whole = axes(asked)
    return "", {"": whole} if whole else {}


def _proved(kind: type[Problem], lines: Sequence[Line]) -> Iterator[tuple[Fields, Mark]]:
    """Yield the fields and the mark, without a position, of every proved bracket."""
    for line in lines:
        if line.stored:
            yield line.problem.as_fields(), _mark(kind, line.bracket)


def _unproved(kind: type[Problem], doubtful: Sequence[StoredAnswer]) -> Iterator[tuple[Fields, Mark]]:
    """Yield the fields and the mark, without a position, of every answer without proof."""
    for answer in doubtful:
        yield answer.fields, replace(_mark(kind, answer.bracket), value=answer.row["value"])


def _mark(kind: type[Problem], bracket: Bracket) -> Mark:
    return Mark(x=0, series="", bracket=bracket, largest=kind.largest)


def _placed(mark: Mark, fields: Fields, layout: Axes) -> Mark:
    """Return a mark at the position of its fields."""
    return replace(
        mark,
        x=fields[layout.x],
        series=fields[layout.series] if layout.series else "",
        setting=listed({n: fields[n] for name in layout.rest for n in (name, *_led(layout, name))}),
        more={name: fields[name] for name in layout.implied},
    )


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
    blocks += _samplers(sweep, lines)
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


def _samplers(sweep: Sweep, lines: Sequence[Line]) -> Iterator[Plot]:
    """Yield the chart of all samplers over the noise, if the sweep has several at equal settings."""
    known: dict[str, list[tuple[Fields, Bracket]]] = {}
    for line in lines:
        if line.stored and not line.bracket.crossed:
            known.setdefault(line.problem.name, []).append((line.problem.as_fields(), line.bracket))
    entries = list(scheme_entries(lambda problem: known.get(problem, [])))
    blocks = side_by_side(f"{sweep.name}-samplers", "epsilon", entries, ("sigma",))
    plots = [block for block in blocks if isinstance(block, Plot)]
    yield from plots or _one_run(sweep, lines)


def _one_run(sweep: Sweep, lines: Sequence[Line]) -> Iterator[Plot]:
    """Yield the chart of a run under several samplers, one below another, if the sweep asks about one run."""
    kinds = Counter(line.problem.name for line in lines)
    runs = kinds.pop("run-epsilon", 0)
    if not set(kinds) <= set(SAMPLING.values()) or any(count > 1 for count in kinds.values()):
        return
    found: dict[str, Bracket] = {}
    same = set()
    for line in lines:
        phase, *others = phases_of(line.problem)
        if others:
            return
        fields, sampling = phase.as_fields(), sampling_of(line.problem)
        same.add((fields["sigma"], fields.get("epochs"), line.problem.as_fields()["delta"]))
        name = NAMES.get(sampling, "")
        if line.stored and line.bracket.upper < found.get(name, Bracket()).upper:
            found[name] = line.bracket
    counts = [phases_of(line.problem)[0].as_fields().get("steps", 1) for line in lines]
    steps = [
        float(count) for count in counts if count != 1
    ]  # without sampling, only steps of one example count
    apart = max(steps, default=0.0) - min(steps, default=0.0)
    if len(same) > 1 or apart > 1.0 or len(found) < max(2, runs):
        return
    ordered = sorted(found, key=lambda name: found[name].upper)
    yield Plot(
        name=f"{sweep.name}-samplers",
        title="Epsilon by sampler",
        x_name="sampler",
        y_name="epsilon",
        series_name="",
        marks=[Mark(x=name, series=name, bracket=found[name]) for name in ordered],
        intervals=True,
    )


def heading(sweep: Sweep) -> str:
    """Return the title of a sweep, with the samplers of its training runs unless it names them.

    Example:
        >>> from flows.spec.sweep import load
        >>> heading(load("allocation-figure2"))
        'Epsilon against noise for 100, 1000 and 10000 steps: Poisson, random allocation'
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
        what = "answer" if any(answer.bracket.tables for answer in proved) else "proved answer"
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
