"""Imported brackets that contradict others are listed, and no table or summary takes them for answers."""

import re
from pathlib import Path
from typing import Any

import pytest

from privcore import Answer, Point, evaluate, find, find_problem
from storage import Row
from tests.flows.reports.made_up_labels import ADVANTAGE, RELEASED, RESPONDED
from tests.flows.small_store import Command
from tests.storage.made_up import claimed, epsilon, imported, put, put_each, row

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


@pytest.fixture(scope="module")
def against(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with a store whose own row an imported one contradicts, and the version of its table."""
    folder = tmp_path_factory.mktemp("against")
    problem = find_problem("allocation-epsilon").from_fields({"sigma": 1.0, "steps": 1000, "delta": 1e-5})
    certified, analytic = (find(f"allocation.{name}")() for name in ("certified", "analytic"))
    put(folder / "store", row(problem, evaluate(Point(problem=problem, method=certified)), method=certified))
    table = imported(folder / "store", row(problem, Answer.at_most(0.05), method=analytic))
    (folder / "both.toml").write_text(BOTH)
    return folder, table.version


def test_verify_names_an_imported_row_that_contradicts_another_and_recomputes_all_rows(
    privsweep: Command, against: tuple[Path, str]
) -> None:
    folder, version = against
    assert privsweep("verify", "--store", folder / "store", "--recompute", "all") == 1
    assert f"(imported from the table {version}); `privsweep table remove {version}`" in privsweep.out
    assert "not sound; answers contradict one another" in privsweep.out
    assert "2 brackets recomputed: 1 have the same bits" in privsweep.out


def test_the_table_of_a_sweep_and_its_report_take_no_contradiction_for_an_answer(
    privsweep: Command, against: tuple[Path, str]
) -> None:
    folder, version = against
    asked = [folder / "both.toml", "--store", folder / "store"]
    assert privsweep("lookup", *asked) == 2
    assert f"`privsweep table remove {version}` takes that import back" in privsweep.err
    assert privsweep("lookup", *asked, "--json") == 2
    assert [each["status"] for each in privsweep.json["problems"]] == ["conflict"]
    assert privsweep("report", *asked, "--out", folder / "out", "--format", "md") == 1
    (report,) = (folder / "out").glob("*.md")
    assert "0.050" not in report.read_text().partition("## Questions")[0]
    text = re.sub(r"\s+", " ", report.read_text().split("## Contradictions")[1].split("## ")[0])
    assert f"imported and not recomputed, from the lookup table {version}" in text
    assert f"privsweep table remove {version}" in text
    assert "proved" not in text
    assert "report this as a bug" not in text


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
    privsweep: Command, tmp_path: Path, report: str, own: list[Row], other: Row
) -> None:
    put_each(tmp_path / "store", own)
    version = imported(tmp_path / "store", other).version
    asked = ["report", report, "--store", tmp_path / "store", "--out", tmp_path / "out", "--format", "md"]
    assert privsweep(*asked) == 1
    assert f"1 contradiction between methods; `privsweep table remove {version}` takes that import back." in (
        privsweep.err
    )
    (file,) = (tmp_path / "out").glob("*.md")
    head, contradictions = file.read_text().split("## Contradictions")
    assert f"`privsweep table remove {version}`" in contradictions
    assert "0.100001" not in head.partition("## How ")[0]


def test_a_comparison_of_labels_leaves_out_contradicted_quantiles(privsweep: Command, tmp_path: Path) -> None:
    own, other = (
        claimed("label-ratio-quantile", f"labels.{method}", answer, **RELEASED, level=0.9)
        for method, answer in (
            ("composition", Answer.enclosure(5.0, 6.0)),
            ("likelihood", Answer.at_most(2.0)),
        )
    )
    put_each(tmp_path / "store", [*RESPONDED, ADVANTAGE, own])
    imported(tmp_path / "store", other)
    asked = ["report", "compare-labels", "--store", tmp_path / "store", "--out", tmp_path, "--format", "md"]
    assert privsweep(*asked) == 1
    head, _, contradictions = (
        (tmp_path / "compare-labels.md").read_text().replace("\\", "").partition("## Contradictions")
    )
    assert "[5, 6]" not in head
    assert "table remove" in contradictions


def test_a_comparison_of_contradicted_brackets_alone_is_a_list_of_contradictions(
    privsweep: Command, tmp_path: Path
) -> None:
    own = [
        claimed("allocation-epsilon", "allocation.certified", Answer.enclosure(0.85, 0.86), **GIVEN),
        row(epsilon(sigma=1.0, delta=1e-6), Answer.at_most(4.9)),
    ]
    other = claimed("allocation-epsilon", "allocation.combined", Answer.at_most(0.1), **GIVEN)
    put_each(tmp_path / "store", own)
    version = imported(tmp_path / "store", other).version
    asked = ["report", "compare-training", "--store", tmp_path / "store", "--out", tmp_path, "--format", "md"]
    assert privsweep(*asked) == 1
    assert f"`privsweep table remove {version}`" in (tmp_path / "compare-training.md").read_text()
    assert "answers for the sampler random allocation" not in privsweep.err
    assert "answers for the sampler no amplification" not in privsweep.err
    assert "answers for the sampler Poisson" in privsweep.err


def test_an_imported_advantage_of_randomized_response_that_falls_is_named_and_left_out(
    privsweep: Command, tmp_path: Path
) -> None:
    """No two rows are about one problem: only the growth in epsilon shows that one of them is false."""
    put_each(tmp_path / "store", [*RESPONDED, ADVANTAGE])
    response = {"mechanism": "rr", "prior": "point(0.3)", "label_epsilon": 0.1}
    false = claimed("label-advantage", "labels.response", Answer.enclosure(0.9, 0.91), **response)
    version = imported(tmp_path / "store", false).version
    asked = ["report", "compare-labels", "--store", tmp_path / "store", "--out", tmp_path, "--format", "md"]
    assert privsweep(*asked) == 1
    assert "at least 0.9 (labels.response, imported and not recomputed" in privsweep.err
    assert "at epsilon 0.1, but at most 0.11 (labels.response) at epsilon 1" in privsweep.err
    text = (tmp_path / "compare-labels.md").read_text()
    assert f"`privsweep table remove {version}` takes that import back" in text
    assert "additive advantage, lower" not in text
