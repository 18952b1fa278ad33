"""`privsweep labels`: bags compared with randomized response; and its errors."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from flows.answers.label_quantity import read_proof
from flows.answers.label_text import paragraphs
from flows.answers.labels import Equal, LabelComparison, contents_of, equal_bag_size, equal_epsilon
from privcore import Bracket, evaluate
from privsweep import ask
from tests.flows.small_store import Command


def content(privsweep: Command, *words: str) -> Any:
    return privsweep.told("labels", *words)


@pytest.mark.thorough
def test_both_mechanisms_stand_side_by_side(privsweep: Command) -> None:
    shown = content(privsweep, "--bag-size", "3", "--prior", "uniform", "--versus-rr", "1")
    assert shown["bags"]["advantage"]["value"] == pytest.approx(0.119604401, abs=1e-9)
    assert shown["rr"]["advantage"]["value"] == pytest.approx(math.tanh(0.5) ** 2 / 4, rel=1e-12)
    assert shown["rr"]["log_ratio"] == {"lower": 1.0, "upper": 1.0, "value": 1.0, "confidence": 1.0}
    assert shown["bags"]["infinite"]["value"] == pytest.approx(0.25)
    assert shown["blind_accuracy"]["value"] == pytest.approx(0.75)


def test_equal_means_equal_in_both_directions() -> None:
    comparison = LabelComparison(prior="point(0.4)")
    epsilon = equal_epsilon(comparison, "advantage", 12)
    assert epsilon.value is not None
    response = comparison.response("advantage", epsilon.value)
    assert response.value == pytest.approx(comparison.bags("advantage", 12).value, rel=1e-6)
    bags = equal_bag_size(comparison, "advantage", epsilon.value * 0.999)
    # At a little less epsilon it takes more than 12: and bags of 13 reveal as much as those of 12.
    assert bags.value == bags.bracket.upper == bags.bracket.lower == 14


def test_the_bag_size_is_the_least_that_reveals_no_more() -> None:
    comparison = LabelComparison(prior="two-point(0.1,0.6,0.3)")
    for quantity in ("advantage", "log_ratio"):
        found = equal_bag_size(comparison, quantity, 1.0)
        assert found.value is not None
        target = comparison.response(quantity, 1.0).value
        assert comparison.bags(quantity, int(found.value)).bracket.upper <= target
        assert comparison.bags(quantity, int(found.value) - 1).bracket.lower > target


@pytest.mark.parametrize(
    ("eta", "level", "epsilon", "least", "larger"),
    [(0.05, 0.98, 1.0, 148, (174, 178)), (0.5, 0.98, 0.3, 237, (243, 254)), (0.2, 0.5, 0.3, 12, (39,))],
)
def test_the_least_bag_size_of_a_quantile_is_exact_although_larger_bags_reveal_more(
    eta: float, level: float, epsilon: float, least: int, larger: tuple[int, ...]
) -> None:
    """Quantiles of bags of equal members, from the binomial distribution with `scipy.stats`."""

    def quantile(size: int) -> float:
        sums = np.arange(size + 1)
        others = binom(size - 1, eta)
        with np.errstate(divide="ignore"):
            ratios = np.abs(others.logpmf(sums - 1) - others.logpmf(sums))
        order = np.argsort(ratios)
        place = np.searchsorted(np.cumsum(binom(size, eta).pmf(sums[order])), level)
        return float(ratios[order][place])

    found = equal_bag_size(LabelComparison(prior=f"point({eta})", level=level), "log_ratio", epsilon)
    assert found == Equal(value=least, bracket=Bracket(lower=least, upper=least))
    assert min(quantile(size) for size in range(2, least)) > epsilon >= quantile(least)
    assert min(quantile(size) for size in larger) > epsilon


def test_the_first_paragraphs_do_not_wait_for_the_searches() -> None:
    grown = contents_of(LabelComparison(prior="two-point(0.1,0.6,0.3)"), 3, 0.5)
    shown = [paragraphs(content) for content in grown]
    assert [len(parts) for parts in shown] == [2, 3, 4]
    assert shown[2][:2] == shown[1][:2] == shown[0]


def test_a_proof_counts_only_if_its_bracket_is_narrow_enough() -> None:
    problem = LabelComparison(prior="two-point(0.1,0.6,0.3)").problem(
        "advantage", mechanism="llp", bag_size=4
    )
    proved = read_proof(problem, lambda bracket: bracket.upper < 0.5, evaluate)
    assert proved is not None
    assert proved.bracket.confidence == 1.0
    assert read_proof(problem, lambda bracket: bracket.lower > 0.5, evaluate) is None


def test_where_no_bag_reveals_as_little_it_says_so(privsweep: Command) -> None:
    assert privsweep("labels", "--prior", "0.3", "--versus-rr", "0.25") == 0
    assert "none up to 4096" in privsweep.out


def test_where_labels_are_revealed_for_certain_no_epsilon_is_enough(
    privsweep: Command,
) -> None:
    shown = content(privsweep, "--bag-size", "4", "--prior", "0.1")
    assert shown["bags"]["log_ratio"]["value"] == "inf"
    assert shown["equal_epsilon"]["log_ratio"]["value"] == "inf"
    assert 0.0 < shown["equal_epsilon"]["advantage"]["value"] < 10.0


def test_the_table_says_what_bits_are(privsweep: Command) -> None:
    assert privsweep("labels", "--bag-size", "2", "--prior", "0.5", "--versus-rr", "1") == 0
    assert "bits are log2 of the ratio" in privsweep.out
    assert "1.4427" in privsweep.out  # 1 nat


def test_a_column_of_a_file_is_a_prior(privsweep: Command, tmp_path: Path) -> None:
    column = tmp_path / "scores.csv"
    column.write_text("eta\n0.1\n0.3\n0.3\n0.3\n")
    words = ["--bag-size", "4", "--prior", f"column({column},eta)"]
    shown = content(privsweep, *words, "--draw", "with-replacement")
    same = content(privsweep, "--bag-size", "4", "--prior", "two-point(0.1,0.3,0.75)")
    assert shown["bags"]["advantage"]["value"] == pytest.approx(same["bags"]["advantage"]["value"])
    whole = ask("label-bag-advantage", bag="0.1,0.3,0.3,0.3", mechanism="llp")
    cut = content(privsweep, *words)
    assert (shown["draw"], cut["draw"]) == ("with-replacement", "partition")
    assert cut["bags"]["advantage"]["value"] == pytest.approx(whole.upper)


def test_a_search_for_a_bag_size_ends_at_the_rows_of_the_file(privsweep: Command, tmp_path: Path) -> None:
    column = tmp_path / "scores.csv"
    column.write_text("eta\n0.1\n0.3\n0.3\n0.3\n0.5\n")
    words = ["labels", "--prior", f"column({column},eta)", "--versus-rr"]
    assert privsweep(*words, "0.01") == 0
    assert "none up to 5" in privsweep.out
    assert privsweep(*words, "1", "--bag-size", "6") == 2
    assert "at most 5 examples, the number of rows of the file" in privsweep.err


def test_an_accuracy_is_that_of_a_blind_guess_plus_the_advantage(privsweep: Command) -> None:
    for prior, size in (("beta(2,30)", "60"), ("uniform", "24")):
        shown = content(privsweep, "--bag-size", size, "--prior", prior)
        advantage, accuracy = shown["bags"]["advantage"], shown["bags"]["accuracy"]
        blind = shown["blind_accuracy"]["value"]
        for end in ("certain_lower", "certain_upper"):
            assert accuracy[end] == pytest.approx(blind + advantage[end], abs=1e-9)
        assert 0.0 < advantage["certain_upper"] < 0.5


def test_a_file_with_nan_or_text_is_refused(privsweep: Command, tmp_path: Path) -> None:
    column = tmp_path / "scores.csv"
    for text, sentence in (
        ("eta\n0.1\nnan\n", "row 2 has no value"),
        ("eta\n0.1\n1.5\n", "got 1.5 in row 2"),
        ("eta\nx\ny\n", "Expected probabilities in the column eta of"),
        ("eta\n", "Expected 1 to 100000000 rows"),
        ("p\n0.1\n", "Expected a column named eta"),
    ):
        column.write_text(text)
        assert privsweep("labels", "--bag-size", "2", "--prior", f"column({column},eta)") == 2
        assert sentence in privsweep.err


@pytest.mark.thorough
def test_a_simulated_quantity_stands_beside_what_is_proved(privsweep: Command) -> None:
    words = ["--bag-size", "24", "--prior", "uniform"]
    shown = content(privsweep, *words)["bags"]["advantage"]
    assert shown["certain_lower"] <= shown["lower"] <= shown["upper"] <= shown["certain_upper"]
    assert privsweep("labels", *words) == 0
    assert "; certain " in privsweep.out


def test_ends_that_prove_nothing_are_not_printed() -> None:
    reading = {"lower": 0.2, "upper": 0.3, "value": 0.25, "confidence": 0.999, "certain_lower": 0.0}
    content = {
        "prior": "uniform",
        "draw": "with-replacement",
        "mechanism": "llp",
        "label_epsilon": math.inf,
        "level": 0.98,
        "assumed": "",
        "bag_size": 8,
        "blind_accuracy": reading | {"certain_upper": 1.0},
    }
    largest = {"advantage": 0.5, "accuracy": 1.0, "log_ratio": math.inf, "infinite": 1.0}
    nothing = content | {"bags": {row: reading | {"certain_upper": most} for row, most in largest.items()}}
    assert "certain 0" not in "".join(paragraphs(nothing))
    some = content | {"bags": {row: reading | {"certain_upper": 0.4} for row in largest}}
    assert "\n".join(paragraphs(some)).count("; certain 0 to 0.4") == 4


def test_all_simulations_of_a_search_for_a_bag_size_hold_together_with_its_confidence() -> None:
    comparison = LabelComparison(prior="uniform")
    found = equal_bag_size(comparison, "log_ratio", 0.5)
    simulated = [each.bracket for each in comparison.known.values() if each.bracket.confidence < 1.0]
    assert found.bracket.confidence == 0.999
    revealed = [comparison.bags("infinite", size).bracket for size in (1, int(found.bracket.lower) - 1)]
    assert min(bracket.lower for bracket in revealed) > 0.02, "smaller bags have an infinite quantile"
    assert len(simulated) > 3
    assert sum(1.0 - bracket.confidence for bracket in simulated) <= 0.001


def test_python_gives_the_narrower_bracket_of_a_simulation_next_to_the_proved_one() -> None:
    found = ask("label-advantage", prior="uniform", mechanism="llp", bag_size=64)
    assert found.likely is not None
    assert found.confidence == 1.0 > found.likely.confidence
    assert found.lower < found.likely.lower <= found.likely.upper < found.upper
    assert f"with confidence {found.likely.confidence}" in str(found)
    assert ask("label-advantage", prior="point(0.5)", mechanism="llp", bag_size=8).likely is None


def test_a_quantile_is_certainly_infinite_if_enough_labels_are_revealed_for_certain() -> None:
    found = LabelComparison(prior="beta(2,30)").bags("log_ratio", 5)
    assert (found.bracket.lower, found.bracket.confidence, found.certain) == (math.inf, 1.0, None)
