"""Answers of the engine of the page, and the rows of the shipped table that it covers."""

import json
import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from privcore import find_problem
from storage.table.shipped import FOLDER
from tests.flows.page.browser import Scripted, call
from tests.flows.page.drawn import METHODS, Asked

COVERED = [f"{scheme}-{quantity}" for scheme in METHODS for quantity in ("epsilon", "delta")]
"""Names of the problems that the engine answers."""

COMPUTED = """
    const { compute } = await load("engine/client.js");
    const found = [];
    for (const question of given) {
      const { lower, upper, detail, seconds } = await compute(question);
      found.push([lower, String(upper), detail, seconds]);
    }
    return JSON.stringify(found);
"""


def computed(browser: Scripted, questions: Sequence[dict[str, Any]]) -> list[tuple[float, float, str, float]]:
    """Return both ends, the detail and the seconds of each question; the browser is at a page."""
    found = json.loads(call(browser, COMPUTED, *questions))
    return [(lower, float(upper.replace("Infinity", "inf")), *rest) for lower, upper, *rest in found]


def width(lower: float, upper: float) -> float:
    """Return the relative width of a bracket."""
    if lower == upper:
        return 0.0
    return upper / lower - 1.0 if lower > 0.0 else math.inf


@cache
def covered_rows() -> pa.Table:
    """Return the proved rows of the shipped table whose problem the engine answers."""
    table = pq.read_table(
        max(FOLDER.glob("lookup-*.parquet")),
        filters=[("problem", "in", COVERED), ("status", "=", "ok"), ("confidence", "=", 1.0)],
    )
    kinds, counts, steps = (table[name].to_pylist() for name in ("problem", "participations", "steps"))
    between = [
        "allocation" in kind and count not in (1, of)
        for kind, count, of in zip(kinds, counts, steps, strict=True)
    ]
    return table.filter(pa.array([not each for each in between]))


def stored(rows: pa.Table) -> list[Asked]:
    """Return the questions of stored rows with their brackets."""
    found = []
    for row in rows.to_pylist():
        kind = find_problem(row["problem"])
        given = {name: row[name] for name in kind.parameters if row[name] is not None}
        found.append(Asked(kind.from_fields(given), row["lower"], row["upper"]))
    return found
