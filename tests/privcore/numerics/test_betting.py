"""Bounds by bets: valid at their confidence, exactly for coins, and nearly as narrow as normal intervals."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, norm

from privcore import Point, find
from privcore.allocation.montecarlo import AllocationMonteCarlo, Simulation
from privcore.allocation.problems import AllocationDelta, AllocationError, ErrorOfMean, PoissonError
from privcore.allocation.utility import UtilitySimulation
from privcore.labels.draws import Rung, excess
from privcore.labels.problems import LabelAdvantage, LabelRatioQuantile
from privcore.labels.sampling import LabelsSampling
from privcore.numerics.bounded_mean import betting_lower, betting_upper

WIDEST = 3.0
"""Largest ratio of the widths of an interval and of the normal interval, from 1e5 samples on."""


@pytest.mark.parametrize("p", [0.01, 0.3, 0.5, 0.97])
def test_for_coins_the_probability_of_an_error_is_at_most_what_is_claimed(p: float) -> None:
    """The order of the coins matters little, so a few orders are tried for each number of successes."""
    n, error = 60, 0.2
    wrong = 0.0
    for count in range(n + 1):
        rng = np.random.default_rng(count)
        share = np.mean(
            [betting_lower(rng.permutation(np.arange(n) < count).astype(float), error) > p for _ in range(12)]
        )
        wrong += float(share * binom.pmf(count, n, p))
    assert wrong <= error


def test_the_wealth_of_a_fair_game_has_mean_one() -> None:
    """Enumeration of all sequences of ten draws from three values, in rational numbers."""
    from itertools import product

    from privcore.numerics.bounded_mean import _stakes, log_wealth

    values, chances = (0.0, 0.5, 1.0), (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4))
    mean, total = 0.375, 0.0
    for drawn in product(range(3), repeat=7):
        samples = np.array([values[i] for i in drawn])
        chance = math.prod(chances[i] for i in drawn)
        wealth = sum(log_wealth(samples[a:b], stake, mean) for a, b, stake in _stakes(samples, 2.0))
        total += float(chance) * math.exp(wealth)
    assert total == pytest.approx(1.0, rel=1e-12)


@pytest.mark.thorough
def test_simulated_errors_are_rarer_than_the_confidence_allows() -> None:
    rng = np.random.default_rng(4)
    cases = [("uniform", 1.0, 0.5), ("skewed", 8.0, 1.0 / 9.0), ("very skewed", 30.0, 1.0 / 31.0)]
    for name, power, mean in cases:
        missed = 0
        for _ in range(300):
            samples = rng.random(400) ** power
            missed += not betting_lower(samples, 0.25) <= mean <= betting_upper(samples, 0.25)
        assert missed <= 150 + 4 * math.sqrt(75), name
        assert missed <= 110, f"{name}: two-sided intervals at 0.5 miss less than half of the time"


@pytest.mark.parametrize("confidence", [0.5, 0.999])
@pytest.mark.parametrize("spread", [0.5, 0.05, 0.003])
def test_a_hundred_thousand_samples_give_less_than_three_normal_widths(
    confidence: float, spread: float
) -> None:
    samples = np.clip(0.3 + spread * np.random.default_rng(1).standard_normal(100_000), 0.0, 1.0)
    error = 0.5 * (1.0 - confidence)
    width = betting_upper(samples, error) - betting_lower(samples, error)
    normal = 2.0 * norm.isf(error) * float(samples.std(ddof=1)) / math.sqrt(samples.size)
    assert normal <= width <= WIDEST * normal


@pytest.mark.thorough
@pytest.mark.parametrize("confidence", [0.5, 0.999])
@pytest.mark.parametrize(
    ("prior", "bag_size", "mechanism", "epsilon"),
    [
        ("uniform", 64, "llp", math.inf),
        ("beta(2,30)", 64, "llp", math.inf),
        ("two-point(0.05,0.7,0.25)", 64, "llp", math.inf),
        ("logit-normal(-3.661,1.1815)", 64, "llp-geometric", 0.5),
        ("uniform", 8, "llp-laplace", 1.0),
    ],
)
def test_intervals_of_bags_are_within_three_normal_widths(
    prior: str, bag_size: int, mechanism: str, epsilon: float, confidence: float
) -> None:
    fields = {"prior": prior, "bag_size": bag_size, "mechanism": mechanism, "label_epsilon": epsilon}
    problem = LabelAdvantage.from_fields(fields)
    method = LabelsSampling(samples=100_000, confidence=confidence)
    found = method.answer(problem, Point(problem=problem, method=method).seed)
    error = float(found.detail.rpartition(" ")[2])
    normal = 2.0 * norm.isf(0.5 * (1.0 - confidence)) * error
    assert found.upper - found.lower <= WIDEST * normal


@pytest.mark.thorough
@pytest.mark.parametrize("confidence", [0.5, 0.999])
@pytest.mark.parametrize("adjacency", ["remove", "add-remove"])
def test_intervals_of_allocation_are_within_three_normal_widths(adjacency: str, confidence: float) -> None:
    problem = AllocationDelta.from_fields({"sigma": 1.0, "steps": 20, "epsilon": 0.5, "adjacency": adjacency})
    method = AllocationMonteCarlo(samples=100_000, sampling="plain", confidence=confidence)
    found = method.answer(problem, 1)
    simulation = Simulation(steps=20, epochs=1, shift=1.0, epsilon=0.5, conditional=False, sparse=False)
    drawn, _ = simulation.means(np.random.default_rng(1), "remove", simulation.event("remove")[0], 100_000)
    error = float(np.concatenate(drawn.parts).std()) / math.sqrt(100_000)
    assert found.upper - found.lower <= WIDEST * 2.0 * norm.isf(0.5 * (1.0 - confidence)) * error


@pytest.mark.thorough
@pytest.mark.parametrize("kind", [AllocationError, PoissonError])
def test_intervals_of_simulated_errors_are_within_three_normal_widths(kind: type[ErrorOfMean]) -> None:
    """The noise is most of the error, and is known to a part of its width only."""
    problem = kind(epsilon=0.1, delta=1e-6, steps=1000, examples=1000, proportion=0.5)
    found = UtilitySimulation(repetitions=100_000, confidence=0.5).answer(problem, 1)
    assert found.value is not None
    error = math.sqrt(2.0) * found.value / math.sqrt(100_000)  # squares of nearly Gaussian errors
    assert found.upper - found.lower <= WIDEST * 2.0 * norm.isf(0.25) * error


@pytest.mark.thorough
def test_intervals_of_bags_hold_the_truth_at_one_half_confidence() -> None:
    """The truth is that of the exact method; other priors give other bags."""
    missed = 0
    for k in range(40):
        prior = f"two-point({0.05 + 0.003 * k:.3f},0.7,0.25)"
        fields = {"prior": prior, "bag_size": 24, "mechanism": "llp"}
        problem = LabelAdvantage.from_fields(fields)
        exact = find("labels.composition")().answer(problem, 0)
        method = LabelsSampling(samples=2000, confidence=0.5)
        found = method.answer(problem, Point(problem=problem, method=method).seed)
        missed += found.lower > exact.upper or found.upper < exact.lower
    assert missed <= 20


@pytest.mark.thorough
def test_the_quantile_of_bags_has_two_ends_near_its_value() -> None:
    for bag_size in (8, 20, 37):
        fields = {"prior": "uniform", "bag_size": bag_size, "mechanism": "llp", "level": 0.98}
        problem = LabelRatioQuantile.from_fields(fields)
        method = LabelsSampling(samples=20_000)
        found = method.answer(problem, Point(problem=problem, method=method).seed)
        assert found.value is not None
        assert 0.9 * found.value <= found.lower <= found.value <= found.upper <= 1.1 * found.value


def test_the_excess_over_a_cap_is_the_integral_of_the_tail() -> None:
    tails = [Rung(threshold=2.0, probability=0.1), Rung(threshold=1.0, probability=0.5)]
    assert excess(0.5, 3.0, tails) == pytest.approx(0.5 + 0.5 + 0.1)
    assert excess(1.5, 1.8, tails) == pytest.approx(0.15)
    assert excess(3.0, 3.0, tails) == 0.0
