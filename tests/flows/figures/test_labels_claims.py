"""The numbers in docs/reproduction-labels.md against the output of its queries on a new store."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from flows.figures import papers
from flows.figures.labels.distributions import RELEASES, SETTINGS
from flows.figures.labels.setting import releases
from flows.spec.sweep import load
from privcore import Point, evaluate, find, find_problem
from privcore.labels.bounds.root import half_width
from privcore.labels.learning.release import debiased_proportion
from privcore.labels.sums.poisson_binomial import binomial
from tests.flows.support.claims import Claims, agree

CLAIMS = Claims("reproduction-labels.md")
SWEEPS = papers.SWEEPS["labels"]


# ------------------------------------------------------------------------------------ refuted claims


def debiasing() -> list[float]:
    """Means of the debiased proportion of one label 1 among 8, as printed and as corrected."""
    k, s, epsilon = 8, 1, 0.25
    r = math.exp(-epsilon)
    u = np.arange(k + 1)
    kernel = (1.0 - r) / (1.0 + r) * r ** np.abs(u - s)
    kernel[0], kernel[k] = r**s / (1.0 + r), r ** (k - s) / (1.0 + r)
    printed = u / k + ((u == k).astype(float) - (u == 0)) / math.expm1(epsilon)
    return [float(kernel @ printed), float(kernel @ debiased_proportion(u, k, epsilon))]


def second_attacker() -> list[float]:
    """Successes over uniform eta: 1 below pi, 0 above 1 - pi, else the true label; and a blind guess."""
    flipped = 1.0 / (1.0 + math.e)
    wrong_way = 2.0 * (flipped**2 / 2.0)
    return [wrong_way + (1.0 - 2.0 * flipped), 0.75]


def window() -> list[float]:
    """Probability that a fair binomial number of 512 is outside the window, and its claimed value."""
    k = 512
    outside = np.abs(np.arange(k + 1) - k / 2) > math.sqrt(k) * half_width(k, 0.25)
    return [float(binomial(k, 0.5)[outside].sum()), 1.0 / (2.0 * k)]


def differences() -> list[float]:
    """Mean of the sum of squared differences of neighbouring probabilities over its printed bound."""
    n, mu = 10_000, 0.1
    turned = 1.0 - np.cos(2.0 * np.pi * np.arange(n + 2) / (n + 2))
    truth = 2.0 / (n + 2) * float(np.sum(turned * (1.0 - 2.0 * mu * turned) ** n))
    bound = (1.0 - 2.0 * mu) ** n + math.pi / (8.0 * mu * n) ** 1.5 + math.pi / (2.0 * math.e * mu * n * n)
    return [truth / bound]


def test_the_identity_of_the_squared_differences_holds_for_a_binomial_law() -> None:
    n, p = 50, 0.3
    turned = 1.0 - np.cos(2.0 * np.pi * np.arange(n + 2) / (n + 2))
    identity = 2.0 / (n + 2) * float(np.sum(turned * (1.0 - 2.0 * p * (1.0 - p) * turned) ** n))
    law = np.concatenate([[0.0], binomial(n, p), [0.0]])
    assert float(np.sum(np.diff(law) ** 2)) == pytest.approx(identity, rel=1e-12)


def additive_distributions() -> list[float]:
    """Shares of additive advantages above 0.01 for three priors: randomized response, noisy bags, bags."""
    shares = []
    for prior in ("uniform", "beta(2,30)", "logit-normal(-3.661,1.1815)"):
        above = {"mechanism": "rr", "label_epsilon": 1.0, "prior": prior, "threshold": 0.01}
        exact = Point(
            problem=find_problem("label-advantage-tail").from_fields(above), method=find("labels.response")()
        )
        noisy, bags, _ = SETTINGS
        shares.append(evaluate(exact).upper)
        shares += [float(np.mean(releases(s, prior, RELEASES).advantages > 0.01)) for s in (noisy, bags)]
    return shares


def ends(problem: str, method: str, **fields: object) -> list[float]:
    """Both ends of a method's answer."""
    answer = evaluate(Point(problem=find_problem(problem).from_fields(fields), method=find(method)()))
    return [answer.lower, answer.upper]


def one_release() -> list[float]:
    """Ratio of one example of a bag of three, from a sum of 1: the ends, and by two probabilities."""
    first, second, third = 0.1, 0.4, 0.45
    one = (1.0 - first) * (1.0 - third)  # the others are 0 if the second is 1
    zero = first * (1.0 - third) + third * (1.0 - first)
    bag = {"mechanism": "llp", "bag": f"{first},{second},{third}", "released": 1.0, "member": 2}
    return [*ends("label-release-ratio", "labels.bag", **bag), abs(math.log(one / zero))]


def shares() -> list[float]:
    """Share of advantages above 0.01 by randomized response, uniform prior, and by its formula."""
    asked = {"mechanism": "rr", "prior": "uniform", "label_epsilon": 1.0, "threshold": 0.01}
    return [
        *ends("label-advantage-share", "labels.response", **asked),
        1.0 - 2.0 * (1.0 / (1.0 + math.e) + 0.01),
    ]


def variances() -> list[float]:
    """Variance of the debiased proportion: randomized response at epsilon 1, and by its formula."""
    rr = ends("label-noise-variance", "labels.variance", mechanism="rr", bag_size=1, label_epsilon=1.0)
    return [*rr, math.e / (math.e - 1.0) ** 2]


def channels() -> list[float]:
    """Flips and capacity of randomized response over 10 classes at epsilon ln 9, and by their formulas."""
    asked = {"class_number": 10, "label_epsilon": math.log(9.0)}
    flips = ends("class-flip-probability", "labels.channel", **asked)
    capacity = ends("class-capacity", "labels.channel", **asked)
    return [*flips, 0.5, *capacity, math.log2(10.0) - 1.0 - 0.5 * math.log2(9.0)]


ASKED: dict[str, Callable[[], list[float]]] = {
    "one-release": one_release,
    "shares": shares,
    "variances": variances,
    "channels": channels,
}

ERRATA: dict[str, Callable[[], list[float]]] = {
    "additive-distributions": additive_distributions,
    "debiasing": debiasing,
    "second-attacker": second_attacker,
    "misprint": lambda: [1.0 - 2.0 / (1.0 + 1.0), 0.5 * math.tanh(0.5)],
    "window": window,
    "differences": differences,
    "minimum": lambda: [min(1.0, 1.0), 1.0 * 1.0 / (1.0 + 1.0)],
    "logarithm": lambda: [math.log(1.0 - 0.5), -0.5 * math.log(2.0)],
}


SIMULATED = pytest.param("additive-distributions", marks=pytest.mark.thorough)


@pytest.mark.parametrize("name", ASKED)
def test_the_ends_of_a_statement_are_those_of_its_formula(name: str) -> None:
    assert agree(ASKED[name](), CLAIMS.printed_of(name))


@pytest.mark.parametrize("name", [SIMULATED, *(name for name in ERRATA if name not in SIMULATED.values)])
def test_a_statement_that_is_called_wrong_fails_at_these_numbers(name: str) -> None:
    assert agree(ERRATA[name](), CLAIMS.printed_of(name))


# ------------------------------------------------------------------------------------ the table


def test_the_rows_are_numbered_and_each_has_a_verdict_and_a_command() -> None:
    CLAIMS.check_rows(ERRATA | ASKED)


def test_every_query_has_its_row_in_the_table_and_prints_numbers() -> None:
    CLAIMS.check_queries(at_least=30)


def test_the_sweeps_of_the_table_exist() -> None:
    assert [load(name).name for name in SWEEPS] == list(SWEEPS)


def test_a_printed_number_leaves_one_unit_of_its_last_digit() -> None:
    assert agree([0.8799, 2.0], "0.88, 2")
    assert not agree([0.8949, 2.0], "0.88, 2")
    assert not agree([0.88], "0.88, 2")


@pytest.mark.soak
def test_the_queries_print_the_numbers_of_the_table(tmp_path: Path) -> None:
    CLAIMS.check_numbers(SWEEPS, tmp_path / "store")
