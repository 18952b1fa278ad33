"""k-of-t allocation from conditional moments: both ends, against exact values and other methods."""

import itertools
import math
import random
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, hypergeom, norm

from privcore import Answer, Point, Status, evaluate, find
from privcore.likelihood_ratio.allocated.k_of_t import Level, k_of_t
from privcore.likelihood_ratio.distribution import LikelihoodRangeError
from privcore.likelihood_ratio.profile import delta_lower, delta_upper
from privcore.likelihood_ratio.steps import GaussianStep
from tests.privcore.draws import problem

pytestmark = pytest.mark.sampled(8)


def ask(kind: str, method: str = "allocation.conditional", **fields: Any) -> Answer:
    asked = "epsilon" if "delta" in fields else "delta"
    return evaluate(Point(problem=problem(f"{kind}-{asked}", **fields), method=find(method)()))


def width(answer: Answer) -> float:
    return answer.upper / answer.lower - 1.0


@pytest.mark.parametrize(
    ("sigma", "steps", "participations", "simulated", "error"),
    [(1.0, 10, 3, 5.69, 0.015), (0.5, 10, 3, 17.13, 0.01)],
)
def test_the_bracket_is_narrow_and_agrees_with_a_simulation(
    sigma: float, steps: int, participations: int, simulated: float, error: float
) -> None:
    found = ask(
        "allocation", sigma=sigma, steps=steps, participations=participations, delta=1e-6, adjacency="remove"
    )
    assert width(found) <= 0.01
    assert found.lower - 4.0 * error <= simulated <= found.upper + 4.0 * error


@pytest.mark.parametrize("adjacency", ["remove", "add"])
@pytest.mark.parametrize(
    ("sigma", "steps", "participations", "delta"),
    [
        (0.5, 100, 10, 1e-6),
        (0.6, 391, 5, 1.25e-5),
        (1.0, 1000, 10, 1e-6),
        (1.0, 100, 50, 1e-6),
        (1.5, 1000, 300, 1e-6),
        (2.45, 3, 2, 1e-6),
        (0.5, 1000, 300, 1e-6),
        (1.0, 10_000, 3000, 1e-6),
        (9.38, 3, 2, 1e-5),
    ],
)
def test_the_points_that_were_wide_are_within_one_percent(
    sigma: float, steps: int, participations: int, delta: float, adjacency: str
) -> None:
    fields: dict[str, Any] = {
        "sigma": sigma,
        "steps": steps,
        "participations": participations,
        "delta": delta,
    }
    found = ask("allocation", **fields, adjacency=adjacency)
    assert width(found) <= 0.01, found


@pytest.mark.thorough
@pytest.mark.parametrize(("sigma", "steps", "participations"), [(2.45, 3, 2), (9.38, 3, 2), (2.0, 1000, 10)])
def test_epochs_are_within_one_percent(sigma: float, steps: int, participations: int) -> None:
    fields: dict[str, Any] = {"sigma": sigma, "steps": steps, "participations": participations, "epochs": 6}
    found, known = (
        ask("allocation", method, **fields, delta=1e-6)
        for method in ("allocation.conditional", "allocation.certified")
    )
    assert width(found) <= 0.01
    assert max(found.lower, known.lower) <= min(found.upper, known.upper)


def two_of_three(sigma: float, epsilon: float) -> tuple[float, float]:
    """Return delta in both directions for two of three Gaussian steps, by quadrature over two outputs.

    The ratio (X1 X2 + (X1 + X2) X3) / 3 is linear in X3, whose call and put have closed forms.
    """
    s, kappa = 1.0 / sigma, math.exp(epsilon)
    z = np.linspace(-9.0, 9.0 + 3.0 * s, 1500)
    p = norm.pdf(z) * (z[1] - z[0])
    x = np.exp(s * z - 0.5 * s * s)
    a, b = np.multiply.outer(x, x) / 3.0, np.add.outer(x, x) / 3.0
    ends = []
    for threshold in (kappa, 1.0 / kappa):
        strike = np.maximum((threshold - a) / b, 1e-300)
        d = -np.log(strike) / s + 0.5 * s
        call = b * (norm.cdf(d) - strike * norm.cdf(d - s))
        put = b * (strike * norm.cdf(s - d) - norm.cdf(-d))
        ends.append((np.where(a < threshold, call, a + b - threshold), np.where(a < threshold, put, 0.0)))
    return float(p @ ends[0][0] @ p), kappa * float(p @ ends[1][1] @ p)


@pytest.mark.parametrize("adjacency", ["remove", "add"])
@pytest.mark.parametrize(("sigma", "epsilon"), [(1.0, 0.0), (1.0, 2.0), (0.7, 4.0), (2.45, 0.5), (5.0, 0.3)])
def test_two_of_three_is_enclosed_by_quadrature(sigma: float, epsilon: float, adjacency: str) -> None:
    exact = two_of_three(sigma, epsilon)[adjacency == "add"]
    found = ask("allocation", sigma=sigma, steps=3, participations=2, epsilon=epsilon, adjacency=adjacency)
    assert found.lower <= exact * (1.0 + 1e-6)
    assert found.upper >= exact * (1.0 - 1e-6)
    assert found.lower >= 0.9 * exact


@pytest.mark.thorough
@pytest.mark.parametrize("sigma", [1.0, 50.0, 150.0, 300.0])
def test_the_distributions_of_an_epoch_bracket_two_of_three(sigma: float) -> None:
    """With much noise, the approximate centre may lie many deviations from the threshold."""
    level = Level(degree=0, nodes=0.2, lattice=0.15, fineness=0.05)
    try:
        found = k_of_t(GaussianStep(sigma), 2, 3, 1e-10, level)
    except LikelihoodRangeError:
        return
    for epsilon in (0.0, 0.5 / sigma, 2.0 / sigma):
        for direction, exact in zip(("remove", "add"), two_of_three(sigma, epsilon), strict=True):
            assert delta_lower(found.lower, epsilon, direction) <= exact * (1.0 + 1e-6)
            assert delta_upper(found.upper, epsilon, direction) >= exact * (1.0 - 1e-6)


@pytest.mark.parametrize("sigma", [100.0, 200.0])
def test_two_of_three_in_sampled_epochs_is_enclosed(sigma: float) -> None:
    exact = 0.5 * two_of_three(sigma, 0.0)[0]
    found = ask(
        "sampled-allocation",
        sigma=sigma,
        steps=3,
        participations=2,
        sampling_probability=0.5,
        epsilon=0.0,
        adjacency="remove",
    )
    assert found.lower <= exact * (1.0 + 1e-6)
    assert found.upper >= exact * (1.0 - 1e-6)


@pytest.mark.parametrize(
    ("local_epsilon", "participations", "epsilon", "exact"),
    [
        (2.890783949703983, 5, 8.246606286109245, 0.65331901254099),
        (0.8700737588293903, 5, 0.19463574505890152, None),
    ],
)
def test_mass_outside_of_the_window_does_not_raise_a_lower_end(
    local_epsilon: float, participations: int, epsilon: float, exact: float | None
) -> None:
    truth = exact or max(counted(local_epsilon, 20, participations, epsilon))
    found = ask(
        "response-allocation",
        local_epsilon=local_epsilon,
        steps=20,
        participations=participations,
        epsilon=epsilon,
    )
    assert found.lower <= truth * (1.0 + 1e-12)
    assert found.upper >= truth * (1.0 - 1e-12)


def counted(local_epsilon: float, steps: int, participations: int, epsilon: float) -> tuple[float, float]:
    """Return delta in both directions, by the number of steps whose answer speaks for the example."""
    ups, chosen = np.arange(steps + 1), np.arange(participations + 1)
    weights = hypergeom.pmf(chosen[None, :], steps, ups[:, None], participations)
    ratios = (weights * np.exp(local_epsilon * (2.0 * chosen - participations))).sum(axis=1)
    masses = binom.pmf(ups, steps, 1.0 / (1.0 + math.exp(local_epsilon)))
    kappa = math.exp(epsilon)
    return (
        float(masses @ np.maximum(ratios - kappa, 0.0)),
        float(masses @ np.maximum(1.0 - kappa * ratios, 0.0)),
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.5])
@pytest.mark.parametrize(
    ("local_epsilon", "steps", "participations"), [(0.5, 20, 5), (1.0, 30, 12), (2.0, 8, 3), (1.0, 200, 150)]
)
def test_randomized_response_is_enclosed(
    local_epsilon: float, steps: int, participations: int, epsilon: float
) -> None:
    remove, add = counted(local_epsilon, steps, participations, epsilon)
    fields: dict[str, Any] = {
        "local_epsilon": local_epsilon,
        "steps": steps,
        "participations": participations,
    }
    found = ask("response-allocation", **fields, epsilon=epsilon)
    assert found.lower <= max(remove, add) * (1.0 + 1e-12)
    assert found.upper >= max(remove, add) * (1.0 - 1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(60))
def test_brackets_meet_those_of_other_methods_at_drawn_problems(seed: int) -> None:
    rng = random.Random(seed)
    steps = rng.choice([3, 10, 50, 300])
    fields: dict[str, Any] = {"steps": steps, "participations": rng.randint(2, steps - 1)}
    fields["epochs"] = rng.choice([1, 1, 1, 1, 3])
    kind = rng.choice(["allocation", "allocation", "sampled-allocation", "laplace-allocation"])
    if kind == "laplace-allocation":
        fields["scale"] = rng.uniform(1.0, 4.0)
    else:
        fields["sigma"] = rng.uniform(0.5, 6.0)
        fields["adjacency"] = rng.choice(["remove", "add", "add-remove"])
    if kind == "sampled-allocation":
        fields["sampling_probability"] = rng.choice([0.1, 0.9])
    fields |= {"delta": 10.0 ** -rng.uniform(1, 10)} if rng.random() < 0.6 else {"epsilon": rng.uniform(0, 6)}
    found = ask(kind, **fields)
    assert found.status is Status.OK, found
    for method in ("allocation.certified", "allocation.sums"):
        known = ask(kind, method, **fields)
        assert found.lower <= known.upper
        assert known.lower <= found.upper


@pytest.mark.thorough
def test_more_participations_never_have_a_smaller_epsilon() -> None:
    fields: dict[str, Any] = {"sigma": 1.0, "steps": 40, "delta": 1e-6}
    answers = [ask("allocation", participations=k, **fields) for k in (2, 3, 8, 20, 39)]
    for fewer, more in itertools.pairwise(answers):
        assert fewer.lower <= more.upper
        assert fewer.upper < more.lower


@pytest.mark.parametrize("participations", [1, 10])
def test_one_step_and_all_steps_are_left_to_the_certified_method(participations: int) -> None:
    found = ask("allocation", sigma=1.0, steps=10, participations=participations, delta=1e-6)
    assert found.status is Status.NOT_APPLICABLE
    assert "allocation.certified" in found.detail


@pytest.mark.parametrize("fields", [{"sigma": 0.02, "delta": 1e-6}, {"sigma": 1.0, "delta": 1e-120}])
def test_beyond_the_range_of_doubles_the_closed_form_remains(fields: dict[str, Any]) -> None:
    found = ask("allocation", steps=10, participations=3, **fields)
    assert found.status is Status.OK
    assert "closed-form bounds" in found.detail


@pytest.mark.thorough
def test_the_laws_of_an_epoch_are_ordered_and_have_mean_one() -> None:
    law = k_of_t(GaussianStep(1.2), 3, 8, 1e-10, Level(degree=0, nodes=0.3, lattice=0.2, fineness=0.1))
    lower, upper = law.lower, law.upper
    for each in (lower, upper):
        assert each.p @ each.x + each.infinite == pytest.approx(1.0, abs=1e-12)
        assert each.p.sum() == pytest.approx(1.0, abs=1e-12)
    for kappa in np.exp(np.linspace(-4.0, 5.0, 40)):
        calls = [float(each.p @ np.maximum(each.x - kappa, 0.0)) + each.infinite for each in (lower, upper)]
        puts = [float(each.p @ np.maximum(kappa - each.x, 0.0)) for each in (lower, upper)]
        assert calls[0] <= calls[1] * (1.0 + 1e-9)
        assert puts[0] <= puts[1] * (1.0 + 1e-9)
