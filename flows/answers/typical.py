"""A typical problem among many: the first question on a tab of the page, and the headline of a report."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from flows.printing import exactly
from privcore import Problem

Columns = Mapping[str, Sequence[Any]]


def typical_row(kind: type[Problem], source: Columns) -> int:
    """Return the number of a row with both ends, short values, and values near the middle.

    Args:
        kind: The kind of problem.
        source: Columns of the fields and of both ends, with at least one row.
    """
    names = list(kind.parameters)
    rows = range(len(source["lower"]))
    both = [k for k in rows if source["lower"][k] > 0 and source["upper"][k] < math.inf]
    usual = kind.defaults()

    middles = {name: _from_middle(source[name]) for name in names}

    def oddness(k: int) -> tuple[int, float, int]:
        values = {name: source[name][k] for name in names}
        unusual = sum(values[name] != usual[name] for name in usual)
        letters = sum(len(exactly(value)) for value in values.values())
        return unusual, letters + 5 * sum(middles[name][values[name]] for name in names), k

    return min(both or rows, key=oddness)


def _from_middle(column: Sequence[Any]) -> dict[Any, float]:
    """Return the distance of each value of a field from the middle value, 1 for the least and the largest."""
    values = sorted(set(column))
    half = max(1, len(values) - 1) / 2
    return {value: abs(k - half) / half for k, value in enumerate(values)}
