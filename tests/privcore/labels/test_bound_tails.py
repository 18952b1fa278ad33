"""Inequality for the largest probability of a sum of labels, and tails of advantages and ratios."""

import json
import math

import numpy as np
import pytest
from scipy.stats import binom

from privcore.labels.bounds.likelihood import LabelsLikelihood, largest_log_failure, ratio_bound
from privcore.labels.bounds.root import LabelsTranslated, advantage_bound, difference_bound
from privcore.labels.bounds.tails import largest_probability
from privcore.labels.problems import (
    LabelAdvantageTail,
    LabelRatioQuantile,
    LabelRatioTail,
)
from tests.privcore.labels.attacks import (
    ROUNDING,
    answer,
    law_of_sum,
    likelihoods,
    rows,
)


def test_no_sum_of_labels_has_a_larger_probability() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        etas = rng.beta(0.5, 0.5, rng.integers(1, 9))
        bound = float(largest_probability(float((etas * (1.0 - etas)).sum())))
        assert max(law_of_sum(list(etas))) <= bound * (1.0 + ROUNDING)


def test_the_mean_of_the_largest_probability_is_bounded_by_the_mean_variance() -> None:
    for values, w in (((0.05, 0.7), 0.25), ((0.001, 0.5), 0.3), ((0.0, 0.5), 0.5), ((0.1, 0.9), 0.5)):
        mu = (1 - w) * values[0] * (1 - values[0]) + w * values[1] * (1 - values[1])
        for n in (1, 2, 5):
            mean = math.fsum(
                binom.pmf(j, n, w) * max(law_of_sum([values[1]] * j + [values[0]] * (n - j)))
                for j in range(n + 1)
            )
            assert mean <= float(largest_probability(n * mu)) * (1.0 + ROUNDING)


def test_the_largest_probability_has_the_known_sharp_constant() -> None:
    variances = np.linspace(0.5, 1.2, 100_001)
    constant = float(np.max(np.sqrt(variances) * largest_probability(variances)))
    assert constant == pytest.approx(0.46882235549939533, rel=1e-9)
    wide = np.geomspace(1e-9, 1e9, 2001)
    assert np.all(np.sqrt(wide) * largest_probability(wide) <= constant * (1.0 + 1e-12))
    assert float(largest_probability(1e8)) * math.sqrt(2.0 * math.pi * 1e8) == pytest.approx(1.0, abs=1e-8)


def test_the_printed_lemmas_are_above_the_proved_bound() -> None:
    first, second = math.inf, math.inf
    for others in [*range(1, 40), 100, 1000, 16383, 10**6]:
        for mu in np.geomspace(1e-12, 0.25, 60):
            for variance in np.linspace(mu, 0.25, 4):
                proved = float(largest_probability(others * mu))
                first = min(first, advantage_bound(others, variance, mu) / (2.0 * mu * proved))
                second = min(second, difference_bound(others, variance, mu) / (2.0 * proved))
    assert 3.6 < first < 3.7
    assert 1.59 < second < 1.62


def exact_tail(problem: LabelAdvantageTail) -> float:
    """Return the probability that the mean advantage exceeds the threshold, for a two-point prior."""
    assert problem.distribution.atoms is not None
    (a, b), (_, w) = problem.distribution.atoms
    k, total = problem.bag_size, 0.0
    counts = np.arange(k + 1)
    for j in counts:  # members with eta = b
        gain = 0.0
        for eta, n, rest in ((a, k - j, (k - j - 1, j)), (b, j, (k - j, j - 1))):
            if n > 0:
                law = np.convolve(
                    binom.pmf(np.arange(rest[0] + 1), rest[0], a),
                    binom.pmf(np.arange(rest[1] + 1), rest[1], b),
                )
                one, zero = np.append(0.0, law), np.append(law, 0.0)
                gain += n / k * (np.maximum(eta * one, (1 - eta) * zero).sum() - max(eta, 1 - eta))
        total += binom.pmf(j, k, w) * (gain > problem.threshold)
    return float(total)


@pytest.mark.parametrize("threshold", [0.003, 0.015, 0.02, 0.025, 0.03, 0.05])
@pytest.mark.parametrize("prior", ["two-point(0.05,0.7,0.25)", "two-point(0.5,0.01,0.6)"])
def test_the_tail_of_the_advantage_is_below_its_bounds(prior: str, threshold: float) -> None:
    problem = LabelAdvantageTail(mechanism="llp", prior=prior, bag_size=200, threshold=threshold)
    tail = exact_tail(problem)
    tight = answer(LabelsTranslated(), problem).upper
    published = answer(LabelsTranslated(form="published"), problem).upper
    assert tail - 1e-12 <= tight <= published <= 1.0


def test_the_tight_tail_says_something_where_the_published_one_does_not() -> None:
    problem = LabelAdvantageTail(mechanism="llp", prior="uniform", bag_size=512, threshold=0.018)
    assert 1e-9 < answer(LabelsTranslated(), problem).upper < 1e-6
    assert answer(LabelsTranslated(form="published"), problem).upper == 1.0
    higher = LabelAdvantageTail(mechanism="llp", prior="uniform", bag_size=512, threshold=0.4)
    assert answer(LabelsTranslated(form="published"), higher).upper < 0.1


def ratio_tail(problem: LabelRatioTail) -> float:
    """Return the probability that the absolute ratio exceeds the threshold, for constant eta."""
    p, k = problem.distribution.mean, problem.bag_size
    pairs = likelihoods(list(binom.pmf(np.arange(k), k - 1, p)), problem.mechanism, problem.label_epsilon)
    return math.fsum(
        p * one + (1 - p) * zero
        for one, zero in pairs
        if one == 0 or zero == 0 or abs(math.log(one / zero)) > problem.log_ratio
    )


@pytest.mark.parametrize("epsilon", [math.inf, 0.3, 4.0])
@pytest.mark.parametrize(("p", "k"), [(0.5, 150), (0.2, 300), (0.9, 120)])
def test_the_tail_of_the_ratio_is_below_its_bound(p: float, k: int, epsilon: float) -> None:
    mechanism = "llp" if math.isinf(epsilon) else "llp-geometric"
    for t in (0.05, 0.2, 0.5, 1.0, 3.0):
        problem = LabelRatioTail(
            mechanism=mechanism, prior=f"point({p})", bag_size=k, label_epsilon=epsilon, log_ratio=t
        )
        assert answer(LabelsLikelihood(), problem).upper >= ratio_tail(problem) * (1.0 - ROUNDING)


def test_the_tail_of_the_ratio_in_large_bags_is_known() -> None:
    (row,) = [row for row in rows("P_absI_gt") if row["k"] == "20000"]
    given = json.loads(row["args"])
    problem = LabelRatioTail(mechanism="llp", prior=str(given["p"]), bag_size=20_000, log_ratio=given["t"])
    assert float(row["value"]) <= answer(LabelsLikelihood(), problem).upper == pytest.approx(0.02, rel=1e-6)


def test_the_quantile_of_the_ratio_inverts_its_tail() -> None:
    for p, k, level in ((0.5, 2000, 0.98), (0.05, 10_000, 0.9), (0.97, 100_000, 0.999)):
        quantile = answer(
            LabelsLikelihood(), LabelRatioQuantile(mechanism="llp", prior=str(p), bag_size=k, level=level)
        ).upper
        tail = answer(
            LabelsLikelihood(), LabelRatioTail(mechanism="llp", prior=str(p), bag_size=k, log_ratio=quantile)
        ).upper
        assert tail == pytest.approx(1.0 - level, rel=1e-6)
        s = np.arange(k + 1)
        with np.errstate(divide="ignore"):
            ratio = np.abs(np.log(s * (1 - p)) - np.log((k - s) * p))
        assert binom.pmf(s, k, p)[ratio > quantile].sum() <= 1.0 - level
        assert ratio_bound(p, k, largest_log_failure(p, k, 0.01)) <= 0.01 * (1.0 + 1e-12)
