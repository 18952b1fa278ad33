"""Imported brackets that nobody recomputed: no table, report, figure or query calls them proved."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from flows.cli.app import run
from flows.figures.stored import Stored
from flows.spec.grid import expand
from flows.spec.sweep import load
from privcore import Answer, Point, evaluate, find, find_problem
from privsweep import compare
from storage import Row, open_store
from storage.located import located
from storage.lookup_table import LookupTable, lookup_table, write_lookup_table
from storage.table_import import import_lookup_table
from tests.flows.small_store import Command
from tests.storage.made_up import Claims, epsilon, put, row

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
    put(folder / "author", [row(epsilon(sigma=1.0 + k), Answer.enclosure(0.5, 0.6)) for k in range(2)])
    with open_store(folder / "author") as author:
        table = lookup_table(author)
    import_lookup_table(table, located(folder / "store"))
    (folder / "theirs.toml").write_text(SWEEP)
    return table.version


def test_the_table_of_a_sweep_names_the_table_of_imported_bounds(
    capsys: pytest.CaptureFixture[str], folder: Path, version: str
) -> None:
    privsweep = Command(capsys)
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


def test_a_report_names_the_table_of_an_imported_bound_that_contradicts_a_proof(tmp_path: Path) -> None:
    false = row(epsilon(sigma=1.0), Answer.enclosure(0.5, 0.6))
    put(tmp_path / "author", false)
    with open_store(tmp_path / "author") as author:
        table = lookup_table(author)
    import_lookup_table(table, located(tmp_path / "store"))
    (tmp_path / "theirs.toml").write_text(SWEEP)
    put(tmp_path / "store", row(epsilon(sigma=1.0), Answer.enclosure(4.0, 5.0), method=Claims()))
    asked = ["report", str(tmp_path / "theirs.toml"), "--store", str(tmp_path / "store")]
    run([*asked, "--out", str(tmp_path), "--format", "md"])
    text = (tmp_path / "theirs.md").read_text().split("## Contradictions")[1].split("## ")[0]
    text = re.sub(r"\s+", " ", text)
    assert f"imported and not recomputed, from the lookup table {table.version}" in text
    assert f"privsweep table remove {table.version}" in text
    assert "proved" not in text
    assert "report this as a bug" not in text


def test_a_figure_counts_the_imported_points_by_their_table(tmp_path: Path) -> None:
    point = next(expand(load("allocation-figure1").grids))
    put(tmp_path / "author", row(point.problem, Answer.at_least(0.5), method=point.method))
    with open_store(tmp_path / "author") as author:
        table = lookup_table(author)
    import_lookup_table(table, located(tmp_path / "store"))
    with open_store(tmp_path / "store") as store:
        shown = Stored.of(("allocation-figure1",), lambda _: True, store)
    assert shown.imported == {table.version: 1}


def test_a_query_over_imported_rows_ends_with_a_note(
    capsys: pytest.CaptureFixture[str], folder: Path, version: str
) -> None:
    privsweep = Command(capsys)
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
        "select (certified_epsilon(sigma := 3, steps := 10, delta := 1e-5)).lower",
    ],
)
def test_every_way_to_read_imported_rows_ends_with_a_note(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, query: str
) -> None:
    problem = find_problem("allocation-epsilon").from_fields({"sigma": 3, "steps": 10, "delta": 1e-5})
    claimed = find("allocation.certified")()
    put(tmp_path / "author", row(problem, Answer.enclosure(0.5, 0.502), method=claimed))
    with open_store(tmp_path / "author") as author:
        table = lookup_table(author)
    import_lookup_table(table, located(tmp_path / "store"))
    privsweep = Command(capsys)
    assert privsweep("sql", query, "--store", tmp_path / "store") == 0
    note = f"1 stored row is imported and not recomputed, from the lookup table {table.version}"
    assert note in privsweep.err
    if "certified" in query:
        whole = query.replace("select (", "select unnest(").replace(").lower", ")")
        assert privsweep("sql", whole, "--json", "--store", tmp_path / "store") == 0
        assert privsweep.json[0]["imported"] == table.version


@pytest.fixture
def poisson(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LookupTable:
    """A table with a false bracket for Poisson sampling, imported into the store of the working folder."""
    fields = {"sigma": 1, "steps": 1000, "delta": 1e-5, "sampling_probability": 0.001}
    problem = find_problem("poisson-epsilon").from_fields(fields)
    put(
        tmp_path / "author",
        row(problem, Answer.enclosure(0.01, 0.01002), method=find("poisson.certified")()),
    )
    with open_store(tmp_path / "author") as author:
        table = lookup_table(author)
    import_lookup_table(table, located(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    return table


RUN = ("--sigma", "1", "--steps", "1000", "--delta", "1e-5")


def test_other_samplers_and_the_privacy_statement_name_the_table_of_an_imported_bracket(
    capsys: pytest.CaptureFixture[str], poisson: LookupTable
) -> None:
    privsweep = Command(capsys)
    told = f"(imported and not recomputed, from the lookup table {poisson.version})"
    for option in ((), ("--statement", "text")):
        assert privsweep("epsilon", *RUN, *option) == 0
        text = re.sub(r"\s+", " ", privsweep.out)
        assert f"with Poisson sampling [0.01, 0.01002] {told}" in text, option
    assert privsweep("epsilon", *RUN, "--json") == 0
    others = privsweep.json["sampling"]["others"]
    assert others["poisson"]["imported"] == [poisson.version]
    assert "imported" not in others["shuffling"]


def test_a_comparison_in_json_and_in_python_names_the_table_of_an_imported_bracket(
    capsys: pytest.CaptureFixture[str], poisson: LookupTable
) -> None:
    privsweep = Command(capsys)
    assert privsweep("compare", *RUN, "--json") == 0
    rows = {each["sampling"]: each for each in privsweep.json["rows"]}
    assert rows["poisson"]["imported"] == [poisson.version]
    assert "imported" not in rows["allocation"]
    compared = compare(sigma=1, steps=1000, delta=1e-5)
    (line,) = (line for line in repr(compared).splitlines() if line.startswith("poisson"))
    assert f"imported and not recomputed, from the lookup table {poisson.version}" in line
    assert compared["poisson"].imported == (poisson.version,)


def test_a_table_that_a_variable_names_counts_as_imported(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "author", row(epsilon(sigma=1.0), Answer.enclosure(0.5, 0.50001)))
    with open_store(tmp_path / "author") as author:
        table = lookup_table(author)
    write_lookup_table(table, tmp_path / "t.parquet")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRIVSWEEP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PRIVSWEEP_TABLE", str(tmp_path / "t.parquet"))
    privsweep = Command(capsys)
    assert privsweep("lookup", "unamplified-epsilon", "sigma=1", "delta=1e-5", "--json") == 0
    assert privsweep.json["kind"] == "enclosure, imported and not recomputed"
    assert privsweep.json["imported"] == [table.version]
    unknown = pa.array(["oracle.unknown"]).cast(table.rows.schema.field("method").type)
    place = table.rows.column_names.index("method")
    rows = table.rows.set_column(place, table.rows.schema.field(place), unknown)
    write_lookup_table(replace(table, rows=rows), tmp_path / "forged.parquet")
    monkeypatch.setenv("PRIVSWEEP_TABLE", str(tmp_path / "forged.parquet"))
    monkeypatch.setenv("PRIVSWEEP_CACHE", str(tmp_path / "other_cache"))
    assert privsweep("lookup", "unamplified-epsilon", "sigma=1", "delta=1e-5") == 2
    assert "oracle.unknown" in privsweep.err


@pytest.fixture(scope="module")
def against(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with a store whose own row an imported one contradicts, and the version of its table."""
    folder = tmp_path_factory.mktemp("against")
    problem = find_problem("allocation-epsilon").from_fields({"sigma": 1.0, "steps": 1000, "delta": 1e-5})
    certified, analytic = (find(f"allocation.{name}")() for name in ("certified", "analytic"))
    put(folder / "author", row(problem, Answer.at_most(0.05), method=analytic))
    with open_store(folder / "author") as author:
        table = lookup_table(author)
    write_lookup_table(table, folder / "theirs.parquet")
    put(folder / "store", row(problem, evaluate(Point(problem=problem, method=certified)), method=certified))
    import_lookup_table(table, located(folder / "store"))
    (folder / "both.toml").write_text(BOTH)
    return folder, table.version


BOTH = """
name = "both"

[[grid]]
problem = "allocation-epsilon"
methods = ["allocation.certified", "allocation.analytic"]

[grid.product]
sigma = [1.0]
steps = [1000]
delta = [1e-5]
"""


def test_verify_names_an_imported_row_that_contradicts_another_and_recomputes_all_rows(
    capsys: pytest.CaptureFixture[str], against: tuple[Path, str]
) -> None:
    folder, version = against
    privsweep = Command(capsys)
    assert privsweep("verify", "--store", folder / "store", "--recompute", "all") == 1
    assert f"(imported from the table {version}); `privsweep table remove {version}`" in privsweep.out
    assert "not sound; answers contradict one another" in privsweep.out
    assert "2 brackets recomputed: 1 have the same bits" in privsweep.out


def test_the_table_of_a_sweep_and_its_report_take_no_contradiction_for_an_answer(
    capsys: pytest.CaptureFixture[str], against: tuple[Path, str]
) -> None:
    folder, version = against
    privsweep = Command(capsys)
    asked = [folder / "both.toml", "--store", folder / "store"]
    assert privsweep("lookup", *asked) == 2
    assert f"`privsweep table remove {version}` takes that import back" in privsweep.err
    assert privsweep("lookup", *asked, "--json") == 2
    assert [each["status"] for each in privsweep.json["problems"]] == ["conflict"]
    assert privsweep("report", *asked, "--out", folder / "out", "--format", "md") == 1
    (report,) = (folder / "out").glob("*.md")
    assert "0.050" not in report.read_text().partition("## Questions")[0]


NAME = "lookup-2026.11.26-8986a2dd.parquet"
"""A name that another table could have."""


def test_a_table_that_a_variable_names_is_read_by_its_content_and_not_by_its_name(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRIVSWEEP_CACHE", str(tmp_path / "cache"))
    privsweep = Command(capsys)
    for k in range(2):
        put(tmp_path / f"author{k}", row(epsilon(), Answer.enclosure(0.5 + k, 0.51 + k)))
        with open_store(tmp_path / f"author{k}") as author:
            table = lookup_table(author)
        named = tmp_path / f"{k}" / NAME
        named.parent.mkdir()
        write_lookup_table(table, named)
        monkeypatch.setenv("PRIVSWEEP_TABLE", str(named))
        assert privsweep("lookup", "unamplified-epsilon", "sigma=1", "delta=1e-5", "--json") == 0
        assert (privsweep.json["lower"], privsweep.json["imported"]) == (0.5 + k, [table.version])
        assert privsweep("lookup", "unamplified-epsilon", "sigma=1", "delta=1e-5") == 0
        assert f"table {table.version} that PRIVSWEEP_TABLE names" in privsweep.out
    (tmp_path / "1" / NAME).unlink()
    assert privsweep("lookup", "unamplified-epsilon", "sigma=1", "delta=1e-5") == 2
    assert NAME in privsweep.err


def test_a_contradiction_within_a_table_that_a_variable_names_advises_to_unset_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [row(epsilon(sigma=1.0), Answer.at_most(0.5)), row(epsilon(sigma=2.0), Answer.at_least(0.6))]
    put(tmp_path / "author", rows)
    with open_store(tmp_path / "author") as author:
        write_lookup_table(lookup_table(author), tmp_path / "t.parquet")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRIVSWEEP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PRIVSWEEP_TABLE", str(tmp_path / "t.parquet"))
    privsweep = Command(capsys)
    assert privsweep("lookup", "unamplified-epsilon", "sigma=1.5", "delta=1e-5") == 2
    assert "unset PRIVSWEEP_TABLE" in privsweep.err
    assert "table remove" not in privsweep.err


def stored_against(folder: Path, own: Sequence[Row], other: Row) -> str:
    """Put own rows and an imported one into `folder/store`; return the version of its table."""
    put(folder / "author", other)
    with open_store(folder / "author") as author:
        table = lookup_table(author)
    put_each(folder / "store", own)
    import_lookup_table(table, located(folder / "store"))
    return table.version


def put_each(root: Path, rows: Sequence[Row]) -> None:
    """Publish each row as a part, since a part has one kind of problem."""
    for each in rows:
        put(root, each)


def claimed(problem: str, method: str, answer: Answer, **fields: Any) -> Row:
    return row(find_problem(problem).from_fields(fields), answer, method=find(method)())


GIVEN: dict[str, Any] = {"sigma": 1.0, "delta": 1e-6, "steps": 100}
UNIFORM: dict[str, Any] = {"law": "uniform(1000)", "records": 100}


@pytest.mark.parametrize(
    ("report", "own", "other"),
    [
        (
            "compare-training",
            [
                claimed("allocation-epsilon", "allocation.certified", Answer.enclosure(0.85, 0.86), **GIVEN),
                claimed("shuffling-epsilon", "shuffling.clones", Answer.at_most(1.5), **GIVEN),
                claimed(
                    "unamplified-epsilon", "unamplified.exact", Answer.at_most(4.9), sigma=1.0, delta=1e-6
                ),
                claimed(
                    "poisson-epsilon",
                    "poisson.certified",
                    Answer.enclosure(0.95, 0.96),
                    sampling_probability=0.01,
                    **GIVEN,
                ),
            ],
            claimed("allocation-epsilon", "allocation.combined", Answer.at_most(0.1), **GIVEN),
        ),
        (
            "compare-membership",
            [claimed("membership-advantage", "membership.exact", Answer.enclosure(0.9, 0.91), **UNIFORM)],
            claimed("membership-advantage", "membership.schwarz", Answer.at_most(0.1), **UNIFORM),
        ),
    ],
)
def test_a_comparison_lists_contradictions_and_takes_none_into_its_summary(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, report: str, own: list[Row], other: Row
) -> None:
    version = stored_against(tmp_path, own, other)
    privsweep = Command(capsys)
    asked = ["report", report, "--store", tmp_path / "store", "--out", tmp_path / "out", "--format", "md"]
    assert privsweep(*asked) == 1
    assert "1 contradiction between methods." in privsweep.err
    (file,) = (tmp_path / "out").glob("*.md")
    head, contradictions = file.read_text().split("## Contradictions")
    assert f"`privsweep table remove {version}`" in contradictions
    assert "0.100001" not in head.partition("## How ")[0]


RELEASED: dict[str, Any] = {"mechanism": "llp", "prior": "point(0.3)", "bag_size": 8}
RESPONDED = [
    claimed(
        "label-advantage",
        "labels.response",
        Answer.enclosure(0.1 * e, 0.1 * e + 0.01),
        mechanism="rr",
        prior="point(0.3)",
        label_epsilon=e,
    )
    for e in (1.0, 3.0)
]
ADVANTAGE = claimed("label-advantage", "labels.composition", Answer.enclosure(0.15, 0.16), **RELEASED)


def test_a_comparison_of_labels_marks_an_imported_quantile_in_its_summary(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    quantile = claimed(
        "label-ratio-quantile", "labels.composition", Answer.enclosure(1.3, 1.4), **RELEASED, level=0.9
    )
    version = stored_against(tmp_path, [*RESPONDED, ADVANTAGE], quantile)
    privsweep = Command(capsys)
    asked = ["report", "compare-labels", "--store", tmp_path / "store", "--out", tmp_path, "--format", "md"]
    assert privsweep(*asked) == 0
    summary = (tmp_path / "compare-labels.md").read_text().replace("\\", "").partition("## Question")[0]
    assert f"in [1.3, 1.4], imported and not recomputed, from the lookup table {version}" in summary


def test_a_comparison_of_labels_leaves_out_contradicted_quantiles(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    own, other = (
        claimed("label-ratio-quantile", f"labels.{method}", answer, **RELEASED, level=0.9)
        for method, answer in (
            ("composition", Answer.enclosure(5.0, 6.0)),
            ("likelihood", Answer.at_most(2.0)),
        )
    )
    stored_against(tmp_path, [*RESPONDED, ADVANTAGE, own], other)
    privsweep = Command(capsys)
    asked = ["report", "compare-labels", "--store", tmp_path / "store", "--out", tmp_path, "--format", "md"]
    assert privsweep(*asked) == 1
    head, _, contradictions = (
        (tmp_path / "compare-labels.md").read_text().replace("\\", "").partition("## Contradictions")
    )
    assert "[5, 6]" not in head
    assert "table remove" in contradictions


def test_a_comparison_of_contradicted_brackets_alone_is_a_list_of_contradictions(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    own = [
        claimed("allocation-epsilon", "allocation.certified", Answer.enclosure(0.85, 0.86), **GIVEN),
        row(epsilon(sigma=1.0, delta=1e-6), Answer.at_most(4.9)),
    ]
    other = claimed("allocation-epsilon", "allocation.combined", Answer.at_most(0.1), **GIVEN)
    version = stored_against(tmp_path, own, other)
    privsweep = Command(capsys)
    asked = ["report", "compare-training", "--store", tmp_path / "store", "--out", tmp_path, "--format", "md"]
    assert privsweep(*asked) == 1
    assert f"`privsweep table remove {version}`" in (tmp_path / "compare-training.md").read_text()
    assert "answers for random allocation" not in privsweep.err
    assert "answers for no amplification" not in privsweep.err
    assert "answers for Poisson sampling" in privsweep.err


@pytest.mark.parametrize("option", [[], ["--compute"]], ids=["stored", "computed"])
def test_a_table_that_a_variable_names_replaces_no_proof_of_the_store(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: list[str]
) -> None:
    put(tmp_path / "author", row(epsilon(sigma=1.5), Answer.enclosure(0.1, 0.1005)))
    with open_store(tmp_path / "author") as author:
        write_lookup_table(lookup_table(author), tmp_path / "t.parquet")
    put(tmp_path / "store", [row(epsilon(sigma=s), Answer.enclosure(4 / s, 4.4 / s)) for s in (1.0, 2.0)])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRIVSWEEP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PRIVSWEEP_TABLE", str(tmp_path / "t.parquet"))
    privsweep = Command(capsys)
    assert privsweep("lookup", "unamplified-epsilon", "sigma=1.5", "delta=1e-5", *option) == 2
    assert "contradict each other about unamplified-epsilon: the store has [2.0, 4.4]" in privsweep.err
    assert "unset PRIVSWEEP_TABLE" in privsweep.err


def test_a_summary_marks_imported_numbers_next_to_those_with_a_confidence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    simulated = claimed(
        "label-advantage", "labels.sampling", Answer.enclosure(0.15, 0.16, confidence=0.999), **RELEASED
    )
    version = stored_against(tmp_path, RESPONDED, simulated)
    privsweep = Command(capsys)
    asked = ["report", "compare-labels", "--store", tmp_path / "store", "--out", tmp_path, "--format", "md"]
    assert privsweep(*asked) == 1, "no quantile is stored"
    summary = (tmp_path / "compare-labels.md").read_text().partition("## Question")[0]
    assert f"Some of it is imported and not recomputed, from the lookup table {version}." in summary


def test_the_table_of_a_summary_marks_imported_brackets_and_ranges(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    own = row(epsilon(sigma=2.0), Answer.enclosure(1.99, 2.0))
    version = stored_against(tmp_path, [own], row(epsilon(), Answer.enclosure(0.5, 0.51)))
    (tmp_path / "theirs.toml").write_text(SWEEP)
    privsweep = Command(capsys)
    asked = ["report", tmp_path / "theirs.toml", "--store", tmp_path / "store", "--out", tmp_path]
    assert privsweep(*asked, "--format", "md") == 0
    summary = (tmp_path / "theirs.md").read_text().partition("## Questions")[0]
    assert f" (imported and not recomputed, from the lookup table {version}) |" in summary
