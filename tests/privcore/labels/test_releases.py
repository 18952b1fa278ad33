"""Simulated releases: they agree with the methods in distribution, and posteriors are calibrated."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logit

from privcore import Point, evaluate, find, find_problem, methods_for
from privcore.labels.learning.release import releases
from privcore.labels.problems import LabelAdvantage
from privcore.labels.sampling import LabelsSampling

NUMBER = 20_000
DEVIATIONS = 4.5
"""Standard errors: one of a hundred comparisons fails for one in a thousand seeds."""

SETTINGS: list[dict[str, Any]] = [
    {"mechanism": "none"},
    {"mechanism": "rr", "label_epsilon": 1.0},
    {"mechanism": "llp", "bag_size": 1},
    {"mechanism": "llp", "bag_size": 3},
    {"mechanism": "llp", "bag_size": 8},
    {"mechanism": "llp-geometric", "bag_size": 1, "label_epsilon": 1.0},
    {"mechanism": "llp-geometric", "bag_size": 8, "label_epsilon": 1.0},
    {"mechanism": "llp-laplace", "bag_size": 1, "label_epsilon": 1.0},
    {"mechanism": "llp-laplace", "bag_size": 8, "label_epsilon": 2.0},
]
settings = pytest.mark.parametrize("given", SETTINGS, ids=lambda given: "-".join(map(str, given.values())))
priors = pytest.mark.parametrize("prior", ["uniform", "beta(2,30)"])


def close(samples: NDArray[np.float64], expected: float) -> bool:
    """Return whether the mean of samples in [-1, 1] agrees with the expected one, to their standard error."""
    variance = max(
        float(samples.var()), abs(expected) / 4.0
    )  # for almost only zeros, the sample variance is unreliable
    return abs(float(samples.mean()) - expected) <= DEVIATIONS * math.sqrt(variance / samples.size) + 1e-12


def best(name: str, **fields: Any) -> float:
    """Return the answer of the first method that applies."""
    problem = find_problem(name).from_fields(fields)
    reasons = methods_for(problem)
    names = ("labels.response", "labels.gauss", "labels.sampling")
    method = next(m for m in map(find, names) if reasons.get(m, "It is for other problems.") is None)
    answer = evaluate(Point(problem=problem, method=method()))
    return answer.value if answer.value is not None else 0.5 * (answer.lower + answer.upper)


@settings
@priors
def test_a_posterior_is_on_average_the_prior(given: dict[str, Any], prior: str) -> None:
    drawn = releases(LabelAdvantage(prior=prior, **given), NUMBER, seed=3)
    assert close(drawn.posteriors - drawn.etas, 0.0)
    assert drawn.posteriors.min() >= 0.0
    assert drawn.posteriors.max() <= 1.0


@settings
@priors
def test_the_better_guess_gains_what_the_advantage_says(given: dict[str, Any], prior: str) -> None:
    """The realised gain and the gain given the features both have the expected advantage as mean."""
    drawn = releases(LabelAdvantage(prior=prior, **given), NUMBER, seed=5)
    expected = best("label-advantage", prior=prior, **given) if given["mechanism"] != "none" else 0.0
    blind = np.maximum(drawn.etas, 1.0 - drawn.etas)
    informed = np.maximum(drawn.posteriors, 1.0 - drawn.posteriors)
    assert close(informed - blind, expected)
    assert close(drawn.advantages, expected)
    assert drawn.advantages.min() >= 0.0
    assert (drawn.advantages <= 1.0 - blind + 1e-12).all()


@settings
@priors
def test_the_ratio_moves_the_logit_of_the_prior_to_that_of_the_posterior(
    given: dict[str, Any], prior: str
) -> None:
    drawn = releases(LabelAdvantage(prior=prior, **given), 1000, seed=7)
    inside = np.isfinite(drawn.ratios)
    np.testing.assert_allclose(
        logit(drawn.posteriors[inside]), logit(drawn.etas[inside]) + drawn.ratios[inside], rtol=0.0, atol=1e-9
    )
    certain = drawn.posteriors[~inside]
    assert set(np.unique(certain)) <= {0.0, 1.0}
    assert np.abs(drawn.ratios).max() <= given.get("label_epsilon", math.inf)


@settings
@priors
def test_the_ratio_exceeds_a_threshold_as_often_as_it_should(given: dict[str, Any], prior: str) -> None:
    drawn = releases(LabelAdvantage(prior=prior, **given), NUMBER, seed=11)
    exceeds = (np.abs(drawn.ratios) > 0.6).astype(float)
    if given["mechanism"] == "none":
        assert exceeds.max() == 0.0
        return
    expected = best("label-ratio-tail", prior=prior, log_ratio=0.6, **given)
    assert close(exceeds, expected)


def test_a_bag_whose_labels_are_equal_reveals_them() -> None:
    drawn = releases(LabelAdvantage(mechanism="llp", prior="beta(2,30)", bag_size=8), NUMBER, seed=13)
    infinite = np.isinf(drawn.ratios).astype(float)
    assert close(infinite, (1.0 - 1.0 / 16.0) ** 8 + (1.0 / 16.0) ** 8)


def test_what_is_certain_without_a_release_stays_so() -> None:
    drawn = releases(LabelAdvantage(mechanism="llp", prior="two-point(0,1,0.25)", bag_size=4), 100, seed=1)
    assert (drawn.posteriors == drawn.etas).all()
    assert (drawn.advantages == 0.0).all()


def test_the_method_draws_the_same_bits_every_time_and_others_for_another_problem() -> None:
    problem = LabelAdvantage(mechanism="llp", prior="uniform", bag_size=8)
    first, second = (LabelsSampling().releases(problem, 100) for _ in range(2))
    assert first.posteriors.tolist() == second.posteriors.tolist()
    noisy = LabelAdvantage(mechanism="llp-geometric", prior="uniform", bag_size=8, label_epsilon=1.0)
    assert LabelsSampling().releases(noisy, 100).etas.tolist() != first.etas.tolist()


def test_many_releases_are_drawn_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privcore.labels.learning.release._CHUNK", 64)
    problem = LabelAdvantage(mechanism="llp-geometric", prior="uniform", bag_size=8, label_epsilon=1.0)
    drawn = releases(problem, 1001, seed=17)
    assert {getattr(drawn, name).size for name in ("etas", "ratios", "posteriors", "advantages")} == {1001}
    assert len(set(drawn.etas.tolist())) == 1001
