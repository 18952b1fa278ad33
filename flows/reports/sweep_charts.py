"""The charts of a kind of problem of a sweep: roles of the fields, and marks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from flows.answers.sweep_table import Line
from flows.printing import exactly, listed
from flows.reports.axes import Axes, axes, pairs
from flows.reports.plot import Mark, Plot, drawable
from flows.reports.stored import StoredAnswer
from privcore import Bracket, Problem
from privcore.parameter import Choice, Value

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
