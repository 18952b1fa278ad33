"""Damaged files are reported by name, and no reader ever gets a row that was not written."""

import json
import math
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flows.cli.app import run
from privcore import Answer, DomainError, Status, find_problem
from storage import QueryError, StoreError, open_store, publish, to_table, write_manifest
from storage.errors import DegradedWarning
from storage.parts import parts
from storage.place.located import located
from tests.faults import children
from tests.faults.children import value_of
from tests.faults.sweeps import content, ids, mend, mend_on, mending_points, sweep
from tests.faults.tally import Tally
from tests.storage.made_up import epsilon, manifest, put, row, rows
from tests.storage.test_parts import republish
from tests.suites import some

pytestmark = pytest.mark.sampled(5)

FLIPS = 60


@contextmanager
def flipped(path: Path, *, seed: int) -> Iterator[None]:
    """Flip one bit of a file, at positions evenly spread over the file; the file keeps its time."""
    whole, times = path.read_bytes(), path.stat()
    bit = random.Random(seed).randrange(8 * len(whole) // FLIPS) + 8 * len(whole) * (seed % FLIPS) // FLIPS
    harmed = bytearray(whole)
    harmed[bit // 8] ^= 1 << bit % 8
    for content_now in (bytes(harmed), whole):
        path.write_bytes(content_now)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        if content_now is not whole:
            yield


def test_no_reader_returns_a_row_of_a_part_with_a_flipped_bit(faults: Tally, root: Path) -> None:
    """T10: one bit flipped in 60 places from end to end of a part; all found, no row returned."""
    part = put(root, rows(40))
    put(root, rows(5, first=40))
    found, tried = 0, some(range(FLIPS), 10)
    for seed in tried:
        with faults.trial(), flipped(part, seed=seed), open_store(root) as store:
            found += [str(part) in sentence for sentence in store.verify()] == [True]
            for read in (
                lambda: store.stored("unamplified-epsilon"),
                lambda: list(store.points(find_problem("unamplified-epsilon"))),
            ):
                with pytest.raises(StoreError, match=part.name):
                    read()
            if seed % 6 == 0:
                with pytest.raises(StoreError, match=part.name):
                    store.sql("from results")
    assert found == len(tried)
    faults.compare(root, {r.point.id for r in rows(45)})


def test_a_bit_that_flips_below_an_open_store_changes_no_answer(faults: Tally, root: Path) -> None:
    """T10: flipped bits without a change of the file's time, while a reader already has its snapshot."""
    part = put(root, rows(40))
    with open_store(root) as store:
        before = store.sql("select * from results order by point_id")
        for seed in range(0, FLIPS, 5):
            with faults.trial(), flipped(part, seed=seed):
                assert store.sql("select * from results order by point_id").equals(before)
                assert [str(part) in sentence for sentence in store.verify()] == [True]


def test_a_bit_that_flips_in_the_snapshot_changes_no_answer(faults: Tally, root: Path) -> None:
    """T10: one bit flipped in 20 places of the derived snapshot; right answers, or a refusal by name."""
    put(root, rows(400))
    query = "select point_id, sigma, lower, upper, status from results order by point_id"
    with open_store(root) as store:
        before = store.sql(query)
        (snapshot,) = (root / "cache").glob("*.duckdb")
    whole = snapshot.read_bytes()
    for seed in some(range(FLIPS // 3), 4):
        bit = random.Random(seed).randrange(8 * len(whole))
        harmed = bytearray(whole)
        harmed[bit // 8] ^= 1 << bit % 8
        snapshot.write_bytes(harmed)
        with faults.trial():
            try:
                with open_store(root) as store:
                    assert store.sql(query).equals(before), f"byte {bit // 8} was changed"
            except (StoreError, QueryError):
                pass
    snapshot.unlink(missing_ok=True)
    faults.compare(root, {r.point.id for r in rows(400)})


def test_a_bit_that_flips_in_a_manifest_is_found(faults: Tally, root: Path) -> None:
    """T10: one bit flipped in 60 places of a sweep's manifest."""
    path = write_manifest(located(root), manifest(put(root, rows(3))))
    for seed in some(range(FLIPS), 12):
        with flipped(path, seed=seed), open_store(root) as store:
            complaints = store.verify()
        with faults.trial():
            assert any(path.name in sentence or "missing" in sentence for sentence in complaints)
    assert faults.numbers["survived"] == faults.numbers["tried"]


@pytest.mark.parametrize("harm", ["truncate", "empty", "delete"])
def test_damage_is_refused_by_name_read_around_if_allowed_and_repaired(
    faults: Tally, root: Path, harm: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """T9: a part that was truncated, emptied or deleted."""
    value_of(sweep, root)
    answers = content(root)
    part = parts(located(root))[1]
    gone = set(pq.read_table(part, columns=["point_id"], partitioning=None)["point_id"].to_pylist())
    if harm == "delete":
        part.unlink()
    else:
        part.write_bytes(part.read_bytes()[:-100] if harm == "truncate" else b"")
    with faults.trial():
        with open_store(root) as store, pytest.raises(StoreError, match=part.name):
            store.sql("from results")
        with open_store(root, degraded=True) as store:
            with pytest.warns(DegradedWarning, match=part.name):
                shown = store.sql("select point_id from results")["point_id"].to_pylist()
            assert set(shown) == ids() - gone
            assert len(shown) == len(set(shown))
        with faults.recovery():
            assert run(["repair", "--store", str(root), "--engine", "serial"]) == 0, capfd.readouterr()
        faults.compare(root, ids())
        assert content(root) == answers
        with open_store(root) as store:
            assert store.verify() == []
        kept = [path for path in (root / "quarantine").rglob("*") if path.is_file()]
        assert len(kept) == (harm != "delete"), "nothing is thrown away"


@pytest.mark.thorough
def test_a_repair_that_is_killed_at_any_operation_is_completed_by_the_next(
    faults: Tally, tmp_path: Path
) -> None:
    """T9: SIGKILL a repair at every third operation on the disk."""

    def harmed(name: str) -> Path:
        root = tmp_path / name / "store"
        root.parent.mkdir()
        value_of(sweep, root)
        one, other, *_ = parts(located(root))
        one.write_bytes(one.read_bytes()[:-100])
        other.unlink()
        return root

    points = value_of(mending_points, harmed("whole"))
    answers = content(tmp_path / "whole" / "store")
    for k in some(range(0, len(points), 3), 3):
        root = harmed(f"{k}")
        with faults.trial():
            assert children.run(mend_on, k, root).killed, points[k]
            with faults.recovery():
                value_of(mend, root)
            with open_store(root) as store:
                assert store.verify() == [], points[k]
                assert set(store.stored("unamplified-epsilon")) == ids(), points[k]
        if k % 12 == 0:
            faults.compare(root, ids())
            assert content(root) == answers


# ------------------------------------------------------------------------------ not numbers


def test_nan_is_refused_where_rows_are_made_and_where_they_are_written(faults: Tally, root: Path) -> None:
    """T27: NaN for an end, an estimate or a confidence."""
    nan = math.nan
    making: tuple[Callable[[], Answer], ...] = (
        lambda: Answer.enclosure(nan, 1.0),
        lambda: Answer.enclosure(0.0, nan),
        lambda: Answer.enclosure(0.0, 1.0, value=nan),
        lambda: Answer(lower=0.0, upper=1.0, confidence=nan),
    )
    for make in making:
        with faults.trial(), pytest.raises((DomainError, ValueError)):
            make()
    table = to_table(rows(1))
    for name in ("lower", "upper", "value"):
        with faults.trial(), pytest.raises(ValueError, match=name):
            publish(located(root), with_nan(table, name))
    assert not root.exists()


def with_nan(table: pa.Table, name: str) -> pa.Table:
    """The table with NaN in a column."""
    return table.set_column(table.column_names.index(name), table.schema.field(name), pa.array([math.nan]))


def test_a_confidence_of_nan_is_not_published(faults: Tally, root: Path) -> None:
    """T27: NaN for a confidence, in a table that did not come from an answer."""
    with faults.trial(), pytest.raises(ValueError, match="confidence"):
        publish(located(root), with_nan(to_table(rows(1)), "confidence"))


def test_rows_without_an_answer_move_no_bracket(faults: Tally, root: Path) -> None:
    """T27: failures, and enclosures that are open to infinity, next to answers."""
    put(root, [row(epsilon(sigma=1), Answer.enclosure(1.0, math.inf))])
    for number, status in enumerate(s for s in Status if s is not Status.OK):
        put(root, row(epsilon(sigma=2 + number), Answer.without(status, "No reason.")))
    with faults.trial(), open_store(root) as store:
        (numbers,) = store.sql(
            "select max(upper) as most, bool_or(isnan(lower) or isnan(upper)) as nan, count(*) as n "
            "from results"
        ).to_pylist()
        assert (numbers["most"], numbers["nan"]) == (math.inf, False)
        assert numbers["n"] == len(Status)
        brackets = store.sql(
            "select lower, upper, upper_method from best where lower_method is not null"
        ).to_pylist()
        assert brackets == [{"lower": 1.0, "upper": math.inf, "upper_method": None}]
        assert store.lookup(epsilon(sigma=3)) is None or store.lookup(epsilon(sigma=3)).lower_from is None  # type: ignore[union-attr]


@pytest.mark.parametrize("column", ["lower", "upper", "value", "confidence"])
def test_nan_from_a_foreign_writer_reaches_no_bracket(faults: Tally, root: Path, column: str) -> None:
    """T27: a part with NaN, written by other software under the right name."""
    part = put(root, row(epsilon()))
    table = pq.read_table(part, partitioning=None)
    republish(part, with_nan(table, column))
    with faults.trial(), open_store(root) as store:
        try:
            ends = store.sql("select lower, upper from best").to_pylist()
            found = store.lookup(epsilon())
        except StoreError as error:
            assert "NaN" in str(error)  # noqa: PT017  refusing by name is as good
            return
        shown: list[Any] = [end for bracket in ends for end in bracket.values()]
        shown += [found.lower, found.upper] if found else []
        assert not any(math.isnan(number) for number in shown)


def test_json_of_a_query_has_no_bare_nan(
    faults: Tally, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """T27: NaN and infinity in the result of a query, printed as strict JSON."""
    put(root, rows(2))
    with faults.trial():
        query = "select 'nan'::double as a, 'inf'::double as b, -'inf'::double as c, upper from results"
        assert run(["sql", query, "--store", str(root), "--json"]) == 0

        def refuse(word: str) -> None:
            raise AssertionError(word)

        lines = json.loads(capsys.readouterr().out, parse_constant=refuse)
        assert [line["a"] for line in lines] == [None, None]
