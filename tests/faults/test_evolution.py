"""Changes of the schema: older schemas are read, newer ones are rejected, and types are never guessed."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flows.cli.app import run
from privcore import find_problem
from storage import SCHEMA_VERSION, StoreError, open_store, write_manifest
from storage.parts import parts
from storage.place.located import located
from storage.schema import VERSION_KEY
from tests.faults.tally import Tally
from tests.storage.made_up import epsilon, manifest, put, rows
from tests.storage.test_parts import republish

Change = Callable[[pa.Table], pa.Table]


def typed(name: str, values: list[object]) -> Change:
    return lambda table: table.set_column(table.column_names.index(name), name, pa.array(values))


REFUSED: dict[str, tuple[Change, str]] = {
    "a number as text": (typed("sigma", ["1", "inf"]), "sigma"),
    "an answer as text": (typed("upper", ["1", "inf"]), "upper"),
    "a count as a fraction": (typed("steps", [1.0, 2.5]), "steps"),
    "a time as text": (typed("finished_at", ["now", "then"]), "finished_at"),
    "a status as a number": (typed("status", [0, 1]), "status"),
    "an id as a number": (typed("point_id", [1, 2]), "point_id"),
    "a column too many": (lambda t: t.append_column("weather", pa.array(["wet", "dry"])), "weather"),
    "a column twice": (lambda t: t.append_column("upper", t["upper"]), "upper more than once"),
    "no sigma": (lambda t: t.drop_columns(["sigma"]), "sigma"),
    "no status": (lambda t: t.drop_columns(["status"]), "status"),
    "no time": (lambda t: t.drop_columns(["finished_at"]), "finished_at"),
    "no ids": (lambda t: t.drop_columns(["point_id"]), "point_id"),
}


def with_schema_of(case: str, root: Path) -> tuple[Path, str]:
    """Create a store of two parts, one with a wrong schema; return this part and a word for the error."""
    change, word = REFUSED[case]
    put(root, rows(2, first=2))
    part = put(root, rows(2))
    table = change(pq.read_table(part, partitioning=None))
    if table.column_names.count("point_id") and case != "an id as a number":
        return republish(part, table), word
    return renamed(part, table), word


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", REFUSED)
def test_a_part_with_another_schema_is_refused_by_name(faults: Tally, root: Path, case: str) -> None:
    """T15: a column of another type, too many, or missing, in one part of two."""
    odd, word = with_schema_of(case, root)
    with faults.trial():
        complaints = open_store(root).verify()
        assert [str(odd) in sentence for sentence in complaints] == [True], complaints
        assert word in complaints[0]
        with open_store(root) as store:
            for read in (lambda: store.sql("from results"), lambda: store.lookup(epsilon())):
                with pytest.raises(StoreError, match=odd.name):
                    read()
    odd.unlink()
    faults.compare(root, {row.point.id for row in rows(2, first=2)})


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", REFUSED)
def test_a_plan_on_a_part_with_another_schema_works_or_is_refused_in_one_sentence(
    faults: Tally, root: Path, case: str
) -> None:
    """T15: readers of a few columns, such as plan, run and status, with a part that has a wrong column."""
    odd, _ = with_schema_of(case, root)
    with faults.trial(), open_store(root) as store:
        for read in (
            lambda: store.stored("unamplified-epsilon"),
            lambda: list(store.points(find_problem("unamplified-epsilon"))),
        ):
            try:
                read()
            except StoreError as error:
                assert str(odd) in str(error)  # noqa: PT017  either is right


def renamed(part: Path, table: pa.Table) -> Path:
    """Replace a part by a table without usable ids, under a name with the correct hash of its bytes."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    content = bytes(sink.getvalue())
    path = part.with_name(f"{part.name[:32]}-{hashlib.sha256(content).hexdigest()}.parquet")
    part.unlink()
    path.write_bytes(content)
    return path


def test_columns_that_were_added_later_are_filled_in(faults: Tally, root: Path) -> None:
    """T15: parts that were written before a field existed, next to current parts."""
    part = put(root, rows(2))
    table = pq.read_table(part, partitioning=None)
    older = republish(part, table.drop_columns(["epochs", "adjacency", "value"]))
    put(root, rows(2, first=2))
    with faults.trial(), open_store(root) as store:
        assert store.verify() == []
        shown = store.sql(
            f"select epochs, adjacency, value from results where part like '%{older.stem}%'"
        ).to_pylist()
        assert shown == [{"epochs": 1, "adjacency": "add-remove", "value": None}] * 2
    faults.compare(root, {row.point.id for row in rows(4)})


# ------------------------------------------------------------------------------ versions

SPEC = """
name = "made-up"
[[grid]]
problem = "unamplified-epsilon"
methods = ["unamplified.exact"]
product = {sigma = [1, 2], delta = 1e-5}
"""
COMMANDS = [
    ["plan", "SPEC"],
    ["run", "SPEC", "--engine", "serial"],
    ["status"],
    ["status", "SPEC"],
    ["lookup", "unamplified-epsilon", "sigma=1", "delta=1e-5"],
    ["sql", "from results"],
    ["verify"],
    ["repair"],
    ["compact"],
    ["gc"],
    ["export", "from results"],
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:2]))
def test_a_store_of_a_newer_release_is_refused_by_every_command_and_left_alone(
    faults: Tally, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    """T16: a store whose marker file has the next version."""
    spec = tmp_path / "spec.toml"
    spec.write_text(SPEC)
    write_manifest(located(root), manifest(put(root, rows(3))))
    (root / "store.json").write_text(json.dumps({"schema_version": SCHEMA_VERSION + 1}))
    before = {path: path.lstat().st_mtime_ns for path in root.rglob("*")}
    with faults.trial():
        words = [str(spec) if word == "SPEC" else word for word in command]
        assert run([*words, "--store", str(root)]) == 2
        out, err = capsys.readouterr()
        assert not out
        assert (
            f"{root} has schema version {SCHEMA_VERSION + 1}, but this release reads {SCHEMA_VERSION}" in err
        )
        assert err.count("\n") == 1
        assert {path: path.lstat().st_mtime_ns for path in root.rglob("*")} == before


@pytest.mark.sampled(3)
@pytest.mark.parametrize("what", ["part", "manifest"])
@pytest.mark.parametrize("version", [SCHEMA_VERSION + 1, 0, -1, "x"])
def test_a_file_of_a_newer_release_in_a_store_of_today_is_refused_by_name(
    faults: Tally, root: Path, what: str, version: object
) -> None:
    """T16: one part or manifest of another version, as if two releases had used one store."""
    part = put(root, rows(2))
    file = write_manifest(located(root), manifest(part))
    if what == "part":
        table = pq.read_table(part, partitioning=None)
        metadata = {**table.schema.metadata, VERSION_KEY: str(version)}
        file.unlink()
        file = republish(part, table.replace_schema_metadata(metadata))
    else:
        file.write_text(json.dumps(json.loads(file.read_text()) | {"schema_version": version}))
    with faults.trial(), open_store(root) as store:
        with pytest.raises(StoreError) as caught:
            store.sql("from results")
        assert str(file) in str(caught.value)
        assert "version" in str(caught.value)
        assert any(str(file) in sentence for sentence in store.verify())
    assert len(parts(located(root))) == 1
