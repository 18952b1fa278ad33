"""The shipped lookup table: a complete file, whose rows are computed again, a drawn sample in every run."""

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from flows.runs.recompute import Recomputed, compare
from privcore import Answer, Point, find, find_problem
from privcore.labels.bounds.reach import changes_nothing
from privcore.labels.problems import LabelAdvantage
from privcore.registry import used_versions, versions
from storage import StoreError, open_store
from storage.schema import problem_id
from storage.table.lookup_table import lookup_table, read_lookup_table, write_lookup_table
from storage.table.shipped import FOLDER, VARIABLE, _opened, shipped_file, shipped_store, shipped_version
from tests.storage.made_up import epsilon, put, row, table_of

pytestmark = pytest.mark.sampled(3)

LARGEST = 6_000_000
"""Bytes of the file: it is part of every copy of the repository."""

FILES = sorted(FOLDER.glob("*.parquet"))
PROBLEMS = ("allocation-epsilon", "poisson-epsilon")


@pytest.fixture
def shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE)


@pytest.fixture(scope="module")
def rows() -> Any:
    (file,) = FILES
    return pq.read_table(file)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table with two rows, named by the variable, and an empty cache."""
    made = [row(epsilon(sigma=s), Answer.enclosure(4 / s, 4.4 / s)) for s in (1.0, 2.0)]
    table = table_of(tmp_path / "made", made)
    path = tmp_path / f"lookup-{table.version}.parquet"
    write_lookup_table(table, path)
    monkeypatch.setenv(VARIABLE, str(path))
    monkeypatch.setenv("PRIVSWEEP_CACHE", str(tmp_path / "cache"))
    return path


def test_there_is_one_small_file_with_the_usual_training_runs(rows: Any) -> None:
    (file,) = FILES
    assert file.stat().st_size <= LARGEST
    assert set(PROBLEMS) <= set(rows["problem"].to_pylist())
    assert set(rows["git_dirty"].to_pylist()) == {False}
    assert set(rows["sweep"].to_pylist()) == {"lookup"}


@pytest.mark.thorough
@pytest.mark.usefixtures("shipped")
def test_the_name_of_the_file_is_the_version_of_its_rows() -> None:
    path = shipped_file()
    assert path is not None
    assert read_lookup_table(path).version == shipped_version()


def test_no_row_is_of_a_version_of_its_method_that_is_not_used(rows: Any) -> None:
    shipped = set(zip(rows["method"].to_pylist(), rows["method_version"].to_pylist(), strict=True))
    newest, oldest = versions(), used_versions()
    assert all(oldest[name] <= n <= newest[name] for name, n in shipped), "`make ship` computes it again"


@pytest.mark.sampled(6)
@pytest.mark.parametrize("number", range(200))
def test_a_row_is_computed_again(rows: Any, number: int) -> None:
    (stored,) = rows.slice(random.Random(number).randrange(len(rows)), 1).to_pylist()
    kind = find_problem(stored["problem"])
    problem = kind.from_fields({name: stored[name] for name in kind.parameters if name in stored})
    method = find(stored["method"])(**json.loads(stored["knobs"]))
    point = Point(problem=problem, method=method)
    assert problem_id(problem) == stored["problem_id"]
    assert (point.id == stored["point_id"]) == (method.version == stored["method_version"])
    found = Recomputed()
    compare(found, stored, problem, point)
    assert (found.rows, found.wrong) == (1, [])


@pytest.mark.sampled(1)
@pytest.mark.usefixtures("small")
def test_a_table_is_copied_into_the_cache_once_and_answers_lookups(tmp_path: Path) -> None:
    store = shipped_store()
    assert store is not None
    found = store.lookup(epsilon(sigma=1.5))
    assert found is not None
    assert (found.lower, found.upper) == (2.0, 4.4)
    (folder,) = (path for path in (tmp_path / "cache").glob("*-*") if path.is_dir())
    assert folder.name.startswith(f"named-{shipped_version()}-")
    assert shipped_store() is store


@pytest.mark.thorough
def test_a_table_with_any_name_is_read_again_when_it_changes(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = small.rename(small.with_name("mine.parquet"))
    monkeypatch.setenv(VARIABLE, str(other))
    assert shipped_version() == read_lookup_table(other).version
    put(small.parent / "made", row(epsilon(sigma=3.0), Answer.enclosure(1.0, 1.1)))
    with open_store(small.parent / "made") as store:
        write_lookup_table(lookup_table(store), other)
    store_again = shipped_store()
    assert store_again is not None
    found = store_again.lookup(epsilon(sigma=3.0))
    assert found is not None
    assert found.exact
    monkeypatch.setenv(VARIABLE, str(small.parent / "missing.parquet"))
    with pytest.raises(StoreError, match=r"missing\.parquet"):
        shipped_store()


def test_a_damaged_table_is_an_error(small: Path) -> None:
    content = bytearray(small.read_bytes())
    content[100] ^= 1
    small.write_bytes(content)
    with pytest.raises(StoreError, match="lookup-"):
        shipped_store()


def test_without_a_cache_the_table_is_in_the_folder_for_temporary_files(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    below = str(small / "below-a-file")  # cannot be a folder, as on a disk without room
    environment = dict(os.environ, PRIVSWEEP_CACHE=below, TMPDIR=str(scratch))
    question = ["lookup", "unamplified-epsilon", "sigma=1.5", "delta=1e-5"]
    for variable in (str(small), ""):
        command = [sys.executable, "-m", "flows.cli", *question]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env=environment | {VARIABLE: variable},
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert "epsilon in [" in done.stdout
        assert list(scratch.iterdir()) == []
    monkeypatch.setenv("PRIVSWEEP_CACHE", below)
    monkeypatch.setattr("tempfile.tempdir", below)
    with pytest.raises(StoreError, match="cannot be unpacked"):
        shipped_store()


def damaged(folder: Path) -> Iterator[Path]:
    """Damage the store of a table in several ways, one after another."""
    (part,) = folder.glob("data/*/*.parquet")
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)
    yield folder
    shutil.rmtree(folder / "data")
    yield folder
    (folder / "store.json").write_text("{")
    yield folder
    (folder / "data" / "junk").write_text("x")
    yield folder
    os.mkfifo(folder / "data" / "pipe")
    yield folder
    folder.with_name(f"{folder.name}.sha256").unlink()
    os.mkfifo(folder.with_name(f"{folder.name}.sha256"))
    yield folder
    shutil.rmtree(folder)
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)
    folder.touch()
    yield folder
    shutil.rmtree(folder)
    folder.symlink_to("nowhere")
    yield folder
    if os.geteuid() == 0:  # else no test can make another user own it
        os.chown(folder, 65534, -1)
        yield folder
        assert folder.stat().st_uid == 0


@pytest.mark.sampled(1)
@pytest.mark.usefixtures("small")
def test_a_damaged_copy_of_a_table_is_made_again(tmp_path: Path) -> None:
    """`repair` cannot compute its points again, since no sweep of the user has them."""
    store = shipped_store()
    assert store is not None
    store.close()
    (folder,) = (path for path in (tmp_path / "cache").glob("named-*") if path.is_dir())
    for _ in damaged(folder):
        _opened.cache_clear()
        again = shipped_store()
        assert again is not None
        with again:
            found = again.lookup(epsilon(sigma=1.5))
        assert found is not None
        assert (found.lower, found.upper) == (2.0, 4.4)
        assert len(list(folder.glob("data/*/*.parquet"))) == 1


def test_without_a_table_there_is_no_store(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "none")
    assert shipped_store() is None
    assert shipped_version() == ""


def test_no_stored_advantage_is_almost_zero_where_it_is_zero(rows: Any) -> None:
    lower, upper = (rows[name].to_numpy() for name in ("lower", "upper"))
    tiny = rows.filter((lower == 0.0) & (upper > 0.0) & (upper < 1e-200)).to_pylist()
    names = LabelAdvantage.parameters
    asked = [LabelAdvantage.from_fields({name: row[name] for name in names if name in row}) for row in tiny]
    assert {row["problem"] for row in tiny} <= {"label-advantage"}
    assert not [each for each in asked if changes_nothing(each)]
