import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from privcore import Answer, Point, evaluate, find, find_problem
from storage.table.lookup_table import read_lookup_table, write_lookup_table
from tests.flows.small_store import Command
from tests.storage.made_up import epsilon, row, table_of

WORDS = ["unamplified-epsilon", "sigma=1", "delta=1e-5"]


def written(folder: Path, *answers: Answer) -> str:
    """A lookup table of made-up answers at sigma 1, 2, ...; the true epsilon at sigma 1 is 4.377."""
    made = [row(epsilon(sigma=1 + k), answer) for k, answer in enumerate(answers)]
    table = table_of(folder / "theirs", made)
    write_lookup_table(table, folder / "table.parquet")
    return table.version


def of_one(folder: Path, point: Point, answer: Answer) -> str:
    """The file of a lookup table with one answer."""
    made = row(point.problem, answer, method=point.method)
    write_lookup_table(table_of(folder / "author", made), folder / "table.parquet")
    return str(folder / "table.parquet")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "store"


@pytest.mark.thorough
def test_an_imported_bracket_is_shown_as_imported_and_not_as_proved(
    store: Path, tmp_path: Path, privsweep: Command
) -> None:
    version = written(tmp_path, Answer.enclosure(4.0, 5.0))
    assert privsweep("table", "import", "table.parquet") == 0
    assert privsweep("lookup", *WORDS, "--explain") == 0
    text = privsweep.out
    assert "kind       enclosure, imported and not recomputed" in text
    assert f"source     store, exactly this problem, imported from the table {version}" in text
    assert "proved" not in text.partition("question")[0]
    content = privsweep.told("lookup", *WORDS, "--explain")
    assert content["imported"] == [version]
    assert content["explanation"]["ends"]["upper"]["imported"] == version


@pytest.mark.thorough
def test_a_statement_names_the_table_of_an_imported_bracket(
    store: Path, tmp_path: Path, privsweep: Command
) -> None:
    version = written(tmp_path, Answer.enclosure(4.37, 4.38))
    words = ["epsilon", "--sampling", "none", "--sigma", "1", "--delta", "1e-5", "--statement", "text"]
    assert privsweep(*words) == 0
    assert "Computed by: privsweep" in privsweep.out
    assert privsweep("table", "import", "table.parquet") == 0
    assert privsweep(*words) == 0
    origin = f"Computed by: the author of the lookup table {version}, whose rows were imported"
    assert origin in privsweep.out


def test_a_false_bracket_is_found_before_it_is_imported(
    store: Path, tmp_path: Path, privsweep: Command
) -> None:
    written(tmp_path, Answer.enclosure(0.1, 0.2))
    assert privsweep("table", "import", "table.parquet") == 2
    assert "Nothing was imported, since a recomputed row contradicts the table" in privsweep.err
    assert row(epsilon()).point.id in privsweep.err
    assert not store.exists()


def test_an_interval_that_was_declared_a_proof_is_found_before_it_is_imported(
    store: Path, tmp_path: Path, privsweep: Command
) -> None:
    fields = {"canaries": 1000, "guesses": 100, "correct": 90, "delta": 1e-5}
    point = Point(
        problem=find_problem("audit-epsilon").from_fields(fields), method=find("auditing.steinke")()
    )
    table = of_one(tmp_path, point, Answer.at_least(evaluate(point).lower))
    assert privsweep("table", "import", table) == 2
    assert "as proved, now with confidence 0.95" in privsweep.err
    assert not store.exists()


def test_a_tighter_bracket_than_that_of_its_method_is_not_imported(
    store: Path, tmp_path: Path, privsweep: Command
) -> None:
    fields = {"sigma": 1.0, "steps": 10, "delta": 1e-5}
    problem = find_problem("allocation-epsilon").from_fields(fields)
    point = Point(problem=problem, method=find("allocation.largest")())
    table = of_one(tmp_path, point, Answer.at_least(evaluate(point).lower + 0.005))
    assert privsweep("table", "import", table) == 2
    assert "Nothing was imported, since a recomputed row differs from the table" in privsweep.err
    assert "the method does not give the stored lower end" in privsweep.err
    assert not store.exists()


@pytest.mark.thorough
@pytest.mark.usefixtures("store")
def test_a_bracket_about_a_file_that_is_elsewhere_is_imported_without_a_check(tmp_path: Path) -> None:
    (tmp_path / "drawn.csv").write_text("value\n1\n1\n2\n")
    problem = find_problem("membership-advantage").from_fields(
        {"records": 10, "law": "column(drawn.csv,value)"}
    )
    point = Point(problem=problem, method=find("membership.exact")())
    table = of_one(tmp_path, point, evaluate(point))
    (tmp_path / "drawn.csv").unlink()
    for words, said in (
        (["table", "import", table], "checked  0"),
        (["verify", "--recompute", "all"], "its file cannot be read: "),
    ):  # in new processes, since this one remembers the values
        command = [str(Path(sys.executable).with_name("privsweep")), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert said in done.stdout


@pytest.mark.thorough
def test_without_a_check_a_false_bracket_is_found_later_and_taken_back(
    store: Path, tmp_path: Path, privsweep: Command
) -> None:
    version = written(tmp_path, Answer.enclosure(0.1, 0.2))
    assert privsweep("table", "import", "table.parquet", "--check", "0") == 0
    assert privsweep("verify", "--recompute", "all") == 1
    assert f"imported from the table {version}" in privsweep.out
    assert privsweep.told("table", "remove", version)["removed"] == 1
    assert privsweep("lookup", *WORDS) == 3


@pytest.mark.parametrize("check", ["0", "20"])
@pytest.mark.parametrize(
    "values",
    [None, pa.array(["abc"]), pa.array([None], pa.float64()), pa.array([b"\xff"]).view(pa.string())],
    ids=["missing", "text", "null", "not-utf-8"],
)
def test_a_table_without_the_values_of_a_field_is_one_sentence_and_code_2_and_leaves_no_store(
    store: Path, tmp_path: Path, privsweep: Command, values: pa.Array | None, check: str
) -> None:
    written(tmp_path, Answer.enclosure(4.0, 5.0))
    table = read_lookup_table(tmp_path / "table.parquet")
    rows = table.rows.drop_columns("sigma")
    rows = rows if values is None else rows.append_column("sigma", values)
    write_lookup_table(replace(table, rows=rows), tmp_path / "table.parquet")
    assert privsweep("table", "import", "table.parquet", "--check", check) == 2
    error = privsweep.err
    assert "sigma" in error or "'abc'" in error
    assert error.count("\n") == 1
    assert not store.exists()


def test_all_rows_of_quick_methods_are_recomputed_besides_the_drawn_ones(
    store: Path, tmp_path: Path, privsweep: Command
) -> None:
    written(tmp_path, *[Answer.enclosure(0.0, 10.0)] * 40)
    assert privsweep.told("table", "import", "table.parquet", "--check", "1")["checked"] == 40


def test_status_counts_a_large_sweep_again_whose_imported_points_were_removed(
    store: Path, tmp_path: Path, privsweep: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = written(tmp_path, Answer.enclosure(4.37, 4.38))
    assert privsweep("table", "import", "table.parquet") == 0
    assert privsweep("run", "unamplified-epsilon", "sigma=1,2", "delta=1e-5") == 0
    assert privsweep("compact") == 0
    monkeypatch.setattr("flows.cli.sweep.COUNTED", 1)
    for removed, state in ((False, "complete"), (True, "interrupted")):
        if removed:
            assert privsweep("table", "remove", version, "--json") == 0
        (sweep,) = privsweep.told("status")
        assert (sweep["points"], sweep["missing"], sweep["state"]) == (2, int(removed), state)
    assert privsweep("sql", "select status, counts from sweeps", "--json") == 0
    assert privsweep.json == [{"status": "incomplete", "counts": "{}"}]
