"""Counts of the faults of a test and of their effects, which travel in the test's report."""

import re
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from storage import open_store

KEY = "faults"


class Tally:
    """Counts of one test, for the table of faults.

    Attributes:
        numbers: Counts, in JSON types because pytest-xdist sends them between processes.
    """

    def __init__(self, docstring: str | None) -> None:
        match = re.match(r"(T\d+): ", docstring or "")
        assert match, "Expected a docstring that begins with the number of the fault, such as T7: ..."
        self.numbers: dict[str, str | float] = {
            "fault": match[1],
            "tried": 0,
            "survived": 0,
            "rows": 0,
            "lost": 0,
            "duplicated": 0,
            "seconds": 0.0,
        }

    @contextmanager
    def trial(self, faults: int = 1) -> Iterator[None]:
        """Count faults as tried, and as survived unless the block raises."""
        self._add("tried", faults)
        yield
        self._add("survived", faults)

    @contextmanager
    def recovery(self) -> Iterator[None]:
        """Measure the time of the block; a test keeps the longest."""
        began = time.perf_counter()
        yield
        self.numbers["seconds"] = max(float(self.numbers["seconds"]), time.perf_counter() - began)

    def compare(self, root: Path, expected: Collection[str]) -> None:
        """Compare the points that a reader gets with the expected points, each exactly once.

        Args:
            root: The store.
            expected: Ids of the points.
        """
        with open_store(root) as store:
            shown = store.sql("select point_id from results")["point_id"].to_pylist()
        lost, duplicated = set(expected) - set(shown), len(shown) - len(set(shown))
        self._add("rows", len(expected))
        self._add("lost", len(lost))
        self._add("duplicated", duplicated)
        assert (lost, duplicated) == (set(), 0)

    def _add(self, name: str, number: int) -> None:
        self.numbers[name] = int(self.numbers[name]) + number
