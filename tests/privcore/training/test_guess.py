"""The best guess which of several candidates a run has used: quadratures, enumerations and limits."""

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import stats

from privcore import Answer
from privcore.training import run_profile
from tests.privcore.draws import answered

POISSON = "poisson(sigma=1,sampling_probability=0.01,steps=100)"
NODES, WEIGHTS = np.polynomial.legendre.leggauss(400)


def success(phases: str, candidates: int, adjacency: str = "zero-out") -> Answer:
    """Return the bracket of the success of the best guess."""
    fields: dict[str, Any] = {"phases": phases, "adjacency": adjacency, "candidates": candidates}
    return answered("run-reconstruction", "runs.guess", **fields)


def orthogonal(mu: float, candidates: int) -> float:
    """Return the success for orthogonal means of length mu and Gaussian noise, by quadrature."""
    z = 11.0 * NODES + 0.5 * mu
    density = stats.norm.pdf(z - mu) * np.exp((candidates - 1) * stats.norm.logcdf(z))
    return float(11.0 * WEIGHTS @ density)


@pytest.mark.parametrize("mu", [0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("candidates", [2, 7, 100, 10**6])
def test_gaussian_noise_has_the_success_of_orthogonal_candidates_inside(mu: float, candidates: int) -> None:
    found = success(f"none(sigma={1 / mu},steps=1)", candidates)
    truth = orthogonal(mu, candidates)
    assert 0.995 * truth <= found.lower <= truth <= found.upper
    power = stats.norm.cdf(stats.norm.ppf(1.0 / candidates) + mu)
    assert found.upper == pytest.approx(power, rel=1e-9)


def test_no_guess_by_simulation_is_above_the_bracket_and_the_best_one_reaches_its_lower_end() -> None:
    draw, steps, rate, candidates, runs = np.random.default_rng(3), 4, 0.5, 3, 200_000
    found = success(f"poisson(sigma=1,sampling_probability={rate},steps={steps})", candidates)
    used = draw.random((runs, steps)) < rate
    outputs = draw.normal(size=(runs, steps, candidates))
    outputs[:, :, 0] += used  # the first candidate has the first unit vector as its gradient
    score = np.log(1.0 - rate + rate * np.exp(outputs - 0.5)).sum(axis=1)
    right = float(np.mean(score.argmax(axis=1) == 0))
    error = 4.0 * np.sqrt(right * (1.0 - right) / runs)
    assert found.lower <= right + error
    assert right - error <= found.upper
    assert found.lower >= 0.99 * right - error


def test_the_mean_of_the_curve_is_the_mean_of_the_largest_ratio() -> None:
    x, p = np.array([0.2, 0.8, 3.0]), np.array([0.3, 0.55, 0.15])
    x = x / float(x @ p)
    largest = sum(max(x[list(k)]) * np.prod(p[list(k)]) for k in itertools.product(range(3), repeat=4))
    order = np.argsort(-x)
    rates, powers = (np.append(0.0, np.cumsum(each[order])) for each in (p, p * x))
    grid = np.linspace(0.0, 1.0, 200_001)
    curve = np.interp(grid, rates, powers)
    mean = float(0.5 * (curve[1:] + curve[:-1]) @ -np.diff((1.0 - grid) ** 3))
    assert mean == pytest.approx(largest / 4.0, rel=1e-8)


@pytest.mark.parametrize(
    "phases", [POISSON, "allocation(sigma=1,steps=10,epochs=2)", "none(sigma=3,steps=2)"]
)
def test_more_candidates_are_harder_to_tell_apart(phases: str) -> None:
    found = [success(phases, candidates) for candidates in (2, 10, 1000)]
    for many, few in itertools.pairwise(reversed(found)):
        assert many.upper < few.lower
    for candidates, each in zip((2, 10, 1000), found, strict=True):
        assert 1.0 / candidates < each.lower < each.upper < 1.25 * each.lower


@pytest.mark.parametrize(
    ("phases", "adjacency"),
    [
        (POISSON, "replace-one"),
        ("fixed-size(sigma=1.5,sampling_probability=0.05,steps=10)", "zero-out"),
        ("shuffling(sigma=2,steps=50,epochs=2,redraw=each-epoch)", "zero-out"),
        (
            "truncated-poisson(sigma=1,sampling_probability=0.05,examples=1000,largest_batch=70,steps=10)",
            "remove",
        ),
    ],
)
def test_where_other_examples_decide_the_lower_end_is_a_blind_guess(phases: str, adjacency: str) -> None:
    found = success(phases, 10, adjacency)
    assert found.lower == pytest.approx(0.1, rel=1e-12)
    assert found.lower <= 0.1 < found.upper < 1.0


def test_a_profile_has_the_same_ends() -> None:
    (line,) = [
        line
        for line in run_profile(POISSON, "add-remove", {"candidates": [10]}).lines
        if line.quantity == "reconstruction"
    ]
    found = success(POISSON, 10, "add-remove")
    assert (line.lower, line.upper, line.at) == (found.lower, found.upper, {"candidates": 10.0})
