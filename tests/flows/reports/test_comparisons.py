"""Comparison reports: equal settings only, the right numbers next to one another, and missing parts."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flows.answers.training.palette import LIGHT, NAMES
from flows.printing import rounded_down, rounded_up
from flows.reports.charts import color
from flows.reports.compare_audits import compare_audits
from flows.reports.compare_labels import compare_labels
from flows.reports.compare_membership import compare_membership
from flows.reports.compare_training import SCHEMES, compare_training
from flows.reports.comparison import Entry, side_by_side
from flows.reports.document import Block, Document, Heading, Paragraph, TextTable
from flows.reports.files import html
from flows.reports.plot import Form, Mark
from flows.reports.summary import summary_of_audits, summary_of_bags
from flows.spec.sweep import load
from privcore import Answer, Bracket, find, find_problem
from tests.flows.small_store import Command
from tests.storage.made_up import put, row, with_store

pytestmark = pytest.mark.sampled(2)


def publish(
    store: Path, problem: str, method: str, answers: Mapping[tuple[Any, ...], Answer], *names: str
) -> None:
    """Store answers of a method by the values of fields of these names."""
    kind = find_problem(problem)
    put(
        store,
        [
            row(kind.from_fields(dict(zip(names, values, strict=True))), answer, method=find(method)())
            for values, answer in answers.items()
        ],
    )


def marks(document: Document, name: str) -> list[Mark]:
    (plot,) = [plot for plot in document.plots if plot.name == name]
    return list(plot.marks)


def around(x: float) -> Answer:
    return Answer.enclosure(0.9 * x, 1.1 * x)


# ------------------------------------------------------------------------------------------- training


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Allocation and Poisson sampling at equal settings and at others, and no amplification; no shuffling."""
    store = tmp_path_factory.mktemp("training") / "store"
    grid = [(sigma, steps, 1e-5) for sigma in (1.0, 2.0, 3.0) for steps in (10, 100)]
    publish(
        store,
        "allocation-epsilon",
        "allocation.certified",
        {key: around(1 / key[0] / key[1]) for key in grid},
        *("sigma", "steps", "delta"),
    )
    rates = {
        (sigma, steps, rate, 1e-5): around(rate)
        for sigma, steps, _ in grid
        for rate in (1 / steps, 0.5, 0.37)
    }
    names = ("sigma", "steps", "sampling_probability", "delta")
    publish(store, "poisson-epsilon", "poisson.certified", rates, *names)
    plain = {(sigma, 1e-5): around(7 / sigma) for sigma in (1.0, 2.0)}
    publish(store, "unamplified-epsilon", "unamplified.exact", plain, "sigma", "delta")
    return store


def test_schemes_are_compared_at_equal_settings_alone(training: Path) -> None:
    found = marks(with_store(training, compare_training), "compare-training-sigma")
    assert {mark.setting for mark in found} == {"steps=10", "steps=100"}
    rates = {mark.bracket.upper for mark in found if mark.series == "Poisson"}
    assert rates == {1.1 / 10, 1.1 / 100}  # and not those with five uses of an example, or a broken number
    at = {(mark.series, mark.x, mark.setting): mark for mark in found}
    assert at["random allocation", 2.0, "steps=100"].bracket.upper == 1.1 / 2.0 / 100
    assert at["no amplification", 2.0, "steps=10"].bracket == at["no amplification", 2.0, "steps=100"].bracket
    assert ("no amplification", 3.0, "steps=10") not in at


def test_the_summary_of_a_comparison_is_one_setting_with_all_schemes(training: Path) -> None:
    document = with_store(training, compare_training)
    (lead,) = [block.text for block in document.blocks if isinstance(block, Paragraph) and block.lead]
    said = re.fullmatch(
        r"Epsilon is in (.*) with random allocation, in (.*) with Poisson, in (.*) with no "
        r"amplification, at sigma=(1|2) steps=(10|100) delta=1e-5\. This is proved\.",
        lead,
    )
    assert said is not None, lead
    sigma, steps = int(said[4]), int(said[5])
    for text, x in zip(said.groups()[:3], (1 / sigma / steps, 1 / steps, 7 / sigma), strict=True):
        assert text == f"[{rounded_down(0.9 * x)}, {rounded_up(1.1 * x)}]"


def test_a_sampler_has_its_colour_in_every_chart(training: Path) -> None:
    for plot in with_store(training, compare_training).plots:
        scale = color(plot).to_dict()["scale"]
        shades = dict(zip(scale["domain"], scale["range"], strict=True))
        assert shades == {NAMES[word]: LIGHT[word] for word in ("allocation", "poisson", "none")}


def test_both_sigma_and_steps_become_axes(training: Path) -> None:
    names = [plot.name for plot in with_store(training, compare_training).plots]
    assert names == ["compare-training-sigma", "compare-training-steps"]


@pytest.mark.thorough
def test_a_scheme_that_is_not_stored_is_said_with_sweeps_that_compute_it(
    training: Path, tmp_path: Path, privsweep: Command
) -> None:
    assert privsweep("report", "compare-training", "--store", training, "--out", tmp_path) == 1
    assert privsweep.err.startswith(
        "privsweep: The store has no answers for the sampler shuffled (shuffling-epsilon); to compute them: "
        "`privsweep run "
    )
    named = [word.split("`")[0] for word in privsweep.err.split("`privsweep run ")[1:]]
    assert named
    for name in named:
        assert SCHEMES["shuffled"] in {grid.problem.name for grid in load(name).grids}


# --------------------------------------------------------------------------------------------- labels


def test_bags_reveal_as_much_as_a_randomized_response_between_stored_epsilons(tmp_path: Path) -> None:
    store = tmp_path / "store"

    def reveals(epsilon: float) -> float:
        return 0.5 * math.tanh(epsilon / 2)

    response = {
        ("rr", "uniform", epsilon): Answer.enclosure(reveals(epsilon) - 1e-9, reveals(epsilon) + 1e-9)
        for epsilon in (0.25, 0.5, 1.0, 2.0, 4.0)
    }
    publish(store, "label-advantage", "labels.response", response, "mechanism", "prior", "label_epsilon")
    bags = {
        ("llp", "uniform", 2): Answer.enclosure(reveals(1.1), reveals(1.9)),
        ("llp", "uniform", 4): Answer.enclosure(reveals(0.4), reveals(0.6)),
        ("llp", "uniform", 64): Answer.enclosure(reveals(0.0), reveals(0.1)),
        ("llp", "uniform", 1): Answer.enclosure(0.49, 0.5),
        ("llp", "beta(2,30)", 4): Answer.enclosure(0.1, 0.2),  # without a response to compare with
    }
    publish(store, "label-advantage", "labels.cells", bags, "mechanism", "prior", "bag_size")
    drawn = {("llp", "uniform", 4): Answer.enclosure(reveals(0.51), reveals(0.52), confidence=0.99)}
    publish(store, "label-advantage", "labels.sampling", drawn, "mechanism", "prior", "bag_size")
    document = with_store(store, compare_labels)
    found = {(m.series, m.x): m for m in marks(document, "compare-labels-bag-size")}
    ends = {key: (mark.bracket.lower, mark.bracket.upper) for key, mark in found.items()}
    assert ends == {
        ("additive advantage", 1): (4.0, math.inf),
        ("additive advantage", 2): (1.0, 2.0),
        ("additive advantage", 4): (0.25, 1.0),
        ("additive advantage", 64): (0.0, 0.25),
        ("additive advantage, simulated", 4): (0.5, 1.0),
    }
    assert found["additive advantage, simulated", 4].form is Form.DOUBTFUL
    assert found["additive advantage", 1].form is Form.LEAST
    assert len(document.incomplete) == 1
    assert "label-ratio-quantile with mechanism=llp" in document.incomplete[0]


# --------------------------------------------------------------------------------------------- audits


def test_the_truth_beside_a_planned_audit_is_that_of_gaussian_noise(tmp_path: Path) -> None:
    store = tmp_path / "store"
    planned = {(1000, guesses, 1.0, 1e-5): Answer.enclosure(1.0, 1.5) for guesses in (20, 100)}
    names = ("canaries", "guesses", "mu", "delta")
    publish(store, "audit-planned-epsilon", "auditing.planned", planned, *names)
    fields = ("canaries", "sigma", "steps", "sampling_probability", "delta", "guesses", "bug")
    refuted = {
        (canaries, 2.5, 500, 0.1, 1e-5, 100, bug): Answer.at_least(1.0 + (bug != "none"), confidence=0.95)
        for canaries in (1000, 5000)
        for bug in ("none", "noise-halved")
    }
    publish(store, "audit-training", "auditing.trained", refuted, *fields)
    claim = {(2.5, 500, 0.1, 1e-5): Answer.enclosure(1.9, 1.95)}
    names = ("sigma", "steps", "sampling_probability", "delta")
    publish(store, "poisson-epsilon", "poisson.certified", claim, *names)
    document = with_store(store, compare_audits)
    true = [m for m in marks(document, "compare-audits-planned-guesses") if m.series == "true epsilon"]
    assert len(true) == 2
    for mark in true:
        assert _gaussian_delta(mark.bracket.upper) < 1e-5 < _gaussian_delta(mark.bracket.lower)
        assert mark.bracket.upper < 1.001 * mark.bracket.lower
    trained = {(m.series, m.x): m for m in marks(document, "compare-audits-training-canaries")}
    assert trained["claimed", 1000].bracket.upper == 1.95
    assert trained["refuted, noise-halved", 5000].bracket.lower == 2.0
    assert trained["refuted, no bug", 1000].more == {"guesses": 100, "audit_confidence": 0.95}
    assert trained["refuted, no bug", 5000].form is Form.DOUBTFUL_LEAST
    assert document.incomplete == []


@pytest.mark.parametrize("mu", [1e-9, 1e-6])
def test_an_audit_of_more_noise_than_can_be_asked_for_has_a_bracket_all_the_same(
    mu: float, tmp_path: Path
) -> None:
    planned = {(1000, guesses, mu, 1e-5): Answer.enclosure(0.0, 0.1) for guesses in (20, 100)}
    names = ("canaries", "guesses", "mu", "delta")
    publish(tmp_path, "audit-planned-epsilon", "auditing.planned", planned, *names)
    entries = with_store(tmp_path, compare_audits)
    (table,) = [
        block for block in entries.blocks if isinstance(block, TextTable) and "Epsilon in" in block.title
    ]
    at = table.names.index("true epsilon, lower")
    assert {tuple(row[at : at + 2]) for row in table.rows} == {("0", "0")}


def _gaussian_delta(epsilon: float) -> float:
    """Delta of 1-GDP, by the closed form of Balle and Wang."""
    return 0.5 * (
        math.erfc((epsilon - 0.5) / math.sqrt(2.0))
        - math.exp(epsilon) * math.erfc((epsilon + 0.5) / math.sqrt(2.0))
    )


# ----------------------------------------------------------------------------------------- membership


def test_all_methods_on_one_problem_are_intervals_of_one_setting(tmp_path: Path) -> None:
    store = tmp_path / "store"
    names = ("law", "records")
    publish(
        store,
        "membership-advantage",
        "membership.exact",
        {("uniform(2)", 10): Answer.enclosure(0.1, 0.11), ("uniform(3)", 10): Answer.enclosure(0.2, 0.21)},
        *names,
    )
    wide = {("uniform(2)", 10): Answer.enclosure(0.0, 0.3), ("uniform(4)", 10): Answer.enclosure(0.0, 0.3)}
    publish(store, "membership-advantage", "membership.schwarz", wide, *names)
    guess = {("uniform(2)", 10): Answer.about(0.105, detail="for many records")}
    publish(store, "membership-advantage", "membership.asymptotic", guess, *names)
    document = with_store(store, compare_membership)
    found = {mark.x: mark for mark in marks(document, "compare-membership-advantage")}
    assert set(found) == {"membership.exact", "membership.schwarz", "membership.asymptotic"}
    assert {mark.setting for mark in found.values()} == {""}  # one method alone gives no comparison
    assert found["membership.exact"].series == "proved"
    assert found["membership.asymptotic"].series == "no proof"
    assert found["membership.schwarz"].form is Form.MOST


def test_two_numbers_of_a_scheme_at_one_setting_are_two_rows() -> None:
    entries = [
        Entry(
            scheme=scheme,
            fields={"canaries": canaries},
            bracket=Bracket(lower=1.0, upper=upper, lower_by="m", upper_by="m"),
            more={"guesses": guesses},
        )
        for canaries in (10, 20)
        for scheme, upper, guesses in (("a", 2.0, 4), ("a", 3.0, 8), ("b", 4.0, 8))
    ]
    (table,) = [block for block in side_by_side("x", "epsilon", entries, ()) if isinstance(block, TextTable)]
    assert list(table.names) == ["canaries", "guesses", "a, lower", "a, upper", "b, lower", "b, upper"]
    assert list(table.rows) == [
        ["10", "4", "1", "2", "", ""],
        ["10", "8", "1", "3", "1", "4"],
        ["20", "4", "1", "2", "", ""],
        ["20", "8", "1", "3", "1", "4"],
    ]


# ------------------------------------------------------------------------------------------- summaries


def entry(scheme: str, lower: float, upper: float, *, confidence: float = 1.0, **fields: Any) -> Entry:
    bracket = Bracket(lower=lower, upper=upper, confidence=confidence, lower_by="m", upper_by="m")
    return Entry(scheme=scheme, fields=fields, bracket=bracket)


def paragraphs(blocks: Iterable[Block]) -> list[str]:
    """The texts of paragraphs; a star marks the most important sentence."""
    return [f"{'*' * block.lead}{block.text}" for block in blocks if isinstance(block, Paragraph)]


def test_the_summary_of_bags_is_one_bag_size_by_each_measure() -> None:
    kind = find_problem("label-advantage")
    name = "additive advantage"
    entries = [entry(name, 1 / size, 1.4 / size, prior="uniform", bag_size=size) for size in (2, 4, 8)]
    entries += [entry(f"{name}, simulated", 0.25, 0.5, confidence=0.99, prior="uniform", bag_size=4)]
    lead, meaning, assumption = paragraphs(summary_of_bags(kind, entries))
    response = "*A bag of 4 labels reveals as much as randomized response whose epsilon is in [0.25, 0.35]"
    assert lead == f"{response}, at prior=uniform. This is proved."
    assert (
        "By the additive advantage, simulated, this epsilon is in [0.25, 0.5] with confidence 0.99."
        in meaning
    )
    assert "wrong with probability 1 / (1 + e^epsilon)" in meaning
    assert "the prior describes the data" in assumption
    of_file = entry(name, 0.25, 0.35, prior=f"column(/data/v.csv,v,sha256:{'0' * 64})", bag_size=4)
    assert (
        "This is proved for the values of the file alone." in paragraphs(summary_of_bags(kind, [of_file]))[0]
    )
    unknown = [entry(name, 0.0, math.inf, prior="uniform", bag_size=1)]
    assert paragraphs(summary_of_bags(kind, unknown)) == []


def test_the_summary_of_audits_names_refuted_and_true_epsilon_of_one_setting() -> None:
    planned = [entry("refuted, any mechanism", g, 2 * g, canaries=9, guesses=g) for g in (2, 4, 8)]
    planned += [entry("true epsilon", 8.0, 8.5, canaries=9, guesses=g) for g in (2, 4, 8)]
    trained = [
        entry("refuted, no bug", 1.0, math.inf, confidence=0.95, sigma=2.0),
        entry("refuted, noise-halved", 3.0, math.inf, confidence=0.95, sigma=2.0),
        entry("claimed", 2.0, 2.5, sigma=2.0),
    ]
    kinds = (find_problem("audit-planned-epsilon"), find_problem("audit-training"))
    known = {"a planned audit": (kinds[0], planned), "an audit of a training": (kinds[1], trained)}
    first, second, meaning, assumption = paragraphs(summary_of_audits(known))
    assert first == (
        "*The epsilon that a planned audit refutes is in [4, 8] (any mechanism); the true epsilon is in "
        "[8, 8.5], at canaries=9 guesses=4. This is proved."
    )
    assert second == (
        "The epsilon that an audit of a training refutes is at least 1 with confidence 0.95 (no bug) and at "
        "least 3 with confidence 0.95 (noise-halved); the claimed epsilon is in [2, 2.5], at sigma=2."
    )
    assert "a lower bound of the true epsilon" in meaning
    assert "independent fair coins" in assumption
    alone = summary_of_audits({"a planned audit": (kinds[0], []), "an audit": (kinds[1], trained)})
    assert paragraphs(alone)[0].startswith("*The epsilon that an audit refutes is at least 1")


def test_audits_with_other_guesses_are_not_mixed_in_a_sentence() -> None:
    audits = [
        replace(
            entry(f"refuted, {bug}", lower, math.inf, confidence=0.95, sigma=2.0), more={"guesses": guesses}
        )
        for bug, guesses, lower in (("no bug", 10, 1.0), ("noise-halved", 20, 3.0))
    ]
    (first, *_) = paragraphs(summary_of_audits({"an audit": (find_problem("audit-training"), audits)}))
    one = "*The epsilon that an audit refutes is at least 1 with confidence 0.95 (no bug)"
    assert first == f"{one}, at sigma=2 guesses=10."


@pytest.mark.thorough
def test_comparisons_begin_with_their_summary(tmp_path: Path) -> None:
    labels, audits, members = tmp_path / "labels", tmp_path / "audits", tmp_path / "members"
    response = {("rr", "uniform", e): Answer.enclosure(0.1 * e, 0.1 * e + 1e-9) for e in (1.0, 2.0, 4.0)}
    publish(labels, "label-advantage", "labels.response", response, "mechanism", "prior", "label_epsilon")
    bags = {("llp", "uniform", size): Answer.enclosure(0.15, 0.16) for size in (2, 4)}
    publish(labels, "label-advantage", "labels.cells", bags, "mechanism", "prior", "bag_size")
    planned = {(1000, guesses, 1.0, 1e-5): Answer.enclosure(1.0, 1.5) for guesses in (20, 100)}
    names = ("canaries", "guesses", "mu", "delta")
    publish(audits, "audit-planned-epsilon", "auditing.planned", planned, *names)
    for method, lower, upper in (("exact", 0.125, 0.5), ("schwarz", 0.0, 0.75), ("corollary", 0.1, 0.25)):
        answer = {("uniform(2)", 10): Answer.enclosure(lower, upper)}
        publish(members, "membership-advantage", f"membership.{method}", answer, "law", "records")
    bag = "*A bag of 2 labels reveals as much as randomized response whose epsilon is in [1, 2]"
    audit = "*The epsilon that a planned audit refutes is in [1, 1.5] (any mechanism)"
    member = "*Advantage is in [0.125, 0.25] for membership-advantage at law=uniform(2)"
    for store, compare, sentence in (
        (labels, compare_labels, bag),
        (audits, compare_audits, audit),
        (members, compare_membership, member),
    ):
        document = with_store(store, compare)
        assert document.blocks[1] == Heading(text="Summary")
        said = paragraphs(document.blocks)
        assert said[0].startswith(sentence), said[0]
        assert any(text.startswith("The assumption that matters most: ") for text in said)


def test_contradicting_bounds_are_not_in_the_summary_of_membership(tmp_path: Path) -> None:
    for method, lower, upper in (("exact", 0.2, 0.3), ("schwarz", 0.0, 0.1)):
        answer = {("uniform(2)", 10): Answer.enclosure(lower, upper)}
        publish(tmp_path, "membership-advantage", f"membership.{method}", answer, "law", "records")
    document = with_store(tmp_path, compare_membership)
    assert Heading(text="Summary") not in document.blocks


def test_a_shared_confidence_and_upper_ends_without_any_bound_have_no_cells() -> None:
    entries = [
        *(entry("audit", k, math.inf, confidence=0.95, guesses=k) for k in (1, 2)),
        *(entry("simulated", k, k + 1, confidence=1 - 0.1 * k, guesses=k) for k in (1, 2)),
    ]
    (table,) = [block for block in side_by_side("x", "epsilon", entries, ()) if isinstance(block, TextTable)]
    assert table.title == "Epsilon in 2 settings"
    assert list(table.names) == [
        "guesses",
        "audit (confidence 0.95), lower",
        "simulated, lower",
        "simulated, upper",
    ]
    assert list(table.rows) == [
        ["1", "1", "1 (confidence 0.9)", "2 (confidence 0.9)"],
        ["2", "2", "2 (confidence 0.8)", "3 (confidence 0.8)"],
    ]


def test_columns_of_long_texts_are_wide_enough_to_read() -> None:
    table = TextTable(title="t", names=["method", "reference"], rows=[["a", "A theorem " * 8]])
    written = html(Document(name="d", blocks=[Heading(text="d", level=1), table]))
    assert '<td>a</td><td class="long">' in written
    assert re.search(r"td\.long { min-width: \d+rem; }", written)
