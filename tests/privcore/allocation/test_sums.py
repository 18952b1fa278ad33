"""Lower bounds of k-of-t allocation from sums of losses."""

import random
from typing import Any

import pytest

from privcore import Answer, Point, Status, evaluate, find
from tests.privcore.draws import problem


def ask(method: str, kind: str, **fields: Any) -> Answer:
    asked = "epsilon" if "delta" in fields else "delta"
    return evaluate(Point(problem=problem(f"{kind}-{asked}", **fields), method=find(method)()))


@pytest.mark.parametrize(
    ("sigma", "steps", "participations", "delta", "monte_carlo"),
    [(1.0, 10, 3, 1e-6, 5.69), (0.5, 10, 3, 1e-6, 17.13)],
)
def test_sums_come_close_to_the_epsilon_by_simulation(
    sigma: float, steps: int, participations: int, delta: float, monte_carlo: float
) -> None:
    """The simulated values have standard errors of 0.015 and 0.01."""
    found = ask(
        "allocation.sums", "allocation", sigma=sigma, steps=steps, participations=participations, delta=delta
    )
    assert 0.98 * monte_carlo <= found.lower <= monte_carlo + 0.06


DRAWN = random.Random(11)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(40))
def test_sums_never_exceed_the_upper_end_and_mostly_exceed_the_lower_one(seed: int) -> None:
    rng = random.Random(seed)
    steps = rng.choice([3, 10, 50, 300])
    fields: dict[str, Any] = {"steps": steps, "participations": rng.randint(2, steps - 1)}
    fields["epochs"] = rng.choice([1, 1, 3])
    kind = rng.choice(["allocation", "allocation", "sampled-allocation", "laplace-allocation"])
    if kind == "laplace-allocation":
        fields["scale"] = rng.uniform(1.0, 4.0)
    else:
        fields["sigma"] = rng.uniform(0.6, 5.0)
        fields["adjacency"] = rng.choice(["remove", "add", "add-remove"])
    if kind == "sampled-allocation":
        fields["sampling_probability"] = rng.choice([0.1, 0.9])
    fields |= (
        {"delta": 10.0 ** -rng.randint(3, 9)} if rng.random() < 0.6 else {"epsilon": rng.uniform(0.0, 6.0)}
    )
    found, known = (ask(method, kind, **fields) for method in ("allocation.sums", "allocation.certified"))
    assert found.status is Status.OK, found
    assert found.lower <= known.upper
    assert found.lower >= 0.9 * known.lower


def test_a_loss_beyond_the_first_threshold_is_found() -> None:
    found = ask("allocation.sums", "allocation", sigma=1.0, steps=100, participations=50, delta=1e-6)
    assert 38.4 <= found.lower <= 40.6


def test_the_threshold_of_the_search_does_not_limit_the_result() -> None:
    found = ask("allocation.sums", "allocation", sigma=1.0, steps=10_000, participations=1000, delta=1e-6)
    assert 129.0 <= found.lower <= 135.7


@pytest.mark.parametrize("participations", [1, 10])
def test_one_step_and_all_steps_are_left_to_the_certified_method(participations: int) -> None:
    found = ask(
        "allocation.sums", "allocation", sigma=1.0, steps=10, participations=participations, delta=1e-6
    )
    assert found.status is Status.NOT_APPLICABLE
    assert "allocation.certified" in found.detail
