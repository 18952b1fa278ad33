"""`privsweep table`: publish, show, import and diff, as a user types them."""

import json
from pathlib import Path

import pytest

from flows.cli.app import run
from privcore import Answer
from tests.flows.small_store import Command
from tests.storage.made_up import epsilon, imported, put, row, rows


@pytest.fixture
def store(tmp_path: Path) -> Path:
    put(tmp_path / "store", rows(5))
    return tmp_path / "store"


def test_a_published_table_is_shown_imported_and_answers_lookups(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["table", "publish", "--store", str(store), "--out", str(tmp_path), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["rows"] == 5
    assert made["file"] == str(tmp_path / f"lookup-{made['version']}.parquet")
    about = json.loads(Path(made["about"]).read_text(encoding="utf-8"))
    assert about["distribution"][0]["contentUrl"] == Path(made["file"]).name
    assert run(["table", "show", made["file"]]) == 0
    shown = capsys.readouterr().out
    assert made["version"] in shown
    assert "        5  unamplified-epsilon" in shown
    other = tmp_path / "other"
    unchecked = ["--check", "0"]  # the answers are made up
    assert run(["table", "import", made["file"], "--store", str(other), *unchecked]) == 0
    assert "parts    1" in capsys.readouterr().out
    question = ["lookup", "unamplified-epsilon", "sigma=1.01", "delta=1e-5", "--store", str(other), "--json"]
    assert run(question) == 0
    assert json.loads(capsys.readouterr().out)["upper"] == 2.0


def test_a_table_with_rows_of_another_names_that_table_wherever_it_is_handled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    privsweep = Command(capsys)
    put(tmp_path / "store", rows(2, first=9))
    theirs = imported(tmp_path / "store", rows(1)).version
    assert privsweep("table", "publish", "--store", tmp_path / "store", "--out", tmp_path, "--json") == 0
    made = privsweep.json
    assert made["imported"] == {theirs: 1}
    for words in (("show",), ("import", "--check", "0", "--store", tmp_path / "other")):
        assert privsweep("table", words[0], made["file"], *words[1:]) == 0
        said = f"1 of 3 rows of the table {made['version']} had been imported and not recomputed"
        assert f"{said}, from the lookup table {theirs}; " in privsweep.err
        assert privsweep("table", words[0], made["file"], *words[1:], "--json") == 0
        assert privsweep.json["imported"] == {theirs: 1}


@pytest.mark.thorough
def test_a_difference_is_a_table_of_brackets_and_a_contradiction_ends_with_1(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = []
    for ends in ((1.0, 2.0), (1.5, 2.0), (2.5, 3.0)):
        put(tmp_path / f"{ends}", row(epsilon(), Answer.enclosure(*ends)))
        assert (
            run(["table", "publish", "--store", str(tmp_path / f"{ends}"), "--out", str(tmp_path), "--json"])
            == 0
        )
        files.append(json.loads(capsys.readouterr().out)["file"])
    assert run(["table", "diff", *files[:2], "--json"]) == 0
    (moved,) = json.loads(capsys.readouterr().out)["problems"]
    assert (moved["tighter"], moved["same"]) == (1, 0)
    assert run(["table", "diff", files[0], files[2]]) == 1
    assert "1 brackets contradict one another: one of the tables is wrong" in capsys.readouterr().out


def test_a_file_that_is_no_table_is_one_sentence_and_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["show"], ["import", "--store", str(tmp_path / "new")]):
        assert run(["table", *command, str(tmp_path / "nowhere.parquet")]) == 2
        error = capsys.readouterr().err
        assert error.startswith("privsweep: Cannot read ")
        assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_tables_of_estimates_alone_are_compared_without_a_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path / "store", row(epsilon(), Answer(value=1.0)))
    assert run(["table", "publish", "--store", str(tmp_path / "store"), "--out", str(tmp_path)]) == 0
    file = next(str(path) for path in tmp_path.glob("lookup-*.parquet"))
    capsys.readouterr()
    assert run(["table", "diff", file, file]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:2] == ["problem", "same"]


def test_a_table_is_not_published_into_a_folder_named_like_an_address(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for address in ("s3://bucket/tables", "S3://", "gs://a/b", "file:///tmp/x"):
        assert run(["table", "publish", "--store", str(store), "--out", address]) == 2
        assert "Expected a folder on this machine, got the address " in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [store]
