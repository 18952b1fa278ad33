"""Answers of the shipped table if the store has nothing better, and of the store otherwise."""

from pathlib import Path

import pytest

from privcore import Answer
from storage.table.lookup_table import write_lookup_table
from storage.table.shipped import VARIABLE
from tests.flows.small_store import Command
from tests.storage.made_up import epsilon, imported, put, row, table_of

pytestmark = pytest.mark.sampled(2)

TRUE = Answer.enclosure(4.37717, 4.37718)  # of sigma=1, delta=1e-5
WORDS = ("unamplified-epsilon", "sigma=1", "delta=1e-5")
OPTIONS = ("--sampling", "none", "--sigma", "1", "--delta", "1e-5")


@pytest.fixture(autouse=True)
def version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The version of a shipped table with one row."""
    table = table_of(tmp_path / "made", row(epsilon(), TRUE, sweep="lookup"))
    write_lookup_table(table, tmp_path / f"lookup-{table.version}.parquet")
    monkeypatch.setenv(VARIABLE, str(tmp_path / f"lookup-{table.version}.parquet"))
    monkeypatch.setenv("PRIVSWEEP_CACHE", str(tmp_path / "cache"))
    return table.version


def test_without_a_store_the_shipped_table_answers_and_is_named(privsweep: Command, version: str) -> None:
    assert privsweep("lookup", *WORDS) == 0
    assert f"source     table {version} that PRIVSWEEP_TABLE names, exactly this problem" in privsweep.out
    assert privsweep.told("epsilon", *OPTIONS)["source"] == "shipped"
    assert privsweep("lookup", "unamplified-epsilon", "sigma=2", "delta=1e-5", "--json") == 0
    assert privsweep.json["source"] == "shipped-monotone"
    assert privsweep("compare", "--sigma", "1", "--steps", "9", "--delta", "1e-5", "--stored-only") == 0
    assert f"table {version} that PRIVSWEEP_TABLE names" in privsweep.out


def test_the_explanation_names_the_row_of_the_shipped_table(privsweep: Command) -> None:
    assert privsweep("lookup", *WORDS, "--explain") == 0
    assert ", sweep lookup" in privsweep.out


def test_a_store_with_the_problem_itself_comes_first(privsweep: Command, tmp_path: Path) -> None:
    put(tmp_path / "store", row(epsilon(), Answer.enclosure(4.0, 5.0)))
    assert privsweep("lookup", *WORDS, "--json") == 0
    assert (privsweep.json["source"], privsweep.json["upper"]) == ("store", 5.0)


@pytest.mark.thorough
def test_the_smaller_of_two_wide_upper_ends_is_taken(privsweep: Command, tmp_path: Path) -> None:
    question = ("lookup", "unamplified-epsilon", "sigma=2", "delta=1e-5", "--json")
    put(tmp_path / "store", row(epsilon(sigma=0.9), Answer.enclosure(4.9, 5.0)))
    assert privsweep(*question) == 0
    assert privsweep.json["source"] == "shipped-monotone"
    put(tmp_path / "store", row(epsilon(sigma=1.5), Answer.enclosure(2.7, 2.8)))
    assert privsweep(*question) == 0
    assert privsweep.json["source"] == "store-monotone"


def test_computing_intersects_with_the_shipped_table(privsweep: Command) -> None:
    assert privsweep("lookup", "--compute", "unamplified-epsilon", "sigma=2", "delta=1e-5", "--json") == 0
    assert privsweep.json["source"] == "computed"
    assert privsweep.told("lookup", "--compute", *WORDS)["source"] == "shipped"


def test_sql_and_the_page_use_the_shipped_table_without_a_store(privsweep: Command, version: str) -> None:
    assert privsweep.told("sql", "select upper from best") == [{"upper": TRUE.upper}]
    assert f"No store exists at store: using the table {version} that PRIVSWEEP_TABLE names." in privsweep.err
    assert privsweep.told("page", "build")["version"] == version


def test_the_shipped_table_can_be_shown_and_imported(privsweep: Command, version: str) -> None:
    assert privsweep.told("table", "show")["version"] == version
    assert privsweep("table", "import") == 0
    assert privsweep.told("lookup", *WORDS)["source"] == "store"


def test_a_user_can_leave_the_table_out(privsweep: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "none")
    assert privsweep("lookup", *WORDS) == 3
    assert privsweep("sql", "select 1") != 0
    assert privsweep("table", "show") == 2


def test_an_imported_bracket_does_not_displace_one_of_the_shipped_table_that_contradicts_it(
    privsweep: Command, tmp_path: Path
) -> None:
    imported(tmp_path / "store", row(epsilon(), Answer.enclosure(0.5, 0.501)))
    assert privsweep("lookup", *WORDS) == 2
    assert "contradict each other about unamplified-epsilon: the store has [0.5, 0.501]" in privsweep.err
