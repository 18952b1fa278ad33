"""Measured over estimated seconds of rows, if a few of them took long for an unusual reason."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from flows.runs.plan import calibration
from privcore import evaluate, find, find_problem
from privcore.point import Point
from storage import open_store
from storage.parts import pack, publish_packed
from storage.place.located import located
from storage.schema import Row, to_table
from tasks.guard import estimate

KIND = find_problem("unamplified-epsilon")
METHOD = find("unamplified.exact")()


def ratio(store: Path, times_as_long: list[float]) -> float:
    """Return the ratio for a store whose points took these multiples of their estimates."""
    rows = []
    for i, times in enumerate(times_as_long):
        point = Point(problem=KIND.from_fields({"sigma": 1 + i, "delta": 1e-5}), method=METHOD)
        seconds = times * estimate(point).seconds
        rows.append(
            Row(
                point=point,
                answer=evaluate(point),
                seconds=seconds,
                cpu_seconds=seconds,
                attempt=1,
                finished_at=datetime.now(UTC),
                sweep="made up",
            )
        )
    open_store(store, create=True).close()
    publish_packed(located(store), pack(to_table(rows)))
    return calibration(open_store(store, missing_ok=True), [KIND])[KIND.name, METHOD.name]


def test_the_ratio_is_that_of_all_rows_together(tmp_path: Path) -> None:
    assert ratio(tmp_path / "store", [2.0, 4.0, 4.0, 6.0]) == pytest.approx(4.0)


def test_the_first_point_of_a_worker_that_compiled_its_code_hardly_counts(tmp_path: Path) -> None:
    assert ratio(tmp_path / "store", [600.0, 600.0, *[2.0] * 98]) == pytest.approx(2.0, rel=0.2)
