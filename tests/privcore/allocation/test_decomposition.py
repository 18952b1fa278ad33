"""The decomposition bound: exact where it must be, above the truth elsewhere, equal to published values."""

import csv
import math
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr

from privcore import Answer, Method, Point, Problem, evaluate, find
from privcore.allocation.poisson import poisson
from privcore.allocation.published.decomposition import decomposition
from privcore.likelihood_ratio import profile
from privcore.likelihood_ratio.distribution import (
    LikelihoodRangeError,
    RatioBracket,
    RatioDistribution,
    Resolution,
    given_participation,
)
from privcore.numerics.gaussian import gaussian_delta_bounds, gaussian_epsilon_bounds, log_gaussian_delta
from tests.privcore.draws import problem

TABLE = Path(__file__).parents[1] / "data" / "allocation.csv"


def answer(question: Problem, **knobs: float) -> Answer:
    method: Method = find("allocation.decomposition").from_knobs(knobs)
    return evaluate(Point(problem=question, method=method))


def one_step_poisson_delta(sigma: float, rate: float, epsilon: float, direction: str) -> float:
    """Return the exact profile of one Poisson-sampled Gaussian step, in closed form."""
    kappa = math.exp(epsilon)
    if direction == "remove":
        if 1.0 + (kappa - 1.0) / rate <= 0.0:
            return 1.0 - kappa
        return rate * math.exp(log_gaussian_delta(sigma, math.log1p((kappa - 1.0) / rate)))
    part = 1.0 - kappa * (1.0 - rate)
    if part <= 0.0:
        return 0.0
    return part * math.exp(log_gaussian_delta(sigma, math.log(kappa * rate / part)))


@pytest.mark.parametrize("rate", [1.0, 0.5, 0.01, 1e-6])
@pytest.mark.parametrize("epsilon", [-2.0, 0.0, 0.3, 2.0, 6.0])
@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.0])
def test_one_step_gives_back_the_gaussian_whatever_the_sampling_probability(
    sigma: float, epsilon: float, rate: float
) -> None:
    """Given that the example takes part in the only step, Poisson sampling is the Gaussian mechanism."""
    part = decomposition(rate, 1)
    exact = math.exp(log_gaussian_delta(sigma, epsilon))
    remove = part.remove_delta(lambda x: one_step_poisson_delta(sigma, rate, x, "remove"), epsilon)
    add = part.add_delta(lambda x: one_step_poisson_delta(sigma, rate, x, "add"), epsilon)
    assert remove == pytest.approx(exact, rel=1e-8)
    assert add == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize(("sigma", "delta"), [(0.5, 1e-6), (1.0, 1e-10), (4.0, 0.05), (0.1, 1e-3)])
def test_one_step_gives_back_the_gaussian_epsilon(sigma: float, delta: float) -> None:
    part = decomposition(1.0, 1)
    lower, _ = gaussian_epsilon_bounds(sigma, delta)
    remove = part.remove_epsilon(lambda x: gaussian_epsilon_bounds(sigma, x)[1], delta)
    add = part.add_epsilon(lambda x: gaussian_delta_bounds(sigma, x)[1], delta, start=1.0)
    assert lower <= remove <= lower * (1.0 + 1e-9)
    assert lower <= add <= lower * (1.0 + 1e-9)


def test_thresholds_follow_the_theorem() -> None:
    rate, steps, epsilon = 0.01, 100, 0.7
    kappa = math.exp(epsilon)
    gamma = 1.0 / (1.0 - (1.0 - rate) ** steps)
    asked: list[float] = []

    def poisson_delta(x: float) -> float:
        asked.append(x)
        return 1e-6

    part = decomposition(rate, steps)
    remove, add = part.remove_delta(poisson_delta, epsilon), part.add_delta(poisson_delta, epsilon)
    thresholds = (math.log(1.0 + (kappa - 1.0) / gamma), -math.log(1.0 - (1.0 - 1.0 / kappa) / gamma))
    assert asked == pytest.approx(thresholds)
    assert (remove, add) == pytest.approx((1e-6 * gamma, 1e-6 * (1.0 + kappa * (gamma - 1.0))))


def test_formulas_survive_the_ends_of_the_domain() -> None:
    for rate, steps in ((1.0, 1), (1e-9, 10**9), (1e-11, 10**9), (0.5, 10**9), (1e-12, 1)):
        part = decomposition(rate, steps)
        for epsilon in (-100.0, -1e-300, 0.0, 1e-300, 29.9, 30.1, 700.0, 1e4):
            for delta in (0.0, 5e-324, 1e-3, 1.0):
                asked: list[float] = []

                def constant(x: float, asked: list[float] = asked, delta: float = delta) -> float:
                    asked.append(x)
                    return delta

                for bound in (part.remove_delta, part.add_delta):
                    assert 0.999 * delta <= bound(constant, epsilon) <= 1.0, (rate, steps, epsilon)
                assert all(math.isfinite(x) for x in asked), (rate, steps, epsilon)


def test_a_bound_that_never_comes_down_is_infinite() -> None:
    assert decomposition(0.1, 10).add_epsilon(lambda _: 0.5, 1e-6, start=1.0) == math.inf


def test_published_values_are_met_from_above() -> None:
    """Rows of the same method, up to the tolerance and the trusted digits; lambda = thinning / t."""
    with TABLE.open() as lines:
        rows = [row for row in csv.DictReader(lines) if row["group"] == "F"]
    assert len(rows) == 8
    for row in rows:
        fields = {"sigma": float(row["sigma"]), "steps": int(row["t"]), "adjacency": row["direction"]}
        if row["quantity"] == "eps":
            question = problem("allocation-epsilon", delta=float(row["delta_in"]), **fields)
        else:
            question = problem("allocation-delta", epsilon=float(row["eps_in"]), **fields)
        thinning = min(1.0, float(row["lam"]) * int(row["t"]))
        upper, value = answer(question, thinning=thinning, tolerance=0.002).upper, float(row["value"])
        assert 1.0 - 0.5 * 10.0 ** (1 - int(row["digits"])) <= upper / value <= 1.002, row


def test_less_thinning_is_tighter() -> None:
    question = problem("allocation-epsilon", sigma=1.0, steps=1000, delta=1e-8)
    uppers = [answer(question, thinning=thinning).upper for thinning in (1.0, 0.3, 0.1, 0.03)]
    assert uppers == sorted(uppers, reverse=True)
    assert 0.2932037 < uppers[-1] < 0.302


def call(c: NDArray[np.float64], s: float) -> NDArray[np.float64]:
    """Return E(Y - c)_+ for lognormal Y of mean 1, whose logarithm has the standard deviation s."""
    log = np.log(np.maximum(c, 1e-300)) / s
    return np.where(c > 0.0, ndtr(0.5 * s - log) - c * ndtr(-0.5 * s - log), 1.0 - c)


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize(("sigma", "epsilon"), [(0.6, 0.5), (1.0, 1.5), (1.0, 0.0), (2.0, -0.2)])
def test_two_of_four_steps_are_two_blocks_of_two(sigma: float, epsilon: float, direction: str) -> None:
    """The product of two ratios given participation, by quadrature over three of the four outputs."""
    s = 1.0 / sigma
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    step = 0.5 + 0.5 * np.exp(s * nodes - 0.5 * s * s)
    weights = weights / weights.sum()
    first = (step[:, None] * step - 0.25) / 0.75  # ratio of the first block
    kappa = math.exp(epsilon if direction == "remove" else -epsilon)
    with np.errstate(divide="ignore"):
        threshold = 0.25 + 0.75 * (kappa / first)
    inner = sum(w * x * 0.5 * call(2.0 * threshold / x - 1.0, s) for w, x in zip(weights, step, strict=True))
    exact = float(weights @ np.where(first > 0.0, first * inner / 0.75, 0.0) @ weights)
    if direction == "add":  # E(1 - X / kappa)_+ by parity, as the mean of X is 1
        exact = (exact - 1.0 + kappa) / kappa
    question = problem(
        "allocation-delta", sigma=sigma, steps=4, participations=2, epsilon=epsilon, adjacency=direction
    )
    found = answer(question, tolerance=0.001).upper
    assert exact * (1.0 - 1e-6) <= found <= exact * 1.02


@pytest.mark.parametrize(
    ("fields", "published"),
    [
        ({"sigma": 1.0, "steps": 1000, "participations": 10}, 3.2818),
        ({"sigma": 0.8, "steps": 2000, "participations": 20}, 7.6041),
        ({"sigma": 1.5, "steps": 500, "participations": 5, "epochs": 4}, 2.4363),
        ({"sigma": 0.6, "steps": 1024, "participations": 4}, 5.7020),
    ],
)
def test_compositions_have_the_values_of_an_independent_program(
    fields: dict[str, float], published: float
) -> None:
    """That program composed the pair by Fourier transforms of losses, to 1e-4."""
    found = answer(problem("allocation-epsilon", delta=1e-6, **fields))
    assert published * (1.0 - 1e-4) <= found.upper <= published * 1.01


def test_the_law_given_participation_has_the_profile_of_the_formulas() -> None:
    res = Resolution(fineness=1.0 / 40.0, tail=1e-25)
    for sigma, rate, steps in ((1.0, 0.01, 100), (0.4, 1e-3, 700), (3.0, 0.5, 2), (0.5, 1.0, 1)):
        sampled = poisson(1.0 / sigma, rate, steps, res)
        part = decomposition(rate, steps)
        law = given_participation(sampled, part.log_absence).upper
        for epsilon in (-1.0, 0.0, 0.4, 3.0):
            for direction in ("remove", "add"):
                formula = part.remove_delta if direction == "remove" else part.add_delta
                exact = formula(partial(profile.delta_lower, sampled.lower, adjacency=direction), epsilon)
                found = profile.delta_upper(law, epsilon, direction)
                assert exact * (1.0 - 1e-9) <= found <= 1.02 * exact + 1e-20, (sigma, epsilon, direction)


def test_values_that_cannot_be_told_from_no_participation_are_refused() -> None:
    apart = RatioDistribution(x=np.array([0.4, 0.7, 3.0]), p=np.array([0.3, 0.6, 0.1]), value_error=0.2)
    with pytest.raises(LikelihoodRangeError):
        given_participation(RatioBracket(lower=apart, upper=apart), math.log(0.5))
