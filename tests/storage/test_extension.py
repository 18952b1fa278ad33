"""Snapshots that are extended by new parts: they answer as snapshots built from all parts do."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import storage.errors
import storage.sql.build
import storage.sql.snapshot
from privcore import Answer, Status, find_problem
from storage import open_store
from storage.manifest import write_manifest
from storage.place.located import located
from tests.storage.made_up import Claims, epsilon, manifest, put, row, rows


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A word for each snapshot that is made from now on: `built` or `extended`."""
    made: list[str] = []
    build, extend = storage.sql.build.build, storage.sql.build.extend

    def told(way: str, real: Callable[..., None]) -> Callable[..., None]:
        def work(*arguments: Any) -> None:
            made.append(way)
            real(*arguments)

        return work

    monkeypatch.setattr(storage.sql.snapshot, "build", told("built", build))
    monkeypatch.setattr(storage.sql.snapshot, "extend", told("extended", extend))
    return made


def first(root: Path) -> None:
    """A store with enough rows that a few more are an extension, and its snapshot."""
    put(root, rows(2000))
    put(root, row(epsilon(), Answer.enclosure(0.5, 4.0), method=Claims(number=1)))
    put(root, row(epsilon(sigma=77.0), Answer.without(Status.TIMEOUT, "late")))
    tables(root)


def tables(root: Path) -> list[Any]:
    """Everything that a user can query, in one order."""
    with open_store(root) as store:
        return [
            sorted(map(repr, store.sql(f"select * from {name}").to_pylist()))
            for name in ("results", "best", "conflicts", "failures", "sweeps", "provenance")
        ] + [store.lookup(epsilon(sigma=s)) for s in (1.0, 1.005, 2.34, 77.0, 80.0)]


def more(root: Path) -> None:
    """Parts with new points, a better bracket of an old one, an answer to a failure, and another problem."""
    put(root, [row(epsilon(sigma=50.0 + k), Answer.enclosure(0.25, 0.5)) for k in range(3)])
    put(root, row(epsilon(), Answer.enclosure(1.25, 1.5), method=Claims(number=2)))
    put(root, row(epsilon(sigma=77.0), Answer.enclosure(0.1, 0.2), seconds_later=9.0))
    put(root, row(epsilon(sigma=1.01), Answer.enclosure(1.0, 2.0), seconds_later=-5.0))
    put(root, row(find_problem("unamplified-delta").from_fields({"sigma": 1.0, "epsilon": 1.0})))
    path = put(root, row(epsilon(sigma=60.0)))
    write_manifest(located(root), manifest(path))


def test_an_extended_snapshot_answers_as_one_that_is_built_from_all_parts(
    root: Path, ways: list[str]
) -> None:
    first(root)
    more(root)
    found = tables(root)
    assert ways == ["built", "extended"]
    shutil.rmtree(root / "cache")
    assert tables(root) == found
    assert ways == ["built", "extended", "built"]


@pytest.mark.thorough
def test_an_extension_is_extended_again(root: Path, ways: list[str]) -> None:
    first(root)
    for sigma in (50.0, 60.0, 70.0):
        put(root, row(epsilon(sigma=sigma)))
        with open_store(root) as store:
            assert store.lookup(epsilon(sigma=sigma)) is not None
    assert ways == ["built", *["extended"] * 3]


@pytest.mark.thorough
def test_a_store_that_lost_a_part_or_doubled_is_built_anew(root: Path, ways: list[str]) -> None:
    first(root)
    gone = put(root, row(epsilon(sigma=50.0)))
    tables(root)
    gone.unlink()
    put(root, row(epsilon(sigma=51.0)))
    tables(root)  # extends the first snapshot, which is kept
    put(root, rows(5000, first=3000))
    tables(root)
    assert ways == ["built", "extended", "extended", "built"]


@pytest.mark.thorough
def test_a_snapshot_that_was_changed_is_not_extended(root: Path, ways: list[str]) -> None:
    first(root)
    (snapshot,) = (root / "cache").glob("*.duckdb")
    with duckdb.connect(str(snapshot)) as connection:
        connection.execute("update main.unamplified_epsilon set upper = upper / 2")
    put(root, row(epsilon(sigma=50.0)))
    with open_store(root) as store:
        found = store.lookup(epsilon(sigma=1.02))
    assert found is not None
    assert found.upper == 2.0
    assert ways == ["built", "built"]


@pytest.mark.thorough
def test_a_damaged_part_is_named_by_an_extension_too(root: Path, ways: list[str]) -> None:
    first(root)
    path = put(root, row(epsilon(sigma=50.0)))
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with open_store(root) as store, pytest.raises(storage.errors.StoreError, match=path.name):
        store.sql("select 1")
    assert ways[0] == "built"
