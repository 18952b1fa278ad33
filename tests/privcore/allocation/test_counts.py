"""Allocation and capped sampling of private steps against enumerations of all answers."""

import itertools
import math
from typing import Any

import pytest

from privcore import Answer, Point, evaluate, find
from privcore.allocation.counts import MOST_WORK
from tests.privcore.draws import problem


def ask(kind: str, **fields: Any) -> Answer:
    return evaluate(Point(problem=problem(kind, **fields), method=find("allocation.counts")()))


def enumerated(
    local: tuple[float, float], shares: list[float], epochs: int, epsilon: float, direction: str
) -> float:
    """Return delta over all outputs of all steps: true or false for certain (c, f), or random answers (1, 0).

    Args:
        local: Epsilon and delta of a step.
        shares: Probabilities of 0, 1, ..., t participations in an epoch of t steps.
        epochs: Number of epochs.
        epsilon: Epsilon.
        direction: `remove` or `add`.
    """
    true, leak, steps = 1.0 / (1.0 + math.exp(-local[0])), local[1], len(shares) - 1
    using = {"c": leak, "f": 0.0, "1": (1.0 - leak) * true, "0": (1.0 - leak) * (1.0 - true)}
    other = {"c": 0.0, "f": leak, "1": (1.0 - leak) * (1.0 - true), "0": (1.0 - leak) * true}
    sets = [
        (share / math.comb(steps, k), chosen)
        for k, share in enumerate(shares)
        for chosen in itertools.combinations(range(steps), k)
    ]
    one = [
        (
            sum(w * math.prod((using if i in s else other)[a] for i, a in enumerate(out)) for w, s in sets),
            math.prod(other[a] for a in out),
        )
        for out in itertools.product("cf10", repeat=steps)
    ]
    pairs = [(1.0, 1.0)]
    for _ in range(epochs):
        pairs = [(p * p1, q * q1) for p, q in pairs for p1, q1 in one]
    if direction == "add":
        pairs = [(q, p) for p, q in pairs]
    return math.fsum(max(0.0, p - math.exp(epsilon) * q) for p, q in pairs)


def capped(steps: int, rate: float, most: int) -> list[float]:
    """Return the probabilities of 0, 1, ..., t participations with a cap."""
    shares = [0.0] * (steps + 1)
    for k in range(steps + 1):
        shares[min(k, most)] += math.comb(steps, k) * rate**k * (1.0 - rate) ** (steps - k)
    return shares


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize(
    ("local", "steps", "participations", "epochs", "epsilon"),
    [
        ((1.0, 0.01), 4, 1, 1, 0.3),
        ((1.0, 0.01), 4, 2, 1, 0.3),
        ((2.0, 1e-6), 5, 1, 1, 1.5),
        ((1.0, 0.05), 3, 2, 2, -0.3),
        ((1.0, 0.2), 3, 2, 1, 3.0),
        ((1.0, 0.0), 3, 3, 1, 0.5),
    ],
)
def test_allocation_of_a_private_step_is_enclosed(
    local: tuple[float, float], steps: int, participations: int, epochs: int, epsilon: float, direction: str
) -> None:
    shares = [float(k == participations) for k in range(steps + 1)]
    truth = enumerated(local, shares, epochs, epsilon, direction)
    fields: dict[str, Any] = {"local_epsilon": local[0], "local_delta": local[1], "steps": steps}
    fields |= {"participations": participations, "epochs": epochs, "epsilon": epsilon, "adjacency": direction}
    found = ask("response-allocation-delta", **fields)
    assert found.lower <= truth * (1.0 + 1e-13)
    assert truth * (1.0 - 1e-13) <= found.upper <= found.lower * (1.0 + (1e-7 if epochs == 1 else 0.01))
    method = find("allocation.certified")()
    other = evaluate(Point(problem=problem("response-allocation-delta", **fields), method=method))
    assert other.lower <= truth * (1.0 + 1e-13)
    assert truth * (1.0 - 1e-13) <= other.upper


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize(
    ("local", "steps", "rate", "most", "epochs"),
    [
        ((1.0, 0.0), 4, 0.2, 2, 1),
        ((1.0, 0.01), 4, 0.9, 2, 1),
        ((1.0, 0.01), 3, 0.2, 1, 2),
        ((2.0, 0.001), 5, 1.0, 3, 1),
    ],
)
def test_capped_sampling_is_enclosed(
    local: tuple[float, float], steps: int, rate: float, most: int, epochs: int, direction: str
) -> None:
    truth = enumerated(local, capped(steps, rate, most), epochs, 0.3, direction)
    found = ask(
        "capped-response-delta",
        local_epsilon=local[0],
        local_delta=local[1],
        steps=steps,
        sampling_probability=rate,
        largest_participations=most,
        epochs=epochs,
        epsilon=0.3,
        adjacency=direction,
    )
    assert found.lower <= truth * (1.0 + 1e-13)
    assert truth * (1.0 - 1e-13) <= found.upper <= found.lower * (1.0 + (1e-7 if epochs == 1 else 0.02))


@pytest.mark.parametrize(("most", "expected"), [(2, "0.0912955"), (10, "0.1525322")])
def test_a_cap_lowers_the_profile_of_poisson_sampling(most: int, expected: str) -> None:
    """Ten steps, rate 0.2, epsilon 1 of a step, direction remove; a cap of 10 is none (Corollary 4.7)."""
    fields = {"local_epsilon": 1.0, "steps": 10, "sampling_probability": 0.2, "epsilon": 0.3}
    found = ask("capped-response-delta", **fields, largest_participations=most, adjacency="remove")
    assert f"{found.lower:.7f}" == f"{found.upper:.7f}" == expected


def test_a_cap_of_all_steps_composes_sampled_responses() -> None:
    """One step of an epoch, 30 epochs: the product of the ratios 1 - rate + rate e^(+-epsilon)."""
    rate, epochs, epsilon = 0.1, 30, 0.4
    p = 1.0 / (1.0 + math.e)
    truth = 0.0
    for ones in range(epochs + 1):
        mass = math.comb(epochs, ones) * p**ones * (1.0 - p) ** (epochs - ones)
        ratio = (1.0 - rate + rate * math.e) ** ones * (1.0 - rate + rate / math.e) ** (epochs - ones)
        truth += mass * max(0.0, ratio - math.exp(epsilon))
    found = ask(
        "capped-response-delta",
        local_epsilon=1.0,
        steps=1,
        sampling_probability=rate,
        largest_participations=1,
        epochs=epochs,
        epsilon=epsilon,
        adjacency="remove",
    )
    assert found.lower <= truth <= found.upper <= 1.01 * found.lower


def test_ten_thousand_steps_that_may_leak_are_enclosed_to_nine_digits() -> None:
    found = ask(
        "capped-response-epsilon",
        local_epsilon=1.0,
        local_delta=1e-9,
        steps=10_000,
        sampling_probability=5e-4,
        largest_participations=10,
        delta=1e-6,
    )
    assert 0.19798 < found.lower < found.upper < found.lower * (1.0 + 1e-8) < 0.19799


def test_a_delta_below_that_of_all_uses_has_no_epsilon() -> None:
    fields = {"local_epsilon": 1.0, "local_delta": 0.01, "steps": 4, "participations": 2}
    assert ask("response-allocation-epsilon", **fields, delta=0.019).upper == math.inf
    assert ask("response-allocation-epsilon", **fields, delta=0.02).upper < 2.0


def test_too_many_numbers_are_refused_with_the_limit() -> None:
    found = ask("response-allocation-delta", local_epsilon=1.0, steps=10**6, participations=11, epsilon=1.0)
    assert not found.ok
    assert str(MOST_WORK) in found.detail
