"""Both ends from sums of losses: exact profiles, the ratio engine where it answers, and no cliffs."""

import math
import random
from functools import partial

import mpmath
import numpy as np
import pytest
import scipy

from privcore.likelihood_ratio.batches import Aligned, Copies, Opposed, Replaced, SignedSample, Zeroed
from privcore.likelihood_ratio.distribution import LikelihoodRangeError, RatioBracket, RatioDistribution
from privcore.likelihood_ratio.fourier import epsilon_by_sums
from privcore.likelihood_ratio.privacy_loss.bounds import Parts, enclosed_losses
from privcore.likelihood_ratio.privacy_loss.distribution import PrivacyLoss, from_ratios
from privcore.likelihood_ratio.privacy_loss.outputs import (
    losses_of_chosen_steps,
    losses_of_one_step,
    losses_of_opposite_steps,
)
from privcore.likelihood_ratio.privacy_loss.sums import RoundedLoss, deviation
from privcore.likelihood_ratio.questions import Question
from privcore.likelihood_ratio.ratios import (
    LOSSES,
    Blend,
    Gaussian,
    OneOfSteps,
    Ratio,
    enclosed,
    product,
    repeated,
    sampled,
)
from privcore.numerics.gaussian import gaussian_bounds
from privcore.training.certified import RunsCertified
from privcore.training.problems import RunEpsilon
from tests.privcore.likelihood_ratio.test_fourier import profile


def ends(
    parts: Ratio | Parts, asks: str, at: float, adjacency: str, tolerance: float = 0.01
) -> tuple[float, float]:
    """Return the bracket of sums of losses, without any known one."""
    if isinstance(parts, Ratio):
        parts = [(part.privacy_loss, times) for part, times in parts.factors]
    outer = (0.0, math.inf if asks == "epsilon" else 1.0)
    return enclosed_losses(parts, Question(asks=asks, at=at, adjacency=adjacency), tolerance, outer)


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("mu", [0.7, 25.0, 3000.0])
def test_a_gaussian_mechanism_is_enclosed_to_a_percent(mu: float, direction: str) -> None:
    exact = gaussian_bounds("epsilon", 1.0 / mu, 1e-7)[0]
    lower, upper = ends(Gaussian(mu), "epsilon", 1e-7, direction)
    assert lower <= exact <= upper <= 1.01 * lower
    delta = gaussian_bounds("delta", 1.0 / mu, 0.97 * exact)[0]
    lower, upper = ends(Gaussian(mu), "delta", 0.97 * exact, direction)
    assert lower <= delta <= upper <= 1.02 * lower
    lower, upper = ends(Gaussian(mu), "delta", -1.0, direction)
    assert 0.98 * upper <= lower <= gaussian_bounds("delta", 1.0 / mu, -1.0)[1]


def test_nearly_equal_losses_have_close_ends() -> None:
    steps = repeated(sampled(Gaussian(50.0), 1.0 - 1e-9), 50)
    lower, upper = ends(steps, "epsilon", 1e-5, "add")
    assert lower <= 50.0 * math.log(1e9) * (1.0 + 1e-7)
    assert 0.995 * upper <= lower


def test_a_ratio_whose_errors_exceed_its_masses_has_no_losses() -> None:
    law = RatioDistribution(x=np.ones(1), p=np.ones(1), mass_error=800.0)
    with pytest.raises(LikelihoodRangeError):
        from_ratios(RatioBracket(lower=law, upper=law), "remove")


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_one_poisson_step_is_enclosed_for_every_noise(seed: int, direction: str) -> None:
    draw = random.Random(seed)
    s, rate, delta = 10 ** draw.uniform(0.0, 2.0), draw.uniform(0.01, 0.99), 10 ** draw.uniform(-12.0, -3.0)
    lower, upper = ends(sampled(Gaussian(s), rate), "epsilon", delta, direction)
    with mpmath.workdps(80):
        assert profile(s, rate, upper, direction) <= delta
        assert lower == 0.0 or profile(s, rate, lower, direction) >= delta
    assert upper <= 1.02 * lower


@pytest.mark.parametrize("seed", range(6))
def test_poisson_sampling_agrees_with_the_lattice_of_ratios(seed: int) -> None:
    draw = random.Random(seed)
    s, rate, times = (
        10 ** draw.uniform(-0.3, 0.5),
        10 ** draw.uniform(-3.0, -0.1),
        draw.choice([5, 300, 4000]),
    )
    delta, adjacency = 10 ** draw.uniform(-9.0, -3.0), draw.choice(["remove", "add", "add-remove"])
    known = epsilon_by_sums(s, rate, times, delta, adjacency)
    lower, upper = ends(repeated(sampled(Gaussian(s), rate), times), "epsilon", delta, adjacency)
    assert lower <= known[1]
    assert known[0] <= upper <= 1.02 * lower


TIGHT: list[Ratio] = [
    SignedSample(0.1, 1.5),
    Replaced(0.2, 0.8),
    Zeroed(0.2, 0.8),
    Aligned(0.3, 1.3),
    Copies(3, 0.2, 1.2),
    Blend((0.4, 0.6), (Gaussian(1.3), sampled(Gaussian(2.0), 0.1))),
    OneOfSteps(Gaussian(2.0), 10),
    product((repeated(sampled(Gaussian(1.2), 0.2), 3), Gaussian(1.1))),
]


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("ratio", TIGHT, ids=lambda ratio: type(ratio).__name__)
def test_every_kind_of_part_agrees_with_its_ratio(ratio: Ratio, direction: str) -> None:
    run = repeated(ratio, 20)
    known = enclosed(run, Question(asks="epsilon", at=1e-6, adjacency=direction), 1e-2, (0.0, math.inf))
    lower, upper = ends(run, "epsilon", 1e-6, direction)
    assert lower <= known[1]
    assert known[0] <= upper <= 1.02 * lower


def test_a_lower_end_alone_agrees_with_its_ratio() -> None:
    """The loss of these pairs may fall as the output grows."""
    for ratio in (Opposed(0.2, 1.1), Copies(3, 0.3, 2.0, 1.0)):
        for direction in ("remove", "add"):
            question = Question(asks="epsilon", at=1e-6, adjacency=direction)
            known = enclosed(repeated(ratio, 20), question, 1e-2, (0.0, math.inf))[0]
            assert ends(repeated(ratio, 20), "epsilon", 1e-6, direction)[0] == pytest.approx(known, rel=0.02)


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_one_of_several_steps_agrees_with_its_ratio(direction: str) -> None:
    for mu, steps in ((4.0, 2), (9.0, 30)):
        question = Question(asks="epsilon", at=1e-5, adjacency=direction)
        known = enclosed(OneOfSteps(Gaussian(mu), steps), question, 1e-3, (0.0, math.inf))
        lower, upper = ends([(partial(losses_of_one_step, mu, steps), 1)], "epsilon", 1e-5, direction)
        assert lower <= known[1]
        assert known[0] <= upper <= 1.25 * lower


def test_the_opposite_gradient_in_one_of_two_steps_agrees_with_samples() -> None:
    mu, steps, count = 5.0, 2, 200_000
    rng = np.random.default_rng(48)
    z = rng.standard_normal((count, steps))
    z[:, 0] += mu
    loss = scipy.special.logsumexp(mu * z, axis=1) - scipy.special.logsumexp(-mu * z, axis=1)
    at = 30.0
    terms = np.maximum(0.0, -np.expm1(np.minimum(0.0, at - loss)))
    error = 4.0 * float(terms.std()) / math.sqrt(count)
    part = [(lambda _, cells, tail: losses_of_opposite_steps(mu, steps, cells, tail), 1)]
    lower, upper = ends(part, "delta", at, "remove")
    assert lower - error <= float(terms.mean()) <= upper + error


def test_the_largest_term_bounds_a_choice_of_steps_from_below() -> None:
    """With two of two steps, the choice is the Gaussian mechanism; with two of three, it is below it."""
    part = partial(losses_of_chosen_steps, 12.0, 2, 3)
    for direction in ("remove", "add"):
        lower, upper = ends([(part, 1)], "epsilon", 1e-6, direction)
        public = gaussian_bounds("epsilon", 1.0 / (12.0 * math.sqrt(2.0)), 1e-6)
        assert 0.6 * public[0] < lower < public[0] <= upper


def test_rounded_losses_keep_their_mean_and_seldom_move_far() -> None:
    law = PrivacyLoss(np.array([-0.3, 0.1, 2.45]), np.array([0.2, 0.5, 0.3]))
    rounded = RoundedLoss.of((law, 40), 1.0)
    places = np.arange(rounded.first, rounded.last + 1)
    assert float(rounded.mass @ places) == pytest.approx(float(law.mass @ law.loss))
    rng = np.random.default_rng(1)
    true = rng.choice(law.loss, p=law.mass, size=(20_000, 40))
    moved = (np.floor(true) + (rng.random(true.shape) < true - np.floor(true)) - true).sum(axis=1)
    assert np.mean(np.abs(moved) > deviation([rounded], math.log(1e-2))) <= 2e-2
    assert deviation([rounded], -1e9) == 40.0


POISSON = "poisson(sigma={},sampling_probability=0.02,steps=1000)"
NO_CLIFF = {
    "Poisson": (POISSON, "add-remove"),
    "Poisson, replaced": (POISSON, "replace-one"),
    "kept bins": ("balls-in-bins(sigma={},steps=50,epochs=20,redraw=once)", "add-remove"),
    "allocation": ("allocation(sigma={},steps=100,epochs=5)", "zero-out"),
    "fixed size": ("fixed-size(sigma={},sampling_probability=0.02,steps=1000)", "replace-one"),
}


@pytest.mark.parametrize("name", NO_CLIFF)
def test_little_noise_is_no_cliff(name: str) -> None:
    """Both ends grow without a jump as the noise falls; epsilon grows like the inverse of its square."""
    phase, adjacency = NO_CLIFF[name]
    last = (0.0, math.inf)
    for sigma in (0.25, 0.2, 0.15, 0.1, 0.05, 0.02, 0.01):
        problem = RunEpsilon.from_fields(
            {"phases": phase.format(sigma), "adjacency": adjacency, "delta": 1e-6}
        )
        found = RunsCertified().answer(problem, seed=0)
        assert last[0] < found.lower
        assert last[1] == math.inf or last[1] < found.upper < 7.0 * last[1]
        assert found.upper <= 1.05 * found.lower
        last = found.lower, found.upper


def test_many_of_many_steps_are_answered_in_the_time_of_a_question() -> None:
    """The lower distribution of k of t, which would take minutes, cannot help beyond its range."""
    asked = RunEpsilon.from_fields(
        {
            "phases": "allocation(sigma=0.02,steps=700,participations=600,epochs=2)",
            "adjacency": "zero-out",
            "delta": 1e-4,
        }
    )
    assert RunsCertified().cost(asked).seconds < 100.0
    found = RunsCertified().answer(asked, seed=0)
    assert 1e6 < found.lower < found.upper < 1.02 * found.lower


def test_a_peer_lies_in_the_bracket() -> None:
    """dp_accounting 0.6 with a loss step of 0.01: 2058, rounded up by at most 10 in 1000 steps."""
    found = RunsCertified().answer(
        RunEpsilon.from_fields({"phases": POISSON.format(0.1), "adjacency": "add-remove", "delta": 1e-6}),
        seed=0,
    )
    assert LOSSES in found.detail
    assert found.upper > 2048.0
    assert found.lower < 2058.0
    assert found.upper <= 1.01 * found.lower
