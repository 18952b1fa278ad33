"""Comparisons of several schemes at equal settings, side by side in charts and a table."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from flows.answers.show import methods_text, sure
from flows.printing import counted, exactly, listed, rounded_down, rounded_up
from flows.reports.document import Block, TextTable
from flows.reports.plot import Mark, Plot, drawable
from flows.spec.grid import count
from flows.spec.sweep import embedded, load
from privcore import Bracket
from privcore.answer import tables_of
from privcore.parameter import Value
from storage.schema import IMPORTS, origin_text


@dataclass(frozen=True, kw_only=True)
class Entry:
    """The bounds on one scheme at one setting.

    Attributes:
        scheme: Name of the scheme.
        fields: The setting; the names are the same in all entries.
        bracket: Both ends, with the methods that gave them.
        value: Estimate, or None.
        more: Further fields for the tooltip.
    """

    scheme: str
    fields: Mapping[str, Value]
    bracket: Bracket
    value: float | None = None
    more: Mapping[str, Value] = field(default_factory=dict)

    @property
    def setting(self) -> tuple[Value, ...]:
        """The values of the fields."""
        return tuple(self.fields.values())


def side_by_side(
    name: str, asks: str, entries: Sequence[Entry], over: Sequence[str], *, least: int = 2
) -> Iterator[Block]:
    """Yield charts and a table of schemes at equal settings.

    Args:
        name: Name of the report, with which the names of chart files begin.
        asks: The quantity that is compared.
        entries: One or several entries for each scheme and setting.
        over: Fields that become the horizontal axis of one chart each.
        least: Least number of schemes in a setting that is shown.
    """
    schemes: dict[tuple[Value, ...], set[str]] = {}
    for entry in entries:
        schemes.setdefault(entry.setting, set()).add(entry.scheme)
    shown = [entry for entry in entries if len(schemes[entry.setting]) >= least]
    if not shown:
        return
    values = {key: {entry.fields[key] for entry in shown} for key in shown[0].fields}
    for x in over:
        if len(values[x]) > 1:
            rest = [key for key in values if key != x and len(values[key]) > 1]
            yield from _plot(name, asks, shown, x, rest)
    yield _table(asks, shown, [key for key in values if len(values[key]) > 1 or len(schemes) == 1])


def _plot(name: str, asks: str, entries: Sequence[Entry], x: str, rest: Sequence[str]) -> Iterator[Plot]:
    """Yield the chart over one field; settings with most schemes and most points come first."""
    marks: dict[str, list[Mark]] = {}
    for entry in entries:
        setting = listed({key: entry.fields[key] for key in rest})
        mark = Mark(
            x=entry.fields[x],
            series=entry.scheme,
            setting=setting,
            bracket=entry.bracket,
            value=entry.value,
            more=entry.more,
        )
        marks.setdefault(setting, []).append(mark)
    several = [some for some in marks.values() if len({mark.x for mark in some}) > 1]
    # The sort is stable: equal settings stay in the order of their fields.
    several.sort(key=lambda some: (-len({mark.series for mark in some}), -len({mark.x for mark in some})))
    kept, notes = drawable(mark for some in several for mark in some)
    if kept:
        title = f"{asks[:1].upper()}{asks[1:]} over {x}"
        yield Plot(
            name=f"{name}-{x}".replace("_", "-"),
            title=title,
            x_name=x,
            y_name=asks,
            series_name="scheme",
            marks=kept,
            notes=notes,
        )


def fits(entry: Entry, row: Mapping[str, Entry]) -> bool:
    """Return whether a row can take an entry: the row lacks its scheme, and no further field differs.

    Args:
        entry: The entry.
        row: Entries of the same setting by scheme.
    """
    others = (other.more for other in row.values())
    return entry.scheme not in row and all(not entry.more or more in ({}, entry.more) for more in others)


def _table(asks: str, entries: Sequence[Entry], keys: Sequence[str]) -> TextTable:
    """Return a row for each setting, with the ends of every scheme; confidences and imports are marked."""
    names = list(dict.fromkeys(entry.scheme for entry in entries))
    rows: dict[tuple[Value, ...], list[dict[str, Entry]]] = {}
    for entry in entries:  # entries that differ in a further field get separate rows
        of_setting = rows.setdefault(entry.setting, [])
        free = next((row for row in of_setting if fits(entry, row)), None)
        if free is None:
            of_setting.append(free := {})
        free[entry.scheme] = entry
    more = list(dict.fromkeys(key for entry in entries for key in entry.more))
    shown = {name: _Ends([entry for entry in entries if entry.scheme == name]) for name in names}
    columns = [
        *keys,
        *more,
        *(f"{name}{shown[name].all_sure}, {end}" for name in names for end in shown[name].kept),
    ]
    lines = []
    for row in (row for several in rows.values() for row in several):
        known = {
            key: value for entry in row.values() for key, value in {**entry.fields, **entry.more}.items()
        }
        line = [exactly(known.get(key)) for key in (*keys, *more)]
        for name in names:
            line += shown[name].cells(row.get(name))
        lines.append(line)
    fixed = {key: value for key, value in entries[0].fields.items() if key not in keys}
    told = f", with {listed(fixed)}" if fixed else ""
    told += origin_text(tables_in(entries), "; some numbers are ")
    return TextTable(
        title=f"{asks[:1].upper()}{asks[1:]} in {counted(len(rows), 'setting')}{told}",
        names=columns,
        rows=lines,
    )


class _Ends:
    """The columns of a scheme: the lower end, and the upper end and the estimate if any entry has them.

    Attributes:
        kept: Names of the columns.
        all_sure: Text about the confidence that all entries share, or "".
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        sures = {entry.bracket.confidence for entry in entries}
        bounded = any(entry.bracket.upper < math.inf for entry in entries)
        guessed = any(entry.value is not None for entry in entries)
        self.kept = ["lower", *(["upper"] if bounded else []), *(["estimate"] if guessed else [])]
        shared = sures.pop() if len(sures) == 1 else 1.0
        self.all_sure = "" if shared == 1.0 else f" (confidence {sure(shared)})"

    def cells(self, entry: Entry | None) -> list[str]:
        """Return the cells of an entry; an end is followed by a confidence of its own and its mark."""
        if entry is None:
            return [""] * len(self.kept)
        bracket = entry.bracket
        mark = [IMPORTS] if bracket.tables else []
        own = [] if bracket.confidence == 1.0 or self.all_sure else [f"confidence {sure(bracket.confidence)}"]
        found = {
            "lower": f"{rounded_down(bracket.lower)}{_in_brackets([*own, *mark])}",
            "upper": f"{rounded_up(bracket.upper)}{_in_brackets([*own, *mark])}",
            "estimate": "" if entry.value is None else f"{entry.value:.6g}{_in_brackets(mark)}",
        }
        return [found[name] for name in self.kept]


def _in_brackets(words: Sequence[str]) -> str:
    """Return words behind a number, or ""."""
    return f" ({', '.join(words)})" if words else ""


def methods_of(entries: Sequence[Entry]) -> TextTable:
    """Return the table of the methods that gave the numbers of each scheme, and of imports."""
    found: dict[str, dict[str, int]] = {}
    for entry in entries:
        counts = found.setdefault(entry.scheme, {})
        method = f"{methods_text(entry.bracket)}{origin_text(entry.bracket.tables, ', ')}"
        counts[method] = counts.get(method, 0) + 1
    rows = [[scheme, method, str(n)] for scheme, counts in found.items() for method, n in counts.items()]
    return TextTable(title="Methods of each scheme", names=["scheme", "method", "numbers"], rows=rows)


def tables_in(entries: Iterable[Entry]) -> tuple[str, ...]:
    """Return the published tables of the rows behind entries, each once."""
    return tables_of(*(entry.bracket for entry in entries))


def lacking(what: str, asks_for: Callable[[str, Mapping[str, set[Value]]], bool]) -> str:
    """Return the sentence about answers that the store lacks, with the smallest sweeps that compute them.

    Args:
        what: The missing answers, as a plural noun phrase.
        asks_for: Whether a grid computes them, from the name of its problem and the values of its fields.
    """
    sizes = {}
    for file in set(embedded().values()):
        sweep = load(file)
        grids = [
            grid
            for grid in sweep.grids
            if asks_for(grid.problem.name, {n: set(a) for n, a in [*grid.product.items(), *grid.zip.items()]})
        ]
        if grids:
            sizes[sweep.name] = count(sweep.grids)
    names = sorted(sizes, key=lambda name: (sizes[name], name))[:2]
    runs = " or ".join(f"`privsweep run {name}`" for name in names)
    return f"The store has no {what}" + (f"; to compute them: {runs}." if runs else ".")
