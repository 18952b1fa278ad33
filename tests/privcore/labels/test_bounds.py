"""Explicit bounds on label inference against enumerated attacks, each other and extreme problems."""

import math

import numpy as np
import pytest

from privcore import Method, Problem
from privcore.labels.bag_problems import BagAdvantage
from privcore.labels.bounds.likelihood import LabelsLikelihood
from privcore.labels.bounds.root import (
    LabelsBernstein,
    LabelsChernoff,
    LabelsFourier,
    LabelsRoot,
    LabelsTranslated,
    advantage_bound,
    difference_bound,
)
from privcore.labels.bounds.tails import largest_probability
from privcore.labels.bounds.variation import (
    LabelsDominated,
    LabelsSmoothing,
    LabelsVariation,
    LabelsWu,
    bag_variation,
)
from privcore.labels.guess import LabelsBlind
from privcore.labels.problems import (
    LabelAdvantage,
    LabelAdvantageAt,
    LabelAdvantageTail,
    LabelRatioQuantile,
    LabelRatioTail,
)
from tests.privcore.labels.attacks import (
    NOISE,
    ROUNDING,
    UPPER,
    answer,
    drawn_problems,
    truth,
)

LEAST_RATIO = {
    "labels.wu tight": 3.025,
    "labels.dominated tight": 1.086,
    "labels.root tight": 1.470,
    "labels.bernstein tight": 3.025,
    "labels.chernoff tight": 3.025,
    "labels.variation tight": 1.213,
    "labels.smoothing tight": 1.213,
    "labels.smoothing published": 1.377,
    "labels.fourier tight": 2.096,
}
"""Least ratio of a bound to an advantage above 0.001 among the small bags."""


def test_no_upper_bound_is_below_the_best_attack() -> None:
    ratios: dict[str, list[float]] = {}
    for problem in drawn_problems():
        gain = truth(problem)
        for method in UPPER:
            if not isinstance(problem, method.problems) or method.applies(problem) is not None:
                continue
            upper = answer(method, problem).upper
            assert upper >= gain - ROUNDING, (method, problem, gain)
            if gain > 1e-3:
                ratios.setdefault(f"{method.name} {getattr(method, 'form', 'tight')}", []).append(
                    upper / gain
                )
    assert {name: min(values) for name, values in ratios.items()} == pytest.approx(LEAST_RATIO, abs=1e-3)


def test_the_blind_attack_gains_no_more_than_the_best() -> None:
    met = 0
    for problem in drawn_problems():
        if isinstance(problem, BagAdvantage) or problem.mechanism == "llp-laplace":
            continue
        met += 1
        gain, lower = truth(problem), answer(LabelsBlind(), problem).lower
        assert lower <= gain + ROUNDING, problem
        if problem.distribution.atoms is not None and problem.distribution.atoms[0].size == 1:
            assert lower == pytest.approx(gain, rel=1e-8, abs=ROUNDING), problem
    assert met > 30


@pytest.mark.parametrize("prior", ["uniform", "beta(2,30)", "0.3", "logit-normal(-3.661,1.1815)"])
@pytest.mark.parametrize("mechanism", ["llp-laplace", "llp-geometric"])
@pytest.mark.parametrize("epsilon", NOISE)
def test_what_is_finer_is_better(prior: str, mechanism: str, epsilon: float) -> None:
    problem = LabelAdvantage(mechanism=mechanism, prior=prior, bag_size=16, label_epsilon=epsilon)
    wu, dominated, variation, smoothing = (
        answer(method, problem).upper
        for method in (LabelsWu(), LabelsDominated(), LabelsVariation(), LabelsSmoothing())
    )
    assert dominated <= min(smoothing * 1.5, 0.5 * math.tanh(0.5 * epsilon)) * (1.0 + ROUNDING)
    assert dominated <= wu
    assert variation <= smoothing <= wu
    if mechanism == "llp-laplace":
        assert smoothing <= answer(LabelsSmoothing(form="published"), problem).upper <= 2.0 * smoothing


def test_a_bound_above_one_half_says_that_it_is_trivial() -> None:
    problem = LabelAdvantage(mechanism="rr", prior="uniform", label_epsilon=4.0)
    reply = answer(LabelsWu(), problem)
    assert (reply.upper, "trivial" in reply.detail) == (0.5, True)
    assert "trivial" not in answer(LabelsDominated(), problem).detail


@pytest.mark.parametrize("mechanism", ["llp", "llp-laplace", "llp-geometric"])
@pytest.mark.parametrize("epsilon", [1e-300, 1e-9, 700.0])
@pytest.mark.parametrize("k", [1, 2, 10**6])
def test_extreme_problems_have_bounds(mechanism: str, epsilon: float, k: int) -> None:
    epsilon = math.inf if mechanism == "llp" else epsilon
    for prior in ("0", "1", "1e-300", "0.5", "two-point(0,1,1e-300)", "beta(1000,0.05)"):
        given = LabelAdvantage(mechanism=mechanism, prior=prior, bag_size=k, label_epsilon=epsilon)
        for problem in (
            given,
            LabelAdvantageAt(mechanism=mechanism, prior=prior, bag_size=k, eta=0.5, label_epsilon=epsilon),
            LabelAdvantageTail(
                mechanism=mechanism, prior=prior, bag_size=k, threshold=0.0, label_epsilon=epsilon
            ),
            LabelRatioTail(
                mechanism=mechanism, prior=prior, bag_size=k, log_ratio=0.0, label_epsilon=epsilon
            ),
        ):
            for method in (*UPPER, LabelsBlind(), LabelsTranslated(), LabelsLikelihood()):
                if not isinstance(problem, method.problems) or method.cost(problem).seconds > 2.0:
                    continue
                reply = answer(method, problem)
                assert reply.ok == (method.applies(problem) is None), (method, problem, reply)
                if reply.ok and isinstance(method, LabelsBlind):
                    assert 0.0 <= reply.lower <= 0.5
                elif reply.ok:
                    assert 0.0 < reply.upper <= problem.largest, (method, problem)


def test_an_exact_sum_of_one_label_reveals_it_to_the_blind_attack() -> None:
    for prior in ("uniform", "beta(2,30)", "0.3", "logit-normal(-3.661,1.1815)"):
        problem = LabelAdvantage(mechanism="llp", prior=prior)
        assert answer(LabelsBlind(), problem).lower == pytest.approx(problem.distribution.blind, rel=1e-8)
    noisy = LabelAdvantage(mechanism="llp-geometric", prior="uniform", label_epsilon=1.0)
    assert answer(LabelsBlind(), noisy).lower == pytest.approx(math.tanh(0.5) ** 2 / 4.0, rel=1e-8)


def test_the_lemmas_count_the_other_examples() -> None:
    problem = LabelAdvantage(mechanism="llp", prior="uniform", bag_size=512)
    assert answer(LabelsFourier(), problem).upper == pytest.approx(
        advantage_bound(511, 0.25, 1 / 6), rel=1e-9
    )
    one = LabelAdvantageAt(mechanism="llp", prior="uniform", bag_size=512, eta=0.1)
    expected = 0.1 * 0.9 * difference_bound(511, 0.25, 1 / 6)
    assert answer(LabelsFourier(), one).upper == pytest.approx(expected, rel=1e-9)


def test_the_noise_bounds_the_mean_over_a_bag() -> None:
    problem = BagAdvantage(mechanism="llp-geometric", bag="0.5,0,0.1", label_epsilon=1.0)
    expected = 2.0 * math.tanh(0.5) * (0.25 + 0.0 + 0.09) / 3.0
    assert answer(LabelsSmoothing(), problem).upper == pytest.approx(expected, rel=1e-9)
    kept = 0.5 - 1.0 / (1.0 + math.e)
    assert answer(LabelsDominated(), problem).upper == pytest.approx(kept / 3.0, rel=1e-9)


def test_no_ratio_is_rarer_than_the_bag_size_lets_the_theorem_say() -> None:
    problem = LabelRatioTail(mechanism="llp", prior="0.5", bag_size=1000, log_ratio=10.0)
    assert answer(LabelsLikelihood(), problem).upper == pytest.approx(2.0 * math.exp(-250.0 / 32.0), rel=1e-9)


def test_the_companions_of_a_member_are_all_but_itself() -> None:
    etas = np.array([0.5, 1e-9, 0.3])
    a, b, c = (etas * (1.0 - etas)).tolist()
    expected = sum(
        2.0 * own * float(largest_probability(others)) for own, others in ((a, b + c), (b, a + c), (c, a + b))
    )
    assert bag_variation(etas, noise=1.0) == pytest.approx(expected / 3.0, rel=1e-12)
    assert bag_variation(etas, noise=0.1) == pytest.approx(0.2 * (a + b + c) / 3.0, rel=1e-12)


SUM = LabelAdvantage(mechanism="llp", prior="uniform", bag_size=8)
NOT_COVERED: tuple[tuple[Method, Problem, str], ...] = (
    (LabelsWu(), SUM, "label differential privacy"),
    (LabelsDominated(), BagAdvantage(mechanism="llp", bag="0.1,0.2"), "label differential privacy"),
    (LabelsSmoothing(), SUM, "label differential privacy"),
    (LabelsWu(), LabelAdvantage(mechanism="none", prior="uniform"), "releases nothing"),
    (LabelsVariation(), LabelAdvantage(mechanism="none", prior="uniform"), "releases nothing"),
    (
        LabelsSmoothing(form="published"),
        LabelAdvantage(mechanism="rr", prior="uniform", label_epsilon=1.0),
        "Laplace",
    ),
    (
        LabelsSmoothing(form="published"),
        LabelAdvantage(mechanism="llp-geometric", prior="0.3", bag_size=8, label_epsilon=1.0),
        "Laplace",
    ),
    (LabelsRoot(), SUM, "independent of the features"),
    (
        LabelsBernstein(),
        LabelAdvantageAt(mechanism="llp", prior="0.3", eta=0.4),
        "independent of the features",
    ),
    (LabelsChernoff(), LabelAdvantage(mechanism="rr", prior="0.3", label_epsilon=1.0), "sums of labels"),
    (LabelsFourier(), LabelAdvantage(mechanism="llp", prior="uniform"), "at least two"),
    (LabelsTranslated(), LabelAdvantageTail(mechanism="llp", prior="uniform", threshold=0.1), "at least two"),
    (
        LabelsTranslated(),
        LabelAdvantageTail(mechanism="llp", prior="uniform", bag_size=8, threshold=0.1, bags=4),
        "single bag",
    ),
    (
        LabelsTranslated(form="published"),
        LabelAdvantageTail(mechanism="llp", prior="uniform", bag_size=6, threshold=0.1),
        "variance 1 or more",
    ),
    (
        LabelsLikelihood(),
        LabelRatioTail(mechanism="llp", prior="uniform", bag_size=8, log_ratio=1.0),
        "independent of the features",
    ),
    (
        LabelsLikelihood(),
        LabelRatioTail(mechanism="llp", prior="1", bag_size=8, log_ratio=1.0),
        "between 0 and 1",
    ),
    (
        LabelsLikelihood(),
        LabelRatioQuantile(mechanism="llp", prior="0.5", bag_size=64, level=0.98),
        "at least 589.5 examples",
    ),
    (
        LabelsBlind(),
        LabelAdvantage(mechanism="llp-laplace", prior="uniform", label_epsilon=1.0),
        "whole number",
    ),
)


@pytest.mark.parametrize("case", NOT_COVERED, ids=lambda case: f"{case[0].name} {case[1].as_fields()}")
def test_what_a_theorem_does_not_cover_is_refused_with_the_reason(case: tuple[Method, Problem, str]) -> None:
    method, problem, words = case
    reason = method.applies(problem)
    assert reason is not None
    assert words in reason
