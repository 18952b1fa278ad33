import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flows.runs.recompute import check_import
from privcore import Answer, Status, find, find_problem
from storage import Row, StoreError, open_store
from storage.place.located import located
from storage.schema import VERSION_KEY
from storage.table.lookup_table import (
    KEY,
    LookupTable,
    Moved,
    _version,
    answered_rows,
    compare,
    import_lookup_table,
    lookup_table,
    read_lookup_table,
    write_lookup_table,
)
from storage.table.seed import current
from tests.storage.contents import counting
from tests.storage.made_up import Claims, epsilon, put, row, rows

pytestmark = pytest.mark.sampled(8)


def table_in(root: Path) -> LookupTable:
    with open_store(root) as store:
        return lookup_table(store)


def written(root: Path) -> Path:
    """The table of a store as a file next to it."""
    path = root.with_suffix(".parquet")
    write_lookup_table(table_in(root), path)
    return path


@pytest.mark.thorough
def test_a_table_brings_every_answer_with_its_provenance_into_another_store(
    root: Path, tmp_path: Path
) -> None:
    put(root, rows(5))
    put(root, row(epsilon(sigma=7.0), Answer.without(Status.TIMEOUT, "It was slow.")))
    other = tmp_path / "other"
    import_lookup_table(read_lookup_table(written(root)), located(other))
    answers = "select * exclude (part, versions) from results where status = 'ok' order by point_id"
    with open_store(root) as here, open_store(other) as there:
        assert there.sql(answers).equals(here.sql(answers))
        assert there.sql("from results").num_rows == 5
        assert here.sql("from imported").num_rows == 0
        assert there.verify() == []


def test_importing_twice_is_the_same_as_once(root: Path, tmp_path: Path) -> None:
    put(root, rows(5))
    table, other = table_in(root), tmp_path / "other"
    parts = import_lookup_table(table, located(other))
    once = counting(other)
    assert import_lookup_table(table, located(other)) == parts
    assert counting(other) == once


def test_the_version_depends_on_the_answers_and_on_nothing_else(root: Path, tmp_path: Path) -> None:
    put(root, rows(5))
    once, again = table_in(root), tmp_path / "again"
    for one in reversed(rows(5)):
        put(again, one)
    assert table_in(again).version == once.version
    assert once.version.startswith("2026.11.01-")
    put(again, row(epsilon(sigma=9.0)))
    assert table_in(again).version != once.version


def test_a_table_whose_rows_were_changed_is_refused(root: Path) -> None:
    put(root, rows(5))
    path = written(root)
    table = pq.read_table(path)
    upper = table["upper"].to_pylist()
    place = table.column_names.index("upper")
    changed = table.set_column(place, "upper", pa.array([upper[0] / 2, *upper[1:]]))
    pq.write_table(changed, path)
    with pytest.raises(StoreError, match=r"was changed: its rows do not match its version, 2026\.11\.01-"):
        read_lookup_table(path)


def test_a_row_under_a_question_that_is_not_its_own_is_refused(root: Path, tmp_path: Path) -> None:
    put(root, rows(3))
    table = table_in(root)
    place = table.rows.column_names.index("sigma")
    moved = table.rows.set_column(place, "sigma", pa.array([0.5, 0.6, 0.7]))
    with pytest.raises(StoreError, match=r"the id of row \w{32} does not match its fields"):
        import_lookup_table(LookupTable(version=table.version, rows=moved), located(tmp_path / "other"))
    assert not (tmp_path / "other").exists()


def hashed(rows: pa.Table) -> str:
    """The version of rows, if they can have one."""
    try:
        return _version(rows)
    except (TypeError, ValueError, OverflowError):
        return "2026.11.01-00000000"


TIME = pa.timestamp("us", tz="UTC")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("lower", pa.array([math.nan] * 3)),
        ("upper", pa.array([None] * 3, pa.float64())),
        ("lower", pa.array(["1"] * 3)),
        ("problem", pa.array(["unamplified-epsilon", None, None])),
        ("problem", pa.array([1] * 3)),
        ("status", pa.array(["ok", "ok", "crashed"])),
        ("point_id", pa.array(["a", "a", "b"])),
        ("finished_at", pa.array([None] * 3, TIME)),
        ("finished_at", pa.array([2**62] * 3, TIME)),
        ("finished_at", pa.array([0, 0, -(10**17)], TIME)),
        ("finished_at", pa.array(["today"] * 3)),
        ("method", None),
        (None, None),
    ],
)
def test_rows_that_no_store_answers_with_are_refused_though_their_version_is_right(
    root: Path, name: str | None, values: Any
) -> None:
    put(root, rows(3))
    table = table_in(root).rows
    if name is None:
        table = table.slice(0, 0)
    elif values is None:
        table = table.drop_columns(name)
    else:
        table = table.set_column(table.column_names.index(name), name, values)
    path = root.with_suffix(".parquet")
    write_lookup_table(LookupTable(version=hashed(table), rows=table), path)
    with pytest.raises(StoreError, match="was changed: its rows do not match its version,"):
        read_lookup_table(path)


def test_text_that_is_not_utf_8_is_refused_in_a_sentence(root: Path) -> None:
    put(root, rows(2))
    table = table_in(root).rows
    bad = pa.StringArray.from_buffers(
        2, pa.py_buffer(np.array([0, 1, 2], "i4").tobytes()), pa.py_buffer(b"\xff\xff")
    )
    path = root.with_suffix(".parquet")
    table = table.set_column(table.column_names.index("host"), "host", bad)
    write_lookup_table(LookupTable(version="1", rows=table), path)
    with pytest.raises(StoreError, match=r"has text that is not UTF-8 in the column host\."):
        read_lookup_table(path)


@pytest.mark.parametrize(
    "values", [None, pa.array(["abc", "1"]), pa.array([None, 1.0])], ids=["missing", "text", "null"]
)
def test_rows_without_their_fields_are_refused_before_any_is_recomputed(
    root: Path, values: pa.Array | None
) -> None:
    put(root, rows(2))
    table = table_in(root)
    lacking = table.rows.drop_columns("sigma")
    if values is not None:
        lacking = lacking.append_column("sigma", values)
    with pytest.raises(StoreError, match=f"Cannot read unamplified-epsilon of version {table.version}: "):
        check_import(LookupTable(version=table.version, rows=lacking), 20)


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({KEY: b"\xff", VERSION_KEY: b"1"}, "was changed"),
        ({KEY: b"x", VERSION_KEY: "²".encode()}, "has an invalid schema version"),
        ({KEY: b"x", VERSION_KEY: b"\xff"}, "has an invalid schema version"),
        ({KEY: b"x", VERSION_KEY: b"9"}, "update privsweep"),
        ({KEY: b"x" * 6000, VERSION_KEY: b"1"}, "was changed"),
        ({KEY: b"x", VERSION_KEY: b"x" * 6000}, "has an invalid schema version"),
        ({KEY: b"x", VERSION_KEY: b"9" * 6000}, "has an invalid schema version"),
    ],
)
def test_metadata_that_nobody_wrote_is_one_short_sentence(
    root: Path, metadata: dict[bytes, bytes], reason: str
) -> None:
    put(root, rows(1))
    path = root.with_suffix(".parquet")
    pq.write_table(table_in(root).rows.replace_schema_metadata(metadata), path)
    with pytest.raises(StoreError, match=reason) as error:
        read_lookup_table(path)
    assert len(str(error.value)) < 200 + len(str(path))


def test_a_table_from_before_a_field_gets_its_default(root: Path, tmp_path: Path) -> None:
    fields = {"canaries": 50, "guesses": 20, "mu": 1.0, "claimed_epsilon": 0.5, "delta": 1e-5}
    problem = find_problem("audit-power").from_fields(fields)
    put(root, row(problem, Answer.enclosure(0.47, 0.48), method=find("auditing.power")()))
    table = table_in(root)
    without = table.rows.drop_columns(["guessing", "refutation"])
    import_lookup_table(LookupTable(version=table.version, rows=without), located(tmp_path / "other"))
    assert list(answered_rows(LookupTable(version=table.version, rows=without))) == list(answered_rows(table))
    with open_store(tmp_path / "other") as store:
        found = store.sql("select guessing, refutation, upper from audit_power").to_pylist()
    assert found == [{"guessing": "clearest", "refutation": "published", "upper": 0.48}]


def test_a_table_without_a_field_of_today_is_of_another_release(root: Path, tmp_path: Path) -> None:
    put(root, rows(2))
    table = table_in(root)
    place = table.rows.column_names.index("sigma")
    without = table.rows.set_column(place, "sigma", pa.array([None] * 2, pa.float64()))
    with pytest.raises(StoreError, match="Cannot import unamplified-epsilon of version "):
        import_lookup_table(LookupTable(version=table.version, rows=without), located(tmp_path / "other"))


def test_rows_of_former_versions_of_a_method_do_not_seed_the_next_table(root: Path) -> None:
    put(root, rows(3))
    table = table_in(root)
    assert current(table).rows.equals(table.rows)
    place = table.rows.column_names.index("method_version")
    column = table.rows["method_version"]
    former = table.rows.set_column(place, "method_version", pa.array([column[0].as_py(), 0, 0], column.type))
    assert len(current(LookupTable(version=table.version, rows=former)).rows) == 1


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("lower", 1e9, "Expected lower <= upper"),
        ("confidence", 2.0, "Expected confidence in "),
        ("point_id", "0" * 32, "does not match its fields"),
        ("method_version", 99, "does not match its fields"),
        ("knobs", "no JSON", "Expected a JSON object"),
    ],
)
def test_a_forged_row_is_refused_whatever_version_the_table_gives_itself(
    root: Path, tmp_path: Path, column: str, value: object, reason: str
) -> None:
    put(root, rows(2))
    forged = replaced(table_in(root).rows, column, value)
    path = tmp_path / "forged.parquet"
    write_lookup_table(LookupTable(version=_version(forged), rows=forged), path)
    with pytest.raises(StoreError, match=reason):
        import_lookup_table(read_lookup_table(path), located(tmp_path / "other"))
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("column", ["method", "detail", "sweep", "git_commit", "host"])
def test_a_table_that_would_write_to_a_terminal_what_it_likes_is_refused(root: Path, column: str) -> None:
    put(root, rows(2))
    forged, path = replaced(table_in(root).rows, column, "\x1b[2J"), root.with_suffix(".parquet")
    write_lookup_table(LookupTable(version=_version(forged), rows=forged), path)
    with pytest.raises(StoreError, match="was changed"):
        read_lookup_table(path)


def replaced(rows: pa.Table, column: str, value: object) -> pa.Table:
    """The rows with another value in a column of the first one."""
    values = [value, *rows[column].to_pylist()[1:]]
    place = rows.column_names.index(column)
    return rows.set_column(place, column, pa.array(values, rows.schema.field(column).type))


def test_only_a_file_is_read_and_not_what_lies_in_a_folder(root: Path, tmp_path: Path) -> None:
    put(root, rows(2))
    write_lookup_table(table_in(root), tmp_path / "tables" / "one.parquet")
    with pytest.raises(StoreError, match=r"Cannot read .*tables: Is a directory\."):
        read_lookup_table(tmp_path / "tables")
    with pytest.raises(StoreError, match=r"Cannot read .*none\.parquet: No such file or directory\."):
        read_lookup_table(tmp_path / "none.parquet")


def test_a_column_that_stands_there_twice_is_refused(root: Path) -> None:
    put(root, rows(2))
    path = written(root)
    table = pq.read_table(path)
    pq.write_table(table.append_column("lower", table["lower"]), path)
    with pytest.raises(StoreError, match="Expected distinct columns"):
        read_lookup_table(path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", "is not a readable Parquet file"), (b"PAR1" * 20, "is not a readable Parquet file")],
)
def test_what_is_no_parquet_file_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=reason):
        read_lookup_table(path)


def test_other_parquet_files_and_missing_ones_are_refused(root: Path, tmp_path: Path) -> None:
    part = put(root, rows(1))
    with pytest.raises(StoreError, match="is not a lookup table: its metadata has no version"):
        read_lookup_table(part)
    with pytest.raises(StoreError, match=r"Cannot read .*nowhere\.parquet: "):
        read_lookup_table(tmp_path / "nowhere.parquet")


def test_a_store_without_answers_makes_no_table(root: Path) -> None:
    put(root, row(epsilon(), Answer.without(Status.TIMEOUT, "It was slow.")))
    with pytest.raises(StoreError, match="has no answers, so no lookup table"):
        table_in(root)


def bracket(sigma: float, ends: tuple[float, float]) -> Row:
    return row(epsilon(sigma=sigma), Answer.enclosure(*ends))


def test_a_comparison_tells_for_every_bracket_how_it_moved(root: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    moves = [(1.0, 2.0), (1.2, 2.0), (1.0, 3.0), (1.5, 2.5), (0.5, 1.5), (3.0, 4.0)]
    put(root, [bracket(1 + k / 10, (1.0, 2.0)) for k in range(len(moves))])
    put(new, [bracket(1 + k / 10, ends) for k, ends in enumerate(moves)])
    put(root, bracket(8.0, (1.0, 2.0)))
    put(new, bracket(9.0, (1.0, 2.0)))
    became = {"same": 1, "added": 1, "removed": 1, "tighter": 1, "wider": 1, "shifted": 2, "disjoint": 1}
    expected = Moved(problem="unamplified-epsilon", **became, answers=7)
    assert compare(table_in(root), table_in(new)) == [expected]


def test_a_table_beside_itself_has_nothing_that_moved(root: Path) -> None:
    put(root, rows(4))
    (moved,) = compare(table_in(root), table_in(root))
    assert (moved.same, moved.added, moved.removed, moved.disjoint) == (4, 0, 0, 0)


def test_an_answer_behind_no_bracket_is_told_where_it_is_gone(root: Path, tmp_path: Path) -> None:
    put(root, rows(3))
    put(tmp_path / "new", rows(3))
    put(root, row(epsilon(), Answer.enclosure(0.5, 3.0, confidence=0.9), method=Claims()))
    old, new = table_in(root), table_in(tmp_path / "new")
    assert old.version != new.version
    (moved,) = compare(old, new)
    assert (moved.same, moved.answers) == (3, 1)


def test_every_bracket_is_counted_once_and_one_that_contradicts_itself_is_told(
    root: Path, tmp_path: Path
) -> None:
    new = tmp_path / "new"
    for store, ends in ((root, (1.0, 2.0)), (new, (1.2, 1.9))):
        put(store, bracket(1.0, ends))
    put(new, row(epsilon(), Answer.enclosure(1.95, 2.0), method=Claims()))
    (moved,) = compare(table_in(root), table_in(new))
    assert (moved.tighter, moved.disjoint) == (0, 1)
    (moved,) = compare(table_in(new), table_in(new))
    assert (moved.same, moved.disjoint) == (0, 1)


def test_a_file_larger_than_any_table_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.parquet"
    with path.open("wb") as file:
        file.truncate(200 * 10**9)
    with pytest.raises(StoreError, match=r"^Expected a lookup table of at most 1 GB, got .* of 200 GB\.$"):
        read_lookup_table(path)
