import hashlib
import json
import math
import multiprocessing
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privcore import Answer, find_problem
from storage import SCHEMA_VERSION, StoreError, open_store, publish, schema_for, to_table
from storage.parts import ids_hash, parts
from storage.place.located import located
from storage.schema import PROBLEM_KEY, VERSION_KEY
from tests.faults.children import FORKED
from tests.storage.made_up import Claims, epsilon, put, read_rows, row, rows
from tests.suites import some


def republish(part: Path, table: pa.Table) -> Path:
    """Replace a part by another table under its right name, as another release might have written it."""
    part.unlink()
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    content = bytes(sink.getvalue())
    name = f"{ids_hash(table['point_id'].to_pylist())}-{hashlib.sha256(content).hexdigest()}.parquet"
    path = part.parent / name
    path.write_bytes(content)
    return path


def test_publishing_twice_changes_nothing(root: Path) -> None:
    table = to_table(rows(3))
    first = publish(located(root), table)
    before = {p: (p.stat().st_mtime_ns, p.stat().st_ino) for p in root.rglob("*")}
    assert publish(located(root), table) == first
    assert {p: (p.stat().st_mtime_ns, p.stat().st_ino) for p in root.rglob("*")} == before


def test_the_name_of_a_part_is_made_of_its_points_and_its_bytes(root: Path) -> None:
    content = rows(3)
    part = put(root, content)
    ids, digest = part.stem.split("-")
    assert ids == ids_hash([r.point.id for r in content]) == ids_hash([r.point.id for r in content[::-1]])
    assert digest == hashlib.sha256(part.read_bytes()).hexdigest()
    assert part.parent == root / "data" / "problem=unamplified-epsilon"


def test_publishing_again_mends_a_truncated_part(root: Path) -> None:
    table = to_table(rows(3))
    part = publish(located(root), table)
    whole = part.read_bytes()
    part.write_bytes(whole[:100])
    publish(located(root), table)
    assert part.read_bytes() == whole


def test_a_part_reads_back_as_it_was_written(root: Path) -> None:
    table = to_table(rows(5))
    assert read_rows(publish(located(root), table)).equals(table, check_metadata=True)


def test_parts_are_readable_without_this_package(root: Path) -> None:
    part = put(root, rows(5))
    assert pq.read_table(part)["problem"].to_pylist() == ["unamplified-epsilon"] * 5
    assert pq.read_table(root / "data").num_rows == 5
    metadata = pq.read_metadata(part).row_group(0)
    columns = {metadata.column(i).path_in_schema: metadata.column(i) for i in range(metadata.num_columns)}
    assert {c.compression for c in columns.values()} == {"ZSTD"}
    assert "BYTE_STREAM_SPLIT" in columns["upper"].encodings
    assert any("DICTIONARY" in encoding for encoding in columns["sigma"].encodings)
    with duckdb.connect() as connection:
        query = f"select sum(upper), min(finished_at) < now() from '{root}/data/*/*.parquet' group by problem"
        assert connection.execute(query).fetchall() == [(10.0, True)]


def publish_until_killed(root: Path) -> None:
    for first in range(0, 1_000_000, 200):
        put(root, rows(200, first=first))


def test_a_writer_killed_at_any_instant_leaves_no_unreadable_part(root: Path) -> None:
    seen = 0
    for trial in some(range(6), 2):
        writer = FORKED.Process(target=publish_until_killed, args=(root,))
        writer.start()
        deadline = time.monotonic() + 60
        while len(parts(located(root))) <= seen and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(0.003 * trial)  # another instant of the publication each time
        writer.kill()
        writer.join()
        seen = len(parts(located(root)))
    assert seen > 0
    with open_store(root) as store:
        assert store.verify() == []
        assert store.sql("select count(*) as n from results").to_pylist()[0]["n"] == len(
            store.stored("unamplified-epsilon")
        )


def publish_on_a_full_disk(root: Path, answers: "multiprocessing.Queue[str]") -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
    try:
        put(root, rows(300))
    except StoreError as error:
        answers.put(str(error))


def test_a_full_disk_is_one_sentence_and_leaves_no_file(root: Path) -> None:
    open_store(root, create=True)
    answers = FORKED.Queue()
    writer = FORKED.Process(target=publish_on_a_full_disk, args=(root, answers))
    writer.start()
    sentence = answers.get(timeout=60)
    writer.join()
    assert sentence.startswith(f"Cannot write {root}/data/problem=unamplified-epsilon/")
    assert sentence.endswith("File too large.")
    assert [p.name for p in root.rglob("*") if p.is_file()] == ["store.json"]


def test_what_did_not_come_from_to_table_is_not_published(root: Path) -> None:
    table = to_table(rows(1))
    with pytest.raises(ValueError, match="at least one row, got 0 rows"):
        publish(located(root), table.slice(0, 0))
    with pytest.raises(ValueError, match="from to_table"):
        publish(located(root), pa.table({"point_id": ["a"]}))
    index = table.column_names.index("upper")
    with pytest.raises(ValueError, match="Expected no NaN in the column upper"):
        publish(located(root), table.set_column(index, table.schema.field(index), pa.array([float("nan")])))
    assert not root.exists()


def test_a_part_of_a_newer_release_is_refused_with_both_versions(root: Path) -> None:
    part = put(root, rows(2))
    table = pq.read_table(part, partitioning=None)
    newer = republish(
        part, table.replace_schema_metadata({**table.schema.metadata, VERSION_KEY: str(SCHEMA_VERSION + 6)})
    )
    with pytest.raises(StoreError) as caught:
        read_rows(newer)
    assert str(caught.value) == f"{newer} has schema version 7, but this release reads 1: update privsweep."


def without_values(table: pa.Table, names: list[str]) -> pa.Table:
    """The table with nulls in some columns, as left by tools that merge older and newer parts."""
    for name in names:
        nulls = pa.nulls(len(table), table.schema.field(name).type)
        table = table.set_column(table.column_names.index(name), name, nulls)
    return table


@pytest.mark.parametrize("older", [pa.Table.drop_columns, without_values], ids=["missing", "null"])
def test_a_field_that_was_added_later_has_its_default_in_older_parts(
    root: Path, older: Callable[[pa.Table, list[str]], pa.Table]
) -> None:
    part = put(root, rows(2))
    table = read_rows(
        republish(part, older(pq.read_table(part, partitioning=None), ["epochs", "adjacency", "value"]))
    )
    assert table["epochs"].to_pylist() == [1] * 2
    assert table["adjacency"].to_pylist() == ["add-remove"] * 2
    assert table["value"].null_count == 2
    assert table.schema.equals(schema_for(find_problem("unamplified-epsilon")))


@pytest.mark.parametrize("older", [pa.Table.drop_columns, without_values], ids=["missing", "null"])
def test_points_of_older_parts_are_those_of_today(
    root: Path, older: Callable[[pa.Table, list[str]], pa.Table]
) -> None:
    one, two = row(epsilon(), Answer.enclosure(1, 3)), row(epsilon(sigma=2), Answer.enclosure(1, 2))
    part = put(root, [one, two])
    republish(part, older(pq.read_table(part, partitioning=None), ["epochs", "adjacency"]))
    three = row(epsilon(), Answer.enclosure(2, 4), method=Claims())
    put(root, [three, row(epsilon(epochs=2), Answer.enclosure(8, 9))])
    with open_store(root) as store:
        stored = store.stored("unamplified-epsilon")
        assert {r.point.id: "ok" for r in (one, two, three)}.items() <= stored.items()
        brackets = store.sql("select sigma, epochs, adjacency, lower, upper from best order by sigma, epochs")
        assert [tuple(bracket.values()) for bracket in brackets.to_pylist()] == [
            (1, 1, "add-remove", 2, 3),
            (1, 2, "add-remove", 8, 9),
            (2, 1, "add-remove", 1, 2),
        ]
        found = store.lookup(epsilon(sigma=2))
        assert found is not None
        assert (found.exact, found.upper, found.upper_from) == (True, 2, epsilon(sigma=2).as_fields())
        assert store.lookup(epsilon(adjacency="add")) is None
        assert store.verify() == []


def test_columns_that_this_release_cannot_interpret_are_refused_by_name(root: Path) -> None:
    part = put(root, rows(2))
    table = pq.read_table(part, partitioning=None)
    strange = republish(part, table.append_column("weather", pa.array(["wet", "dry"])))
    with pytest.raises(StoreError, match="has the column weather, which this release cannot read"):
        read_rows(strange)
    typed = republish(strange, table.set_column(6, "sigma", pa.array(["1", "inf"])))
    with pytest.raises(StoreError, match="has the column sigma as string, expected double"):
        read_rows(typed)
    short = republish(typed, table.drop_columns(["sigma"]))
    with pytest.raises(StoreError, match="lacks the column sigma"):
        read_rows(short)
    holey = republish(short, without_values(table, ["sigma"]))
    with pytest.raises(StoreError, match="has rows without a value in the column sigma"):
        read_rows(holey)


def test_a_part_in_the_folder_of_another_problem_is_refused(root: Path) -> None:
    part = put(root, rows(2))
    wrong = part.parent.parent / "problem=unamplified-delta" / part.name
    wrong.parent.mkdir()
    part.rename(wrong)
    with pytest.raises(StoreError, match="rows of unamplified-epsilon in the folder of unamplified-delta"):
        read_rows(wrong)


@pytest.mark.parametrize("version", [b"x" * 6000, b"9" * 6000, "²".encode(), b"\xff"])
def test_a_part_with_metadata_that_nobody_wrote_is_one_short_sentence(root: Path, version: bytes) -> None:
    part = put(root, rows(2))
    table = read_rows(part)
    changed = republish(part, table.replace_schema_metadata({**table.schema.metadata, VERSION_KEY: version}))
    with pytest.raises(StoreError, match="has an invalid schema version") as error:
        read_rows(changed)
    assert len(str(error.value)) < 200 + len(str(changed))


def test_a_problem_or_a_column_with_a_long_name_is_shortened(root: Path) -> None:
    part = put(root, rows(2))
    table = read_rows(part)
    metadata = {**table.schema.metadata, PROBLEM_KEY: b"x" * 6000}
    for changed in (
        table.replace_schema_metadata(metadata),
        table.append_column("x" * 6000, pa.array([1.0, 2.0])),
    ):
        part = republish(part, changed)
        with pytest.raises(StoreError) as error:
            read_rows(part)
        assert len(str(error.value)) < 300 + len(str(part))


@pytest.mark.parametrize(
    "name",
    ["problem=unamplified-epsilon/notes.txt", "problem=unamplified-epsilon/a.parquet", "b.parquet", "c/d"],
)
def test_a_foreign_file_is_refused_by_name(root: Path, name: str) -> None:
    put(root, row(epsilon()))
    foreign = root / "data" / name
    foreign.parent.mkdir(exist_ok=True)
    foreign.write_text("not ours")
    with pytest.raises(StoreError, match="is not part of the store") as caught:
        parts(located(root))
    assert str(root / "data" / Path(name).parts[0]) in str(caught.value)
    (root / "data" / ".DS_Store").write_text("ignored")
    (complaint,) = open_store(root).verify()
    assert complaint == str(caught.value)


def test_what_killed_makers_left_beside_a_store_goes_and_nothing_else_does(root: Path) -> None:
    gone = root.parent / ".store.0123456789abcdef.tmp"
    kept = [
        root.parent / name
        for name in (".store.fedcba9876543210.tmp", ".other.0123456789abcdef.tmp", ".store.mine.tmp")
    ]
    for folder in (gone, *kept):
        folder.mkdir()
        (folder / "store.json").write_text("half a fi")
    foreign = root.parent / ".store.00000000deadbeef.tmp"
    foreign.mkdir()
    (foreign / "precious.txt").write_text("precious")
    for folder in (gone, foreign, *kept[1:]):
        os.utime(folder, (time.time() - 90_000,) * 2)
    open_store(root, create=True).close()
    assert sorted(root.parent.iterdir()) == sorted([root, foreign, *kept])


def test_a_store_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"Cannot .* the store '.*/file/store': Not a directory\."):
        open_store(tmp_path / "file" / "store", create=True)
    with pytest.raises(StoreError, match=r"Expected a path without question marks for the store"):
        open_store(tmp_path / "a?b", create=True)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_only_old_leftovers_of_killed_writers_are_removed(root: Path) -> None:
    part = put(root, rows(1))
    fresh, old = part.parent / ".part.1.tmp", part.parent / ".part.2.tmp"
    folder = root / ".snapshot-1.tmp"
    folder.mkdir()
    for leftover in (fresh, old, folder / "inside"):
        leftover.write_text("half a file")
    for leftover in (old, folder):
        os.utime(leftover, (time.time() - 90_000,) * 2)
    located(root).remove_leftovers()
    assert fresh.exists()
    assert not old.exists()
    assert not folder.exists()
    assert parts(located(root)) == [part]


def test_publishing_into_a_store_of_a_newer_release_is_refused(root: Path) -> None:
    open_store(root, create=True)
    (root / "store.json").write_text(json.dumps({"schema_version": 2}))
    with pytest.raises(StoreError, match="schema version 2, but this release reads 1"):
        put(root, rows(1))
    assert parts(located(root)) == []


@pytest.mark.parametrize("column", ["lower", "upper", "value", "confidence"])
def test_a_part_with_nan_in_an_answer_is_refused_by_name(root: Path, column: str) -> None:
    part = put(root, rows(2))
    table = pq.read_table(part, partitioning=None)
    nan = pa.array([1.0, math.nan])
    harmed = republish(part, table.set_column(table.column_names.index(column), column, nan))
    with pytest.raises(StoreError) as caught:
        read_rows(harmed)
    assert str(caught.value) == (
        f"{harmed} has NaN in the column {column}; `privsweep repair` will quarantine it."
    )


def test_a_column_that_is_missing_or_of_another_type_is_refused_where_few_are_read(root: Path) -> None:
    part = put(root, rows(2))
    table = pq.read_table(part, partitioning=None)
    lacking = republish(part, table.drop_columns(["status"]))
    with pytest.raises(StoreError) as caught:
        read_rows(lacking, ["point_id", "status"])
    assert str(caught.value) == f"{lacking} lacks the column status."
    assert read_rows(lacking, ["point_id"]).column_names == ["point_id"]
