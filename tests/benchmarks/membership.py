"""Membership inference: the worst learner of discrete records, compared with scipy; a section of bench.py."""

import statistics
import time
from collections.abc import Callable, Iterator

import numpy as np

RECORDS = 10**9
QUESTIONS = [
    ("zipf(1,1000000)", RECORDS, 1.0),
    ("zipf(1,1000000)", RECORDS, 1.01),
    ("zipf(1,1000000)", RECORDS, 0.5),
    ("uniform(1000000)", RECORDS, 1.0),
    ("zipf(1.2)", RECORDS, 1.0),
    ("zipf(1.2)", RECORDS, 1.01),
    ("zipf(2)", RECORDS, 1.0),
]
REPEATS = 5


def table() -> Iterator[str]:
    """Yield advantages with the processor time of one core, and scipy's time for the same sum."""
    from privcore import Point, evaluate, find, find_problem
    from privcore.distributions.record_notation import law

    kind, method = find_problem("membership-advantage"), find("membership.exact")()

    def point(text: str, records: int, odds: float) -> Point:
        return Point(problem=kind.from_fields({"law": text, "records": records, "odds": odds}), method=method)

    for odds in (1.0, 1.5, 0.5):
        evaluate(point("uniform(10)", 10, odds))  # loads compiled code

    yield "| distribution | records | odds | advantage | relative width | seconds | scipy, seconds |"
    yield "|---|---|---|---|---|---|---|"
    for question in QUESTIONS:
        found = evaluate(point(*question))
        seconds = seconds_of(lambda: evaluate(point(*question)), before=law.cache_clear)  # noqa: B023
        width = found.upper / found.lower - 1.0
        text, records, odds = question
        row = f"`{text}`", f"{records:g}", f"{odds:g}", f"{found.upper:.9g}", f"{width:.1e}", f"{seconds:.3f}"
        yield f"| {' | '.join(row)} | {_scipy(text, records) if odds == 1.0 else ''} |"


def _scipy(text: str, records: int) -> str:
    """Return the seconds of the same sum with scipy's binomial distribution, if all atoms are in memory."""
    from scipy.stats import binom

    from privcore.distributions.record_notation import law

    drawn = law(text)
    if not drawn.finite:
        return ""
    p = drawn.atoms(0, int(drawn.reach(1.0))).p
    work = lambda: np.sum(p * (1.0 - p) * binom.pmf(np.floor(records * p), records - 1, p))
    return f"{seconds_of(work):.3f}"


def seconds_of(work: Callable[[], object], before: Callable[[], object] = lambda: None) -> float:
    """Return the median processor time of some runs."""
    times = []
    for _ in range(REPEATS):
        before()
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return statistics.median(times)
