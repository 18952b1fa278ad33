"""Times and widths of the engine of the page for drawn questions, in Chromium; a section of bench.py."""

import json
import math
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from flows.page.build import build
from storage import open_store
from tests.benchmarks import page_questions, page_start
from tests.flows.page.browser import call, chromium, file_server, visit, wait
from tests.flows.page.drawn import Asked, asked
from tests.flows.page.stores import sample

QUESTIONS, CHUNK = 2000, 10
MEDIAN, WORST = 0.3, 2.0
"""Targets for the seconds of a question."""

COMPUTED = """
    const { compute } = await load("engine/client.js");
    const found = [];
    for (const question of given) {
      const { lower, upper, seconds } = await compute(question);
      found.push([lower, upper === Infinity ? "inf" : upper, seconds]);
    }
    return JSON.stringify(found);
"""

Row = tuple[Asked, float, float, float, float]
"""A question, both ends in the browser, the seconds there, and the processor time of the certified method."""


def measured(first: int, count: int) -> Iterator[Row]:
    """Yield drawn questions with their answers in a browser, one after another."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        with open_store(sample(folder / "store")) as store:
            build(store, folder / "www")
        with file_server(folder / "www") as address, chromium(folder / "profile") as browser:
            visit(browser, f"{address}/#problem=unamplified-epsilon")
            wait(browser, "#number")
            for seed in range(first, first + count // CHUNK):
                started = time.process_time()
                questions = asked(seed, CHUNK)
                seconds = (time.process_time() - started) / CHUNK
                found = json.loads(call(browser, COMPUTED, *(one.content for one in questions)))
                for one, (lower, upper, took) in zip(questions, found, strict=True):
                    yield one, lower, float(upper), took, seconds


def width(lower: float, upper: float) -> float:
    """Return the relative width of a bracket."""
    if lower == upper:
        return 0.0
    return upper / lower - 1.0 if lower > 0.0 else math.inf


def _line(name: str, rows: Sequence[Row]) -> str:
    times = sorted(row[3] for row in rows)
    ours = [width(one.lower, one.upper) for one, *_ in rows]
    theirs = [width(row[1], row[2]) for row in rows]
    close = sum(b <= max(0.010001, 1.5 * a) for a, b in zip(ours, theirs, strict=True))
    apart = sum(row[1] > row[0].upper or row[0].lower > row[2] for row in rows)
    cells = (
        name,
        str(len(rows)),
        f"{statistics.median(times):.3f}",
        f"{times[int(0.99 * len(times))]:.2f}",
        f"{times[-1]:.2f}",
        f"{statistics.median(row[4] for row in rows):.3f}",
        f"{statistics.median(theirs):.2%}",
        f"{sum(each <= 0.010001 for each in theirs)}",
        f"{sum(each <= 0.010001 for each in ours)}",
        f"{close}",
        f"{apart}",
    )
    return f"| {' | '.join(cells)} |"


def table() -> Iterator[str]:
    """Yield times and widths by the kind of question."""
    rows = list(measured(1000, QUESTIONS))
    yield (
        "| questions | number | seconds, median | 99 % | worst | Python, seconds | width, median | "
        "within 1 % | Python within 1 % | within 1 %, or 1.5 times as wide | brackets that do not intersect |"
    )
    yield "|---" * 11 + "|"
    for name in ("epsilon", "delta"):
        yield _line(name, [row for row in rows if row[0].problem.asks == name])
    yield _line("all", rows)
    yield ""
    times = [row[3] for row in rows]
    yield _target(f"at most {MEDIAN} s, median", statistics.median(times), MEDIAN)
    yield _target(f"at most {WORST} s, worst", max(times), WORST)
    slow = max(rows, key=lambda row: row[3])[0]
    yield f"* The slowest question: `{json.dumps(slow.content)}`."
    yield ""
    yield from page_questions.table()
    yield ""
    yield from page_start.table()


def _target(words: str, value: float, most: float) -> str:
    return f"* Target: {words}. Measured: {value:.3g} s. {'Met' if value <= most else 'Missed'}."
