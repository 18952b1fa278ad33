"""Hashes of all rows of a store, so that no bit changes unnoticed, and disks that fail at a chosen step."""

import contextlib
import hashlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from storage.parts import parts
from storage.place import disk
from storage.place.located import located
from storage.sql.views import CHOICE
from tests.storage.made_up import read_rows


class Killed(BaseException):
    """The process is gone: nothing more reaches the disk."""


def row_hashes(root: Path) -> Counter[str]:
    """A hash of every stored row, with its number of copies."""
    return Counter(digest for path in parts(located(root)) for digest in _hashes(read_rows(path)))


def counting(root: Path) -> list[str]:
    """The hashes of the rows that count, by the rule of the views, in any part."""
    rows = pa.concat_tables(
        [read_rows(p).append_column("part", _repeat(p.name, p)) for p in parts(located(root))]
    )
    with duckdb.connect() as connection:
        connection.register("rows", rows.append_column("number", pa.array(range(len(rows)))))
        query = (
            f"select number from rows qualify row_number() over (partition by point_id order by {CHOICE}) = 1"
        )
        numbers = [number for (number,) in connection.execute(query).fetchall()]
    return sorted(_hashes(rows.drop_columns("part").take(numbers)))


def _repeat(name: str, path: Path) -> pa.Array:
    return pa.repeat(name, len(read_rows(path, ["point_id"])))


def _hashes(table: pa.Table) -> list[str]:
    """One hash for each row, of exactly its bits: `repr` of a float has all of them."""
    return [hashlib.sha256(repr(sorted(row.items())).encode()).hexdigest() for row in table.to_pylist()]


def steps_of(monkeypatch: pytest.MonkeyPatch, command: Callable[[], object]) -> list[str]:
    """Run a command; return the names of the steps by which it changed the disk."""
    names: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(disk, "step", lambda name, _path: names.append(name))
        command()
    return names


def kill_at(monkeypatch: pytest.MonkeyPatch, number: int, command: Callable[[], object]) -> None:
    """Stop a command before its step `number`, from 1; later steps, including cleanup, are not done.

    Raises:
        AssertionError: It has fewer steps.
    """
    _fail(monkeypatch, number, command, Killed())


def fail_at(
    monkeypatch: pytest.MonkeyPatch, number: int, command: Callable[[], object], error: OSError
) -> None:
    """Run a command with a disk that refuses its steps from this number on, from 1; pass its error on."""
    _fail(monkeypatch, number, command, error)


def _fail(
    monkeypatch: pytest.MonkeyPatch, number: int, command: Callable[[], object], error: BaseException
) -> None:
    count = 0

    def step(_name: str, path: Path) -> None:
        nonlocal count
        count += 1
        if count >= number:
            if isinstance(error, OSError):
                error.filename = str(path)
            raise error

    with monkeypatch.context() as patch:
        patch.setattr(disk, "step", step)
        with contextlib.suppress(Killed):
            command()
    assert count >= number, f"it has {count} steps"
