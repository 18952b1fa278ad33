"""Rows that take a column of a file as a distribution: every output of stored bounds names the assumption."""

from pathlib import Path

import pytest

from flows.cli.app import run
from flows.spec.grid import expand
from flows.spec.sweep import parse
from privcore import find_problem
from privsweep import ask
from storage import open_store
from storage.export import write_store_sql
from storage.place.located import located
from tests.flows.small_store import Command, point, store_of
from tests.storage.plain import plainly

SWEEP = """
name = "of-file"

[[grid]]
problem = "membership-advantage"
methods = ["membership.exact"]

[grid.product]
records = [10]
{field} = ["column({file},value)", "uniform(10)"]
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("drawn") / "drawn.csv"
    path.write_text("value\n" + "\n".join(str(k % 95) for k in range(100)) + "\n")
    return path


@pytest.fixture(scope="module")
def store(file: Path) -> Path:
    """A store with the points of the sweep, and one of another problem."""
    sweep = parse(SWEEP.format(file=file, field="law").encode(), "sweep.toml")
    points = list(expand(sweep.grids))
    other = point("unamplified-epsilon", "unamplified.exact", sigma=1, delta=1e-5)
    return store_of(file.parent / "store", [*points, other])


@pytest.fixture
def spec(file: Path) -> Path:
    path = file.parent / "sweep.toml"
    path.write_text(SWEEP.format(file=file, field="law"))
    return path


def test_the_table_of_a_sweep_names_the_assumption_of_its_rows(
    privsweep: Command, spec: Path, store: Path, file: Path
) -> None:
    assert privsweep("lookup", spec, "--store", store) == 0
    assert f"assumed    values that are not in the column value of {file} do not exist" in privsweep.out
    assert privsweep("lookup", spec, "--store", store, "--json") == 0
    said = {row["fields"]["law"][:6]: row.get("assumed") for row in privsweep.json["problems"]}
    assert said["unifor"] is None
    assert "do not exist" in said["column"]


@pytest.mark.parametrize(
    "query",
    [
        "select lower, upper from best",
        "select max(upper) from membership_advantage",
        "from membership_advantage_at(law := 'uniform(10)', records := 10)",
    ],
)
def test_a_query_over_such_rows_ends_with_a_note(privsweep: Command, store: Path, query: str) -> None:
    assert privsweep("sql", query, "--store", store) == 0
    assert "1 stored problem takes a column of a file as a distribution" in privsweep.err
    assert "do not exist" in privsweep.err


def test_a_query_over_other_rows_has_no_note(privsweep: Command, store: Path) -> None:
    assert privsweep("sql", "select upper from unamplified_epsilon", "--store", store) == 0
    assert privsweep.err == ""


def test_a_report_names_the_assumption_of_its_rows(
    tmp_path: Path, spec: Path, store: Path, file: Path
) -> None:
    assert run(["report", str(spec), "--store", str(store), "--out", str(tmp_path), "--format", "md"]) == 0
    said = (tmp_path / "of-file.md").read_text()
    assert f"Assumed: values that are not in the column value of {file} do not exist" in said


def test_the_view_of_assumptions_agrees_with_the_problems(tmp_path: Path) -> None:
    path = tmp_path / "it's, (drawn) column.csv"
    path.write_text("v w\n" + "0.25\n" * 3 + "0.5\n")
    column = f"column({path},v w)"
    points = [
        point("membership-advantage", "membership.exact", law=f"mixed(0.5,{column})", records=5),
        point("label-advantage", "labels.composition", mechanism="llp", prior=column, bag_size=2),
        point("membership-advantage", "membership.exact", law="uniform(10)", records=5),
    ]
    root = store_of(tmp_path / "store", points)
    with open_store(root) as opened:
        found = {row["problem"]: row["assumed"] for row in opened.sql("from assumptions").to_pylist()}
    expected = {each.problem.name: each.problem.assumption().split(";")[0] for each in points[:2]}
    assert found == expected
    assert all(str(path) in text for text in found.values())
    write_store_sql(located(root))
    (plain,) = plainly(root, "select problem, assumed from assumptions")
    assert dict(plain) == expected


FORGED = "privsweep: verified: advantage in [0, 0.001], proved"


def test_line_feeds_in_the_name_of_a_file_make_no_lines_of_output(privsweep: Command, tmp_path: Path) -> None:
    name = f"x\n{FORGED}\nz.csv"
    Path(name).write_text("value\n1\n1\n2\n")
    law = f"column({name},value)"
    store_of(tmp_path / "store", [point("membership-advantage", "membership.exact", records=10, law=law)])
    spec = SWEEP.format(field="law", file=name.replace("\n", "\\n"))
    Path("sweep.toml").write_text(spec)
    for words in (
        ("lookup", "sweep.toml"),
        ("lookup", "membership-advantage", "records=10", f"law={law}"),
        ("sql", "select upper from best"),
        ("membership", "--law", law, "--records", "10"),
        ("ask", "membership-advantage", "records=10", f"law={law}"),
    ):
        assert privsweep(*words) == 0, words
        lines = (privsweep.out + privsweep.err).splitlines()
        assert any("do not exist" in line for line in lines), words
        assert not any(line.startswith(FORGED) for line in lines), words
    with open_store("store") as opened:
        found = opened.lookup(find_problem("membership-advantage").from_fields({"law": law, "records": 10}))
    assert found is not None
    assert "do not exist" in found.assumed
    answer = str(ask("membership-advantage", law=law, records=10))
    assert "do not exist" in answer
    assert not any(line.startswith(FORGED) for line in answer.splitlines())
