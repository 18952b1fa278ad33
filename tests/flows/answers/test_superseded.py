"""False rows of earlier versions of a method: readers of bounds leave them out, raw rows are marked."""

from pathlib import Path

import pytest

from privcore import Answer, Problem, find, find_problem
from privcore.stored_names import USED_SINCE
from storage import open_store
from storage.export import write_store_sql
from storage.place.located import located
from storage.table.lookup_table import lookup_table
from tests.flows.small_store import Command
from tests.storage.made_up import put, row
from tests.storage.plain import plainly

FIELDS = {"sigma": 1.0, "steps": 100, "delta": 1e-5}
FALSE = Answer.enclosure(0.01, 0.02)  # the truth is above 1
ARGUMENTS = "sigma := 1, steps := 100, delta := 1e-5"


def question(**fields: object) -> Problem:
    return find_problem("allocation-epsilon").from_fields({**FIELDS, "adjacency": "remove", **fields})


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with a false row of a superseded version, and a true row of another question."""
    path, method = tmp_path / "store", find("allocation.certified")
    with monkeypatch.context() as earlier:
        earlier.setattr(method, "version", USED_SINCE["allocation.certified"] - 1)
        put(path, row(question(), FALSE, method=method()))
    put(path, row(question(sigma=2.0), Answer.enclosure(0.2, 0.5), method=method()))
    return path


@pytest.mark.parametrize(
    "rows",
    [
        "best",
        "brackets.allocation_epsilon",
        f"allocation_epsilon_at({ARGUMENTS}, adjacency := 'remove')",
        "allocation_epsilon_noise(epsilon := 0.1, steps := 100, delta := 1e-5, adjacency := 'remove')",
        "conflicts",
    ],
)
def test_brackets_macros_and_exports_of_them_leave_it_out(store: Path, rows: str, privsweep: Command) -> None:
    with open_store(store) as opened:
        assert 0.02 not in [each["upper"] for each in opened.sql(f"from {rows}").to_pylist()]
        write_store_sql(located(store))
    assert ["0.02"] not in plainly(store, f"select upper from {rows}")[0]
    for command in ("sql", "export"):
        assert privsweep(command, f"select upper from {rows}", "--store", store) == 0
        assert "0.02" not in privsweep.out
        assert "superseded" not in privsweep.err


def test_lookups_leave_it_out(store: Path, privsweep: Command) -> None:
    with open_store(store) as opened:
        found = opened.lookup(question())
    assert found is None or found.upper > 0.5
    words = [f"{name}={value}" for name, value in {**FIELDS, "adjacency": "remove"}.items()]
    assert privsweep("lookup", "allocation-epsilon", *words, "--store", store, "--json") in (0, 3)
    assert "0.02" not in privsweep.out


def test_published_tables_leave_it_out(store: Path) -> None:
    with open_store(store) as opened:
        assert lookup_table(opened).rows["upper"].to_pylist() == [0.5]


def test_raw_rows_show_and_mark_it(store: Path, privsweep: Command) -> None:
    for rows in ("results", "allocation_epsilon"):
        assert privsweep("export", f"select upper from {rows} order by 1", "--store", store) == 0
        assert privsweep.out == "upper\n0.02\n0.5\n"
        assert "1 stored row is of a superseded version of allocation.certified" in privsweep.err
    query = "select method_version, upper from superseded join results using (point_id, method_version)"
    assert privsweep("sql", query, "--json", "--store", store) == 0
    version = USED_SINCE["allocation.certified"] - 1
    assert privsweep.json == [{"method_version": version, "upper": 0.02}]
    write_store_sql(located(store))
    assert plainly(store, "select method from superseded") == [[["allocation.certified"]]]
