"""Reference values for discrete records: rational enumeration, sums in many digits, and simulations.

Rows without a standard error are exact: a proved enclosure must be narrow and contain them to the printed
digits. Simulated rows agree within 4 standard errors. Other tests compare the rows about continuous records,
private learners and samples.
"""

import csv
import math
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq

from privcore import Answer
from privcore.distributions.record_notation import law
from privcore.membership.discrete.deviation import largest_constant, least_constant
from privcore.membership.discrete.diversity import LEAST, diversity
from privcore.membership.discrete.excess import excess
from privcore.membership.discrete.roc import attack_rates
from privcore.membership.discrete.worst_case import worst_advantage
from tests.privcore.membership.discrete.learners import Records, ask

DATA = Path(__file__).parents[2] / "data" / "membership.csv"
PRINTED = 1e-13
"""Relative error of values printed with 16 digits, and of decimal probabilities as doubles."""
WIDTH = 1e-10
"""Largest relative width of an exact answer."""
Row = dict[str, str]


def rows(beginning: str) -> list[Row]:
    with DATA.open(newline="") as file:
        found = [row for row in csv.DictReader(file) if row["quantity"].startswith(beginning)]
    assert found
    return found


def number(text: str) -> float:
    return float(Fraction(text))


GRAMMAR: dict[str, Callable[[str], str]] = {
    r"point mass \(K=1\)": lambda found: "uniform(1)",
    r"atoms .*": lambda found: f"mixed(0.3,atoms({4 / 7!r},{2 / 7!r},{1 / 7!r}))",
    r"p=\((.*)\)": lambda found: f"atoms({','.join(repr(number(word)) for word in found.split(','))})",
    r"uniform\(K=(\d+)\)": lambda found: f"uniform({found})",
    r"bernoulli\(p=(.*)\)": lambda found: f"bernoulli({number(found)!r})",
    r"geometric .*r=(.*)": lambda found: f"geometric({found})",
    r"zipf\(s=(.*),K=inf\)": lambda found: f"zipf({found})",
    r"zipf\(s=(.*\d)\)": lambda found: f"zipf({found.replace('K=', '')})",
}


def law_of(row: Row) -> str:
    """Return the distribution of a row in the grammar of the field `law`."""
    for pattern, text in GRAMMAR.items():
        if match := re.fullmatch(pattern, row["distribution"]):
            return text(match[match.lastindex or 0])
    raise AssertionError(row)


def encloses(answer: Answer | tuple[float, float], row: Row) -> bool:
    """Whether an answer contains a row, and is narrow if the row is exact."""
    lower, upper = (answer.lower, answer.upper) if isinstance(answer, Answer) else answer
    truth = float(row["value"])
    margin = 4.0 * float(row["std_error"]) if row["std_error"] else PRINTED * truth
    narrow = upper - lower <= WIDTH * truth + 1e-279
    return lower - margin <= truth <= upper + margin and narrow


def identity(row: Row) -> str:
    return f"{row['distribution']} {row['n']} {row['quantity']}"


@pytest.mark.parametrize("row", rows("max_A Delta"), ids=identity)
def test_the_worst_advantage_is_that_of_the_oracle(row: Row) -> None:
    odds = number(row["quantity"].partition("=")[2].rstrip(")"))
    fields = {"law": law_of(row), "records": int(row["n"]), "odds": odds}
    assert encloses(ask("membership-advantage", "membership.exact", **fields), row)
    for method in ("membership.deviation", "membership.enumeration", "membership.corollary"):
        answer = ask("membership-advantage", method, **fields)
        if answer.ok:
            margin = 4.0 * float(row["std_error"] or 0.0) + PRINTED
            assert answer.lower - margin <= float(row["value"]) <= answer.upper + margin, method


@pytest.mark.parametrize("row", rows("max accuracy"), ids=identity)
def test_the_best_accuracy_is_that_of_the_oracle(row: Row) -> None:
    share, weight = re.findall(r"=([0-9/]+)", row["quantity"])
    fields = {"nonmember_share": number(share), "member_weight": number(weight)}
    answer = ask("membership-accuracy", "membership.exact", law=law_of(row), records=int(row["n"]), **fields)
    assert encloses(answer, row)


@pytest.mark.parametrize("row", rows("C(P)"), ids=identity)
def test_the_diversity_is_that_of_the_oracle(row: Row) -> None:
    assert encloses(ask("membership-diversity", "membership.diversity", law=law_of(row)), row)


@pytest.mark.parametrize("row", rows("E(B/n-g p)_+"), ids=identity)
def test_deep_tails_have_a_small_relative_error(row: Row) -> None:
    p, odds = float(row["distribution"].partition("=")[2]), float(row["quantity"].partition("g=")[2])
    values, errors = excess(int(row["n"]), np.array([p]), np.array([1.0 - p]), odds, 0.0)
    truth = float(row["value"])
    assert values[0] == pytest.approx(truth, rel=1e-11)
    assert errors[0] <= WIDTH * truth


@pytest.mark.parametrize("row", rows("U_n") + rows("L_n"), ids=identity)
def test_the_sharp_constants_are_those_of_the_oracle(row: Row) -> None:
    constant = largest_constant if row["quantity"].startswith("U") else least_constant
    assert constant(int(row["n"])) == pytest.approx(float(row["value"]), rel=1e-13)


def test_the_published_constant_is_that_of_the_oracle() -> None:
    (row,) = [row for row in rows("c") if row["quantity"] == "c"]
    assert pytest.approx(float(row["value"]), rel=1e-11) == LEAST


@pytest.mark.parametrize("row", rows("max C_K") + rows("inf C_K"), ids=identity)
def test_the_extreme_diversities_are_those_of_the_oracle(row: Row) -> None:
    size, most = (float(Fraction(x)) for x in re.findall(r"=([0-9/]+)", row["distribution"]))
    if row["quantity"].startswith("max"):
        weights = [most, *[(1.0 - most) / (size - 1.0)] * int(size - 1)]
    else:
        whole = int(1.0 / most)
        weights = [*[most] * whole, 1.0 - whole * most]
    text = f"atoms({','.join(repr(x) for x in weights)})"
    assert encloses(ask("membership-diversity", "membership.diversity", law=text), row)


def law_with(target: float) -> str:
    """Return a distribution of 100 values with this diversity."""

    def written(most: float) -> str:
        return f"atoms({','.join(repr(x) for x in [most, *[(1.0 - most) / 99.0] * 99])})"

    most = brentq(lambda x: diversity(law(written(x)))[0] - target, 0.01, 0.99, xtol=1e-15)
    return written(most)


@pytest.mark.parametrize("row", rows("printed bound"), ids=identity)
def test_the_table_of_the_paper_has_half_the_diversity(row: Row) -> None:
    diversity_printed = float(row["distribution"].partition("C=")[2])
    found = ask(
        "membership-advantage",
        "membership.schwarz",
        law=law_with(diversity_printed),
        records=int(row["n"]),
    )
    assert found.upper == pytest.approx(float(row["value"]), rel=1e-10)


@pytest.mark.parametrize("row", rows("count attack"), ids=identity)
def test_the_rates_of_the_attack_by_counts_are_those_of_the_oracle(row: Row) -> None:
    threshold = float(row["quantity"].partition(">=")[2].partition(" ")[0])
    false, true = attack_rates(law(law_of(row)), int(row["n"]), threshold)
    found = false if row["quantity"].endswith("FPR") else true
    assert found == pytest.approx(float(row["value"]), rel=1e-10)


@pytest.mark.parametrize("row", rows("smallest n"), ids=identity)
def test_the_number_of_records_is_that_of_the_oracle(row: Row) -> None:
    target = float(row["quantity"].partition("<=")[2].partition(" ")[0])
    answer = ask("membership-records", "membership.planning", law=law_of(row), target_advantage=target)
    assert answer.lower == answer.upper == float(row["value"])


@pytest.mark.parametrize("row", rows("lim n^(1-1/s) Delta*_n"), ids=identity)
def test_heavy_tails_fall_at_their_own_rate(row: Row) -> None:
    s = 1.2
    low, high = worst_advantage(law("zipf(1.2)"), 10**12, 1.0, 2**18)
    scale = 1e12 ** (1.0 - 1.0 / s)
    assert low * scale <= float(row["value"]) * (1.0 + 1e-4)
    assert high * scale >= float(row["value"]) * (1.0 - 1e-4)


LEARNERS = {
    "max": lambda counts: counts[1] > 0,
    "majority vote": lambda counts: 2 * counts[1] > sum(counts),
    "count of first atom": lambda counts: counts[0],
    "sorted counts": lambda counts: tuple(sorted(counts)),
}


@pytest.mark.parametrize(
    "row",
    [r for r in rows("Delta(gamma") if r["quantity"].partition("learner=")[2] in LEARNERS],
    ids=identity,
)
def test_other_learners_reveal_what_the_oracle_says_and_no_more_than_the_worst(row: Row) -> None:
    odds = number(row["quantity"].removeprefix("Delta(gamma=").partition(")")[0])
    text, n = law_of(row), int(row["n"])
    if text.startswith("bernoulli"):
        p = number(text[10:-1])
        weights = [1.0 - p, p]
    else:
        weights = [float(word) for word in text[6:-1].split(",")]
    found = Records.of(weights, n).of_learner(LEARNERS[row["quantity"].partition("learner=")[2]], odds)
    assert found == pytest.approx(float(row["value"]), rel=1e-12)
    assert found <= worst_advantage(law(text), n, odds)[1]


def test_the_limit_is_near_the_table_for_gaussian_counts() -> None:
    """The asymptotic values are 0.798 times the values that the paper prints."""
    answer = ask("membership-advantage", "membership.asymptotic", law="uniform(50)", records=5000)
    assert answer.value == pytest.approx(math.sqrt(2.0 / math.pi) * 7.0 / (2.0 * math.sqrt(5000)), rel=1e-12)
