"""Rows that no method can have stored: of a time to come, not an answer, or of an unknown method."""

import json
import math
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flows.answers.explain import explained
from flows.answers.held import held
from flows.runs.recompute import check_import, recompute
from flows.runs.repair import repair
from privcore import Answer
from privcore.point import encoded, hashed
from privcore.registry import registered
from storage import Row, open_store, publish, to_table
from storage.compaction import remove
from storage.errors import StoreError
from storage.parts import impossible
from storage.place.located import located
from storage.table.lookup_table import LookupTable, import_lookup_table
from storage.verify import verify
from tasks.engine import Engine
from tests.storage.made_up import Claims, UnamplifiedEpsilon, epsilon, imported, put, row, table_of

CENTURY = datetime(2199, 1, 1, tzinfo=UTC)


def at(moment: datetime) -> Row:
    return replace(row(epsilon()), finished_at=moment)


def test_a_part_of_a_time_to_come_is_not_sound(tmp_path: Path) -> None:
    put(tmp_path / "store", at(CENTURY))
    (finding,) = verify(located(tmp_path / "store")).findings
    assert (finding.kind, finding.harmless) == ("future", False)
    assert f"has row {row(epsilon()).point.id} finished on 2199-01-01, but this machine's clock shows 2" in (
        finding.detail
    )


def test_a_table_of_a_time_to_come_is_not_imported(tmp_path: Path) -> None:
    table = table_of(tmp_path / "theirs", [at(CENTURY), row(epsilon(sigma=2.0))])
    with pytest.raises(
        StoreError, match=r"Cannot import version 2199\.01\.01-.* finished on 2199-01-01, but"
    ):
        import_lookup_table(table, located(tmp_path / "store"))
    assert not (tmp_path / "store").exists()


def test_a_clock_that_is_fast_by_hours_is_accepted(tmp_path: Path) -> None:
    imported(tmp_path / "store", at(datetime.now(UTC) + timedelta(hours=23)))
    assert verify(located(tmp_path / "author")).sound
    assert verify(located(tmp_path / "store")).sound


def test_a_time_beyond_the_calendar_is_shown(tmp_path: Path) -> None:
    rows = to_table([row(epsilon())])
    place = rows.column_names.index("finished_at")
    field = rows.schema.field("finished_at")
    late = pa.array([400_000_000_000_000_000]).cast(field.type)
    publish(located(tmp_path / "store"), rows.set_column(place, field, late))
    (finding,) = verify(located(tmp_path / "store")).findings
    assert "finished on 14645-06-30" in finding.detail


def forged(root: Path, **columns: object) -> Path:
    """Publish a row with other columns, under the ids of its fields, method and options."""
    rows = to_table([row(epsilon())])
    for name, value in columns.items():
        field = rows.schema.field(name)
        rows = rows.set_column(rows.column_names.index(name), field, pa.array([value]).cast(field.type))
    (content,) = rows.to_pylist()
    fields = {name: content[name] for name in UnamplifiedEpsilon.parameters}
    defaults = UnamplifiedEpsilon.defaults()
    given = {name: value for name, value in fields.items() if defaults.get(name) != value}
    of = {"problem": UnamplifiedEpsilon.name, "fields": given}
    knobs = json.loads(content["knobs"])
    point = of | {"method": content["method"], "version": content["method_version"]}
    ids = {
        "problem_id": hashed(encoded(of)),
        "point_id": hashed(encoded(point | ({"knobs": knobs} if knobs else {}))),
    }
    for name, value in ids.items():
        rows = rows.set_column(rows.column_names.index(name), rows.schema.field(name), pa.array([value]))
    return publish(located(root), rows)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"lower": 3.0, "upper": 1.0}, "with the bracket [3.0, 1.0] at confidence 1.0"),
        ({"confidence": 1.5}, "with the bracket [1.0, 2.0] at confidence 1.5"),
        ({"confidence": 0.0}, "with the bracket [1.0, 2.0] at confidence 0.0"),
    ],
)
def test_a_part_with_a_row_that_is_not_an_answer_is_refused_and_its_point_is_computed_again(
    tmp_path: Path, columns: dict[str, object], words: str
) -> None:
    forged(tmp_path / "store", **columns)
    (finding,) = verify(located(tmp_path / "store")).findings
    assert finding.kind == "damaged"
    assert words in finding.detail
    with open_store(tmp_path / "store") as store:
        with pytest.raises(StoreError, match=re.escape(words)):
            store.lookup(epsilon())
        done = repair(store, engine=Engine(name="serial"))
        assert (len(done.moved), done.lost) == (1, 1)
        assert store.verify() == []


@pytest.mark.parametrize("version", [0, -5])
def test_a_row_of_a_version_below_the_first_is_refused_in_a_part_and_in_a_table(
    tmp_path: Path, version: int
) -> None:
    part = forged(tmp_path / "theirs", method_version=version)
    (finding,) = verify(located(tmp_path / "theirs")).findings
    words = f"a row of version {version} of its method, and the first version is 1"
    assert (finding.kind, words in finding.detail) == ("damaged", True)
    with open_store(tmp_path / "theirs") as store, pytest.raises(StoreError, match=words):
        store.lookup(epsilon())
    rows = pq.read_table(part, partitioning=None)
    plain = {field.name: rows[field.name].to_pylist() for field in rows.schema}
    table = LookupTable(version="2026.11.01-01234567", rows=pa.table(plain))
    with pytest.raises(StoreError, match=rf"has unamplified\.exact of version {version}"):
        import_lookup_table(table, located(tmp_path / "store"))
    assert not (tmp_path / "store").exists()


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize("column", ["knobs", "versions"])
def test_json_that_is_nested_too_deeply_is_refused_by_an_import(tmp_path: Path, column: str) -> None:
    rows = to_table([row(epsilon())])
    plain = {field.name: rows[field.name].to_pylist() for field in rows.schema} | {column: [DEEP]}
    table = LookupTable(version="2026.11.01-01234567", rows=pa.table(plain))
    assert check_import(table, 20).rows == (column == "versions")
    with pytest.raises(StoreError, match=r"Cannot import .*Expected a JSON object, got '\[\[\["):
        import_lookup_table(table, located(tmp_path / "store"))


@pytest.mark.parametrize("column", ["knobs", "versions"])
def test_a_part_with_json_that_is_nested_too_deeply_ends_no_command_with_a_traceback(
    tmp_path: Path, column: str
) -> None:
    rows = to_table([row(epsilon())])
    field = rows.schema.field(column)
    deep = rows.set_column(rows.column_names.index(column), field, pa.array([DEEP]).cast(field.type))
    publish(located(tmp_path / "store"), deep)
    assert verify(located(tmp_path / "store")).sound == (column == "versions")
    with pytest.raises(StoreError, match="has no rows imported"):
        remove(located(tmp_path / "store"), "theirs")
    with open_store(tmp_path / "store") as store:
        assert len(recompute(store, None).skipped) == (column == "knobs")
        answer = held(store, epsilon(), any_width=True)
        assert answer is not None
        if column == "versions":
            assert explained(answer, store) is not None
        else:
            with pytest.raises(StoreError, match="Expected a JSON object"):
                explained(answer, store).show()


@pytest.mark.parametrize("name", ["lower", "upper", "confidence"])
def test_a_row_with_nan_is_not_an_answer(name: str) -> None:
    rows = to_table([row(epsilon(sigma=2.0)), row(epsilon())])
    place = rows.column_names.index(name)
    values = pa.array([rows[name][0].as_py(), math.nan])
    assert not impossible(rows)
    assert "nan" in impossible(rows.set_column(place, rows.schema.field(name), values))


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"method": "unamplified.wonder"}, "rows of the unknown method 'unamplified.wonder', which"),
        ({"method": "labels.bag"}, "rows of labels.bag, which does not answer unamplified-epsilon, which"),
        ({"method_version": 99}, "rows of version 99 of unamplified.exact, which"),
        ({"knobs": '{"x":1}'}, "rows of unamplified.exact with the options '{\"x\":1}', which"),
        ({"sigma": -1.0}, "rows with sigma=-1.0, which"),
        ({"status": "fine"}, "rows with the unknown status 'fine', which"),
    ],
)
def test_rows_that_this_release_cannot_check_are_named_since_a_later_one_may_have_written_them(
    tmp_path: Path, columns: dict[str, object], words: str
) -> None:
    forged(tmp_path / "store", **columns)
    report = verify(located(tmp_path / "store"))
    (finding,) = report.findings
    assert (finding.kind, report.sound) == ("unchecked", True)
    assert f"has {words} this release cannot check" in finding.detail


def test_two_methods_whose_proofs_exclude_one_another_are_a_contradiction(tmp_path: Path) -> None:
    put(tmp_path / "store", row(epsilon(), Answer.at_least(3.0)))
    put(tmp_path / "store", row(epsilon(), Answer.at_most(2.0), method=Claims()))
    with registered(Claims):
        (finding,) = verify(located(tmp_path / "store")).findings
    assert finding.kind == "contradiction"
    assert "unamplified.exact has at least 3.0 in" in finding.detail
    assert "but test.claims at most 2.0 in" in finding.detail
