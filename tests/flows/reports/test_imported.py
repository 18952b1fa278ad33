"""Imported brackets that nobody recomputed: no table, report, figure or query calls them proved."""

import re
from pathlib import Path

import pytest

from flows.cli.app import run
from flows.figures.draw import canvas
from flows.figures.figure import picture
from flows.figures.papers import PAPERS
from flows.figures.stored import Stored
from flows.spec.grid import expand
from flows.spec.sweep import load
from privcore import Answer, find, find_problem
from privsweep import compare
from storage import open_store, publish, to_table
from storage.place.located import located
from storage.sql.views import marked
from storage.table.lookup_table import LookupTable
from tests.flows.reports.made_up_labels import ADVANTAGE, RELEASED, RESPONDED
from tests.flows.small_store import Command
from tests.storage.made_up import claimed, epsilon, imported, put, put_each, row

SWEEP = """
name = "theirs"

[[grid]]
problem = "unamplified-epsilon"
methods = ["unamplified.exact"]

[grid.product]
sigma = [1.0, 2.0]
delta = [1e-5]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("imported")


@pytest.fixture(scope="module")
def version(folder: Path) -> str:
    """The version of a table of two false brackets, which was imported into the folder `store`."""
    table = imported(
        folder / "store", [row(epsilon(sigma=1.0 + k), Answer.enclosure(0.5, 0.6)) for k in range(2)]
    )
    (folder / "theirs.toml").write_text(SWEEP)
    return table.version


def test_the_table_of_a_sweep_names_the_table_of_imported_bounds(
    privsweep: Command, folder: Path, version: str
) -> None:
    asked = ["lookup", folder / "theirs.toml", "--store", folder / "store"]
    assert privsweep(*asked) == 0
    assert privsweep.out.count(version) == 2
    assert "imported   bounds of 2 problems are imported and not recomputed" in privsweep.out
    assert privsweep(*asked, "--json") == 0
    assert [line["imported"] for line in privsweep.json["problems"]] == [[version], [version]]


@pytest.mark.parametrize("form", ["md", "html"])
def test_a_report_calls_imported_bounds_imported_and_not_proved(
    tmp_path: Path, folder: Path, version: str, form: str
) -> None:
    asked = ["report", str(folder / "theirs.toml"), "--store", str(folder / "store"), "--out", str(tmp_path)]
    assert run([*asked, "--format", form]) == 0
    text = re.sub(r"\s+", " ", (tmp_path / f"theirs.{form}").read_text())
    assert f"This is imported and not recomputed, from the lookup table {version}." in text
    assert "2 problems, all with bounds, 2 of them imported and not recomputed" in text
    assert f"Imported: 2 rows of the lookup table {version}, imported and not recomputed." in text
    assert not re.search(r"This is proved|with proved bounds|proved bracket|proved at the dots", text)


def test_a_figure_counts_the_imported_points_by_their_table(tmp_path: Path) -> None:
    point = next(expand(load("allocation-figure1").grids))
    table = imported(tmp_path / "store", row(point.problem, Answer.at_least(0.5), method=point.method))
    with open_store(tmp_path / "store") as store:
        shown = Stored.of(("allocation-figure1",), lambda _: True, store)
    assert shown.tables == {table.version: 1}


def test_a_picture_of_imported_points_counts_them_and_names_their_table(
    privsweep: Command, tmp_path: Path
) -> None:
    point = next(expand(load("allocation-figure1").grids))
    rows = to_table([row(point.problem, Answer.at_least(0.5), method=point.method)])
    publish(located(tmp_path / "store"), marked(rows, "a $ b_{"))
    asked = ["report", "figures", "--figure", "1", "--store", tmp_path / "store", "--out", tmp_path]
    assert privsweep(*asked, "--format", "svg") == 1, "the other points are missing"
    assert "Figure 1: 1 of " in privsweep.err
    with open_store(tmp_path / "store") as store:
        figure = next(each for each in PAPERS["allocation"] if each.name == "1")
        heading = canvas(picture(figure, store)).get_suptitle()
    assert re.sub(r"\s+", " ", heading).endswith(
        r"points are imported and not recomputed, from the lookup table a \$ b_{."
    )


def test_a_query_over_imported_rows_ends_with_a_note(privsweep: Command, folder: Path, version: str) -> None:
    assert privsweep("sql", "select upper from unamplified_epsilon", "--store", folder / "store") == 0
    note = f"2 stored rows are imported and not recomputed, from the lookup table {version}"
    assert note in privsweep.err
    assert privsweep("sql", "select upper from poisson_epsilon", "--store", folder / "store") == 0
    assert privsweep.err == ""


@pytest.mark.parametrize(
    "query",
    [
        "select lower from epsilon_at(sigma := 3, steps := 10, delta := 1e-5)",
        "select upper from noise_for(epsilon := 9, steps := 10, delta := 1e-5)",
        "select upper from compare(sigma := 3, steps := 10, delta := 1e-5)",
        "select lower_method from conflicts",
        "select upper from query_table('res' || 'ults')",
        "select (certified_epsilon(sampling := 'allocation', sigma := 3, steps := 10, delta := 1e-5)).lower",
    ],
)
def test_every_way_to_read_imported_rows_ends_with_a_note(
    privsweep: Command, tmp_path: Path, query: str
) -> None:
    problem = find_problem("allocation-epsilon").from_fields({"sigma": 3, "steps": 10, "delta": 1e-5})
    claimed = find("allocation.certified")()
    table = imported(tmp_path / "store", row(problem, Answer.enclosure(0.5, 0.502), method=claimed))
    assert privsweep("sql", query, "--store", tmp_path / "store") == 0
    rows = "1 answer of certified_epsilon" if "certified" in query else "1 stored row"
    note = f"{rows} is imported and not recomputed, from the lookup table {table.version}"
    assert note in privsweep.err
    if "certified" in query:
        whole = query.replace("select (", "select unnest(").replace(").lower", ")")
        assert privsweep("sql", whole, "--json", "--store", tmp_path / "store") == 0
        assert privsweep.json[0]["imported"] == table.version


@pytest.fixture
def poisson(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LookupTable:
    """A table with a false bracket for Poisson sampling, imported into the store of the working folder."""
    given = {"sigma": 1, "steps": 1000, "delta": 1e-5, "sampling_probability": 0.001}
    false = claimed("poisson-epsilon", "poisson.certified", Answer.enclosure(0.01, 0.01002), **given)
    table = imported(tmp_path / "store", false)
    monkeypatch.chdir(tmp_path)
    return table


RUN = ("--sigma", "1", "--steps", "1000", "--delta", "1e-5")


def test_a_comparison_in_json_and_in_python_names_the_table_of_an_imported_bracket(
    privsweep: Command, poisson: LookupTable
) -> None:
    assert privsweep("compare", *RUN, "--json") == 0
    rows = {each["sampling"]: each for each in privsweep.json["rows"]}
    assert rows["poisson"]["imported"] == [poisson.version]
    assert "imported" not in rows["allocation"]
    compared = compare(sigma=1, steps=1000, delta=1e-5)
    (line,) = (line for line in repr(compared).splitlines() if line.startswith("poisson"))
    assert f"imported and not recomputed, from the lookup table {poisson.version}" in line
    assert compared["poisson"].imported == (poisson.version,)


def test_a_comparison_of_labels_marks_an_imported_quantile_in_its_summary_and_its_table(
    privsweep: Command, tmp_path: Path
) -> None:
    quantile = claimed(
        "label-ratio-quantile", "labels.composition", Answer.enclosure(1.3, 1.4), **RELEASED, level=0.9
    )
    put_each(tmp_path / "store", [*RESPONDED, ADVANTAGE])
    version = imported(tmp_path / "store", quantile).version
    asked = ["report", "compare-labels", "--store", tmp_path / "store", "--out", tmp_path, "--format", "md"]
    assert privsweep(*asked) == 0
    text = (tmp_path / "compare-labels.md").read_text().replace("\\", "")
    source = f"imported and not recomputed, from the lookup table {version}"
    assert f"in [1.3, 1.4], {source}" in text.partition("## Question")[0]
    assert f"; some numbers are {source}" in text
    assert "| point(0.3) | 8 | 1 | 3 | 1.3 (imported) | 1.4 (imported) |" in text


def test_answers_with_a_confidence_and_imported_ones_have_different_colours(
    privsweep: Command, tmp_path: Path
) -> None:
    kind, fields = "membership-regression-advantage", {"coordinates": 5, "records": 40}
    put(tmp_path / "store", claimed(kind, "membership.threshold", Answer.at_least(0.03), **fields))
    likely = Answer.enclosure(0.03, 0.05, confidence=0.95)
    theirs = claimed(kind, "membership.sampling", likely, **fields)
    version = imported(tmp_path / "store", theirs).version
    asked = ["report", "compare-membership", "--store", tmp_path / "store", "--out", tmp_path]
    assert privsweep(*asked, "--format", "html") == 0
    text = (tmp_path / "compare-membership.html").read_text()
    (datum,) = re.findall(r'\{[^{}]*"x":\s*"membership.sampling[^{}]*\}', text)
    assert '"s":"imported"' in datum.replace(" ", "")
    assert f'"im":"{version}"' in datum.replace(" ", "")


def test_a_summary_marks_imported_numbers_next_to_those_with_a_confidence(
    privsweep: Command, tmp_path: Path
) -> None:
    simulated = claimed(
        "label-advantage", "labels.sampling", Answer.enclosure(0.15, 0.16, confidence=0.999), **RELEASED
    )
    put_each(tmp_path / "store", RESPONDED)
    version = imported(tmp_path / "store", simulated).version
    asked = ["report", "compare-labels", "--store", tmp_path / "store", "--out", tmp_path, "--format", "md"]
    assert privsweep(*asked) == 1, "no quantile is stored"
    summary = (tmp_path / "compare-labels.md").read_text().partition("## Question")[0]
    assert f"Some of it is imported and not recomputed, from the lookup table {version}." in summary


def test_the_table_of_a_summary_marks_imported_brackets_and_ranges(
    privsweep: Command, tmp_path: Path
) -> None:
    own = row(epsilon(sigma=2.0), Answer.enclosure(1.99, 2.0))
    put_each(tmp_path / "store", [own])
    version = imported(tmp_path / "store", row(epsilon(), Answer.enclosure(0.5, 0.51))).version
    (tmp_path / "theirs.toml").write_text(SWEEP)
    asked = ["report", tmp_path / "theirs.toml", "--store", tmp_path / "store", "--out", tmp_path]
    assert privsweep(*asked, "--format", "md") == 0
    summary = (tmp_path / "theirs.md").read_text().partition("## Questions")[0]
    assert f" (imported and not recomputed, from the lookup table {version}) |" in summary
