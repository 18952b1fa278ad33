"""Reports for people who decide: a summary on top, rates of paired fields, and numbers as people write."""

import random
import re
from decimal import Decimal, localcontext

import pytest

from flows.answers.sweep_table import Line
from flows.printing import rounded_down, rounded_up
from flows.reports import charts
from flows.reports.charts import data
from flows.reports.document import Document, Heading, Paragraph, TextTable
from flows.reports.files import html, markdown
from flows.reports.plot import Ends, Mark, Plot
from flows.reports.summary import coin, summary
from flows.reports.sweep_report import sweep_charts, sweep_report
from flows.spec.sweep import parse
from privcore import Answer, Bracket, Problem, find, find_problem
from storage import open_store
from tests.storage.made_up import put, row

pytestmark = pytest.mark.sampled(3)

SIGMAS, STEPS, RATES = (0.5, 1.0, 2.0), (100, 1000, 10000), (0.01, 0.001, 0.0001)
PAIRED = """
name = "paired"
title = "Steps paired with rates"

[[grid]]
problem = "poisson-epsilon"
methods = ["poisson.certified"]

[grid.product]
sigma = [0.5, 1, 2]
delta = [1e-5]

[grid.zip]
steps = [100, 1000, 10000]
sampling_probability = [0.01, 0.001, 0.0001]
"""


def poisson(sigma: float, steps: int, rate: float) -> Problem:
    fields = {"sigma": sigma, "steps": steps, "sampling_probability": rate, "delta": 1e-5}
    return find_problem("poisson-epsilon").from_fields(fields)


def line(problem: Problem, lower: float, upper: float) -> Line:
    return Line(problem=problem, bracket=Bracket(lower=lower, upper=upper, lower_by="m", upper_by="m"))


PROBLEMS = [poisson(sigma, *pair) for sigma in SIGMAS for pair in zip(STEPS, RATES, strict=True)]
LINES = [line(problem, 1 / (3 * k), 1 / (2.7 * k)) for k, problem in enumerate(PROBLEMS, 1)]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Document:
    """The report of a sweep with paired fields."""
    folder = tmp_path_factory.mktemp("paired")
    method = find("poisson.certified")()
    answers = [(each.problem, Answer.enclosure(each.bracket.lower, each.bracket.upper)) for each in LINES]
    put(folder / "store", [row(problem, answer, method=method) for problem, answer in answers])
    with open_store(folder / "store") as store:
        return sweep_report(parse(PAIRED.encode(), "paired.toml"), store)


def words(report: Document) -> str:
    """The text of a report in Markdown."""
    return markdown(report, {}).replace("\\", "")


def test_the_summary_is_the_top_of_a_report(report: Document) -> None:
    typical = next(each for each in LINES if each.problem == poisson(1.0, 1000, 0.001))
    lower, upper = rounded_down(typical.bracket.lower), rounded_up(typical.bracket.upper)
    headline = f"**Epsilon is in [{lower}, {upper}] for poisson-epsilon at sigma=1 steps=1000"
    parts = [
        "# Steps paired with rates",
        "## Summary",
        headline,
        "This is proved.**",
        "Epsilon bounds how much",
    ]
    parts += [
        "an attacker with all results",
        "The assumption that matters most",
        "## Questions",
        "## Outcome",
    ]
    places = [words(report).index(part) for part in parts]
    assert places == sorted(places)
    assert f"{rounded_down(1 / 24.3)} to {rounded_up(1 / 2.7)}" in words(report)
    (lead,) = [block for block in report.blocks if isinstance(block, Paragraph) and block.lead]
    small = Document(name="a", blocks=[Heading(text="a", level=1), lead])
    assert '<p class="lead">Epsilon is in' in html(small)
    assert " adjacency=add-remove. This is proved" in lead.text, "the relation is named, also the usual one"


def test_paired_fields_are_named_in_the_questions_and_in_the_legend(report: Document) -> None:
    pairs = "steps with sampling_probability: 100 with 0.01, 1000 with 0.001, 10000 with 0.0001"
    assert pairs in words(report)
    assert "together" not in words(report)
    (plot,) = report.plots
    color = charts.spec(plot)["layer"][0]["encoding"]["color"]
    assert color["title"] == "steps, sampling_probability"
    assert color["scale"]["domain"] == ["100, 0.01", "1000, 0.001", "10000, 0.0001"]
    assert {datum["s"] for datum in data(plot, Ends(plot))} == set(color["scale"]["domain"])


def test_a_field_that_changes_with_the_axis_or_the_menu_is_named_too() -> None:
    kind = find_problem("poisson-epsilon")
    along = [line(poisson(1.0, *pair), 1.0, 2.0) for pair in zip(STEPS, RATES, strict=True)]
    (plot,) = sweep_charts("s", kind, along, [])
    assert (plot.x_name, plot.series_name, plot.labels) == ("steps", "", {})
    assert plot.notes == [
        "sampling_probability changes with steps: 0.01 at 100, 0.001 at 1000, 0.0001 at 10000.",
        "All points have sigma=1 delta=1e-5 epochs=1 adjacency=add-remove.",
    ]
    deltas = [1e-9, 1e-8, 1e-7, 1e-6, 1e-5]
    many = [
        line(find_problem("poisson-epsilon").from_fields({**each.problem.as_fields(), "delta": d}), 1.0, 2.0)
        for each in LINES
        for d in deltas
    ]
    (plot,) = sweep_charts("s", kind, many, [])
    assert plot.x_name == "delta"
    assert {plot.label(mark.series) for mark in plot.marks} == {"0.5", "1", "2"}
    assert plot.settings[0] == "steps=100 sampling_probability=0.01"


def test_no_attacker_is_more_often_right_than_the_summary_says() -> None:
    drawn = random.Random(4)
    for _ in range(300):
        epsilon, delta = (
            drawn.choice([0.0, 1e-9, drawn.random(), drawn.uniform(0, 7)]),
            10 ** -drawn.uniform(2, 12),
        )
        problem = find_problem("unamplified-epsilon").from_fields({"sigma": 1.0, "delta": delta})
        found = re.search(r"at most ([0-9.]+) %", coin(line(problem, 0.0, epsilon)))
        with localcontext() as context:
            context.prec = 60
            power = Decimal(epsilon).exp()
            right = 100 * (power + Decimal(delta)) / (power + 1)
        if found is None:
            assert right > Decimal("99.9")
            continue
        assert 0 <= Decimal(found[1]) - right <= Decimal("0.1")


def test_the_summary_says_nothing_that_it_has_no_proof_for() -> None:
    assert list(summary([Line(problem=PROBLEMS[0])])) == []
    least = line(PROBLEMS[0], 1.0, float("inf"))
    assert coin(least) == ""
    one_way = find_problem("poisson-epsilon").from_fields({**PROBLEMS[0].as_fields(), "adjacency": "remove"})
    assert coin(line(one_way, 0.1, 0.2)) == ""


@pytest.mark.parametrize(
    ("name", "fields", "sentence"),
    [
        (
            "label-advantage",
            {"mechanism": "rr", "prior": "uniform", "label_epsilon": 1.0},
            "the prior describes",
        ),
        ("unamplified-epsilon", {"sigma": 1.0, "delta": 1e-5}, "clipped to a fixed norm"),
        (
            "audit-epsilon",
            {"canaries": 9, "guesses": 5, "correct": 5, "delta": 1e-5},
            "independent fair coins",
        ),
        ("membership-advantage", {"law": "uniform(2)", "records": 5}, "independent draws"),
    ],
)
def test_every_topic_has_its_own_assumption(name: str, fields: dict[str, object], sentence: str) -> None:
    blocks = list(summary([line(find_problem(name).from_fields(fields), 0.1, 0.2)]))
    assert isinstance(blocks[0], Heading)
    assert isinstance(blocks[-1], TextTable)
    said = [block.text for block in blocks if isinstance(block, Paragraph)]
    assert sentence in said[-1]
    assert f"for {name} at " in said[0]


def test_ticks_are_written_as_people_write_numbers() -> None:
    marks = [
        Mark(x=x, series="a", bracket=Bracket(lower=y, upper=y, lower_by="m", upper_by="m"))
        for x, y in ((1e-7, 1.0), (1e-5, 100.0), (1e-3, 10000.0), (1e-1, 1e7))
    ]
    plot = Plot(name="c", title="t", x_name="x", y_name="y", series_name="", marks=marks)
    ticks = set(re.findall(r">([0-9.,e+-]+)</text>", charts.drawn(plot, "svg", plot.settings[0]).decode()))
    assert {"1e-6", "1e-5", "0.001", "0.1", "10", "10,000", "1e6"} <= ticks
    assert not {tick for tick in ticks if "+" in tick or tick.startswith("0.0000")}
