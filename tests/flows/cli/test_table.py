"""`privsweep table`: publish, show, import and diff, as a user types them."""

import json
from pathlib import Path

import pytest

from privcore import Answer
from tests.flows.small_store import Command
from tests.storage.made_up import epsilon, imported, put, row, rows


@pytest.fixture
def store(tmp_path: Path) -> Path:
    put(tmp_path / "store", rows(5))
    return tmp_path / "store"


def test_a_published_table_is_shown_imported_and_answers_lookups(
    store: Path, tmp_path: Path, privsweep: Command
) -> None:
    made = privsweep.told("table", "publish", "--store", store, "--out", tmp_path)
    assert made["rows"] == 5
    assert made["file"] == str(tmp_path / f"lookup-{made['version']}.parquet")
    about = json.loads(Path(made["about"]).read_text(encoding="utf-8"))
    assert about["distribution"][0]["contentUrl"] == Path(made["file"]).name
    assert privsweep("table", "show", made["file"]) == 0
    shown = privsweep.out
    assert made["version"] in shown
    assert "        5  unamplified-epsilon" in shown
    other = tmp_path / "other"
    unchecked = ["--check", "0"]  # the answers are made up
    assert privsweep("table", "import", made["file"], "--store", other, *unchecked) == 0
    assert "parts    1" in privsweep.out
    question = ["lookup", "unamplified-epsilon", "sigma=1.01", "delta=1e-5", "--store", str(other), "--json"]
    assert privsweep(*question) == 0
    assert privsweep.json["upper"] == 2.0


def test_a_table_with_rows_of_another_names_that_table_wherever_it_is_handled(
    tmp_path: Path, privsweep: Command
) -> None:
    put(tmp_path / "store", rows(2, first=9))
    theirs = imported(tmp_path / "store", rows(1)).version
    made = privsweep.told("table", "publish", "--store", tmp_path / "store", "--out", tmp_path)
    assert made["imported"] == {theirs: 1}
    for words in (("show",), ("import", "--check", "0", "--store", tmp_path / "other")):
        assert privsweep("table", words[0], made["file"], *words[1:]) == 0
        said = f"1 of 3 rows of the table {made['version']} had been imported and not recomputed"
        assert f"{said}, from the lookup table {theirs}; " in privsweep.err
        assert privsweep.told("table", words[0], made["file"], *words[1:])["imported"] == {theirs: 1}


@pytest.mark.thorough
def test_a_difference_is_a_table_of_brackets_and_a_contradiction_ends_with_1(
    store: Path, tmp_path: Path, privsweep: Command
) -> None:
    files = []
    for ends in ((1.0, 2.0), (1.5, 2.0), (2.5, 3.0)):
        put(tmp_path / f"{ends}", row(epsilon(), Answer.enclosure(*ends)))
        assert (
            privsweep("table", "publish", "--store", tmp_path / f"{ends}", "--out", tmp_path, "--json") == 0
        )
        files.append(privsweep.json["file"])
    (moved,) = privsweep.told("table", "diff", *files[:2])["problems"]
    assert (moved["tighter"], moved["same"]) == (1, 0)
    assert privsweep("table", "diff", files[0], files[2]) == 1
    assert "1 brackets contradict one another: one of the tables is wrong" in privsweep.out


def test_a_file_that_is_no_table_is_one_sentence_and_code_2(tmp_path: Path, privsweep: Command) -> None:
    for command in (["show"], ["import", "--store", str(tmp_path / "new")]):
        assert privsweep("table", *command, tmp_path / "nowhere.parquet") == 2
        error = privsweep.err
        assert error.startswith("privsweep: Cannot read ")
        assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_tables_of_estimates_alone_are_compared_without_a_row(tmp_path: Path, privsweep: Command) -> None:
    put(tmp_path / "store", row(epsilon(), Answer(value=1.0)))
    assert privsweep("table", "publish", "--store", tmp_path / "store", "--out", tmp_path) == 0
    file = next(str(path) for path in tmp_path.glob("lookup-*.parquet"))
    assert privsweep("table", "diff", file, file) == 0
    assert privsweep.out.splitlines()[1].split()[:2] == ["problem", "same"]


def test_a_table_is_not_published_into_a_folder_named_like_an_address(
    store: Path, tmp_path: Path, privsweep: Command
) -> None:
    for address in ("s3://bucket/tables", "S3://", "gs://a/b", "file:///tmp/x"):
        assert privsweep("table", "publish", "--store", store, "--out", address) == 2
        assert "Expected a folder on this machine, got the address " in privsweep.err
    assert list(tmp_path.iterdir()) == [store]
