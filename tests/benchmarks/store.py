"""The store at full size: 1e7 synthetic rows of a real problem in 100 parts; a section of bench.py."""

import itertools
import random
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from privcore import Problem
from storage import Store, open_store, publish, to_table
from storage.place import layout
from storage.place.located import located
from tests.storage.large import (
    DELTAS,
    EPOCHS,
    PARTICIPATIONS,
    SIGMAS,
    STEPS,
    AllocationEpsilon,
    made_up_part,
)
from tests.storage.made_up import rows

LOOKUPS = 1000
COMMITS = 100
OPENINGS = 20
WARM_UP = 20

Work = tuple[str, Callable[[], object], int, float | None, float | None]


def table() -> Iterator[str]:
    """Yield a line for each operation: name, median and 99th percentile, target, whether it is met."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "store"
        started = time.perf_counter()
        for sigma in SIGMAS:
            publish(located(root), made_up_part(float(sigma)))
        written = time.perf_counter() - started
        started = time.perf_counter()
        with open_store(root) as store:
            store.sql("select 1")
            built = time.perf_counter() - started
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            time.sleep(2.1)  # folders that changed within two seconds are listed again for every query
            yield "| work | median | 99 % | target | met |"
            yield "|---|---|---|---|---|"
            for work in _lookups(store):
                yield _line(*work)
        # The store is closed, because a process with an open snapshot reopens it at no cost.
        yield _line("open a store that has a snapshot", lambda: _open(root), OPENINGS, 500, None)
        yield _commits(root.with_name("commits"))
        yield from _small(root.with_name("small"))
        yield ""
        yield (
            f"Writing the parts takes {written:.0f} s. The first open builds the snapshot in {built:.0f} s; "
            f"the process needs at most {memory:.1f} GiB."
        )


def _lookups(store: Store) -> Iterator[Work]:
    """Yield the operations: name, function, repetitions, targets in ms for median and 99th percentile."""
    draw = random.Random(7)
    macro = "from epsilon_at(sigma := 1.01, steps := 1000, delta := 1e-6, participations := 3)"
    yield "point lookup", lambda: _found(store, _stored(draw), exact=True), LOOKUPS, 5, 20
    yield (
        "neighbour lookup, off the grid on 5 axes",
        lambda: _found(store, _between(draw), exact=False),
        *(
            LOOKUPS,
            20,
            None,
        ),
    )
    yield "the same in SQL: macro `epsilon_at`", lambda: store.sql(macro), 100, None, None


def _commits(root: Path) -> str:
    tables = [to_table(rows(1000, first=1000 * k)) for k in range(COMMITS + WARM_UP)]
    numbers = itertools.count()
    return _line(
        "commit of 1,000 rows", lambda: publish(located(root), tables[next(numbers)]), COMMITS, 50, None
    )


def _small(root: Path) -> Iterator[str]:
    """Yield the first open of a small store, and a query over all problems of it."""
    publish(located(root), to_table(rows(100)))

    def first() -> None:
        shutil.rmtree(root / layout.CACHE, ignore_errors=True)
        _open(root)

    yield _line("first open of a store of 100 rows", first, OPENINGS, None, None)
    with open_store(root) as store:
        query = "from results"
        store.sql(query)
        time.sleep(2.1)  # as above
        yield _line("query of all problems there, view `results`", lambda: store.sql(query), 100, None, None)


def _line(name: str, work: Callable[[], object], count: int, median: float | None, most: float | None) -> str:
    milliseconds = []
    for k in range(-min(WARM_UP, count), count):
        started = time.perf_counter()
        work()
        if k >= 0:
            milliseconds.append((time.perf_counter() - started) * 1e3)
    half, high = np.quantile(milliseconds, [0.5, 0.99])
    if median is None:
        return f"| {name} | {half:.2f} ms | {high:.2f} ms | none | |"
    target = f"{median:g} ms" + (f", 99 % {most:g} ms" if most else "")
    met = half <= median and (most is None or high <= most)
    return f"| {name} | {half:.2f} ms | {high:.2f} ms | {target} | {'yes' if met else 'no'} |"


def _found(store: Store, problem: Problem, *, exact: bool) -> None:
    found = store.lookup(problem)
    assert found is not None
    assert found.exact is exact
    assert 0 < found.lower < found.upper < float("inf")


def _open(root: Path) -> None:
    with open_store(root) as store:
        store.sql("select 1")


def _stored(draw: random.Random) -> Problem:
    """Return a problem of the grid."""
    axes = (SIGMAS, STEPS, DELTAS, PARTICIPATIONS, EPOCHS)
    sigma, steps, delta, participations, epochs = (draw.choice(list(axis)) for axis in axes)
    fields = {"sigma": sigma, "steps": steps, "delta": delta}
    return AllocationEpsilon.from_fields(fields | {"participations": participations, "epochs": epochs})


def _between(draw: random.Random) -> Problem:
    """Return a problem between grid points in three fields, and on the grid in the two others."""
    sigma = float(draw.uniform(SIGMAS[0], SIGMAS[-1]))
    steps = draw.randrange(11, 999_999)
    delta = float(np.exp(draw.uniform(np.log(1.01e-12), np.log(0.99e-3))))
    fields = {"sigma": sigma, "steps": steps, "delta": delta}
    return AllocationEpsilon.from_fields(
        fields | {"participations": draw.randint(1, 10), "epochs": draw.randint(1, 10)}
    )
