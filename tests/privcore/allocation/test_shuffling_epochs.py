"""Several epochs of shuffled batches: reference values, enumeration, simulation, and relations of schemes."""

import csv
import itertools
import json
import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privcore import Answer, DomainError, Point, evaluate, find, find_problem
from privcore.allocation.shuffling import largest_output
from privcore.allocation.shuffling_clones import Clones, clones_delta, counts
from privcore.likelihood_ratio import profile
from privcore.likelihood_ratio.allocated.opposed import opposed
from privcore.likelihood_ratio.distribution import RatioBracket, RatioDistribution, Resolution, product_of
from privcore.numerics.gaussian import gaussian_delta_bounds, gaussian_epsilon_bounds
from tests.privcore.draws import problem

pytestmark = pytest.mark.sampled(20)

WITHIN = 0.01
FINE = Resolution(fineness=1.0 / 30.0, tail=1e-14)
LOWER = ("shuffling.composed", "shuffling.largest")
DATA = Path(__file__).parents[1] / "data" / "runs.csv"
RUNS = [row for row in csv.DictReader(DATA.read_text().splitlines()) if row["scheme"].startswith("shuffle")]
EPOCHS = (opposed, largest_output)


def answer(method: str, name: str, **fields: Any) -> Answer:
    return evaluate(Point(problem=problem(name, **fields), method=find(method)()))


def lower_end(name: str, **fields: Any) -> float:
    return max(answer(method, name, **fields).lower for method in LOWER)


def several(law: RatioDistribution, epochs: int) -> RatioDistribution:
    return product_of(RatioBracket(lower=law, upper=law), epochs, FINE).lower


def asked(row: dict[str, str]) -> dict[str, Any]:
    """Return the name and the fields of the problem of a reference value."""
    given = json.loads(row["params"])
    adjacency, direction = given.pop("adjacency"), given.pop("direction")
    return {
        "name": f"shuffling-{row['quantity']}",
        "steps": given.pop("batches"),
        "redraw": "once" if row["scheme"] == "shuffle-once" else "each-epoch",
        "adjacency": adjacency if direction == "both" else direction,
        **given,
    }


def of_kind(kind: str) -> list[dict[str, str]]:
    return [row for row in RUNS if row["digits_or_kind"].startswith(kind)]


@pytest.mark.parametrize("row", of_kind("at_least"), ids=lambda row: row["id"])
def test_the_lower_end_reaches_the_reference_values_within_a_percent(row: dict[str, str]) -> None:
    lower = lower_end(**asked(row))
    assert lower >= (1.0 - WITHIN) * float(row["value"])
    assert lower <= answer("shuffling.clones", **asked(row)).upper


@pytest.mark.parametrize("row", of_kind("at_most"), ids=lambda row: row["id"])
def test_the_upper_end_reaches_the_reference_values_within_a_percent(row: dict[str, str]) -> None:
    upper = answer("shuffling.clones", **asked(row)).upper
    assert lower_end(**asked(row)) <= upper <= (1.0 + WITHIN) * float(row["value"])


@pytest.mark.parametrize(
    ("sigma", "steps", "epochs", "lower", "upper"),
    [
        (2.0, 235, 10, 0.809, math.inf),
        (1.0, 1000, 10, 5.53, math.inf),
        (0.8, 390, 100, 48.6, math.inf),
        (4.0, 1000, 10, 0.1045, 2.64),
        (2.5, 10**5, 10, 0.0, 0.947),
        (3.0, 10**4, 10, 0.0, 1.72),
        (2.5, 10**5, 100, 0.0, 5.34),
    ],
)
def test_both_ends_are_as_tight_as_was_promised(
    sigma: float, steps: int, epochs: int, lower: float, upper: float
) -> None:
    fields = {"sigma": sigma, "steps": steps, "epochs": epochs, "delta": 1e-6, "redraw": "each-epoch"}
    assert lower_end("shuffling-epsilon", **fields) >= (1.0 - WITHIN) * lower
    assert answer("shuffling.clones", "shuffling-epsilon", **fields).upper <= (1.0 + WITHIN) * upper


# ------------------------------------------------------------------ the lower distributions of an epoch


@pytest.mark.parametrize("row", [row for row in RUNS if row["id"] in {"R08", "R09", "R10"}], ids=str)
def test_two_steps_stay_below_the_quadrature_of_the_pair(row: dict[str, str]) -> None:
    given, exact = json.loads(row["params"]), float(row["value"])
    for epoch, close in zip(EPOCHS, (1e-3, 0.03), strict=True):
        law = epoch(1.0 / given["sigma"], 2, FINE)
        assert (1.0 - close) * exact <= profile.delta_lower(law, given["epsilon"], "remove") <= exact


@pytest.mark.parametrize("s", [0.3, 1.0, 1.7])
def test_two_steps_agree_with_a_quadrature_over_both_outputs(s: float) -> None:
    """Also in direction add, in which cells of the ratio lose most."""
    z, width = np.linspace(-9.0, 9.0 + 2.0 * s, 1201, retstep=True)
    density = np.exp(-0.5 * z * z) * (width / math.sqrt(2.0 * math.pi))
    far, near = np.exp(2.0 * s * z - 2.0 * s * s), np.exp(s * z - 0.5 * s * s)
    a, b = 0.5 * np.add.outer(far, far), 0.5 * np.add.outer(near, near)
    base, joint = np.multiply.outer(density, density), opposed(s, 2, FINE)
    for epsilon in (0.0, 0.3, 1.0):
        kappa = math.exp(epsilon)
        for direction, gap in (("remove", a - kappa * b), ("add", b - kappa * a)):
            exact = float(np.sum(base * np.maximum(gap, 0.0)))
            assert 0.99 * exact <= profile.delta_lower(joint, epsilon, direction) <= 1.0001 * exact


@pytest.mark.parametrize(("sigma", "steps", "epochs"), [(1.0, 20, 1), (2.0, 20, 3), (0.7, 5, 2), (3.0, 1, 4)])
def test_the_lower_distributions_agree_with_a_simulation_of_both_densities(
    sigma: float, steps: int, epochs: int
) -> None:
    """The mean of (X - kappa)_+ and (1 - kappa X)_+ over samples of Q, within five standard errors."""
    rng, s, size = np.random.default_rng(7), 1.0 / sigma, 100_000
    ratio = np.ones(size)
    for _ in range(epochs):
        z = rng.standard_normal((size, steps))
        z[:, 0] += s
        ratio *= np.exp(2.0 * s * z - 2.0 * s * s).mean(1) / np.exp(s * z - 0.5 * s * s).mean(1)
    for epsilon in (0.0, 0.5, 1.0):
        for direction, samples in (
            ("remove", np.maximum(ratio - math.exp(epsilon), 0.0)),
            ("add", np.maximum(1.0 - math.exp(epsilon) * ratio, 0.0)),
        ):
            mean, error = float(samples.mean()), 5.0 * float(samples.std()) / math.sqrt(size)
            joint, largest = (
                profile.delta_lower(several(epoch(s, steps, FINE), epochs), epsilon, direction)
                for epoch in EPOCHS
            )
            assert max(joint, largest) <= mean + error
            assert joint >= 0.85 * (mean - error)


def test_ratios_beyond_the_range_of_doubles_leave_the_test_on_one_output() -> None:
    for sigma in (0.003, 0.05):
        for name, at in (("shuffling-epsilon", {"delta": 1e-6}), ("shuffling-delta", {"epsilon": 0.1})):
            fields = {"sigma": sigma, "steps": 5000, "epochs": 10, "redraw": "each-epoch", **at}
            assert answer("shuffling.composed", name, **fields).ok
            assert lower_end(name, **fields) > 0.0


def test_a_coarser_grid_gives_a_smaller_lower_end() -> None:
    for epoch in EPOCHS:
        ends = []
        for fineness in (0.5, 0.2, 0.05):
            res = Resolution(fineness=fineness, tail=1e-12)
            ends.append(profile.epsilon_lower(epoch(1.0, 64, res), 1e-6, "remove"))
        assert ends[0] <= ends[1] * (1.0 + 1e-3)
        assert ends[1] <= ends[2] * (1.0 + 1e-3)
        assert ends[0] >= 0.8 * ends[2]


@pytest.mark.parametrize("epoch", EPOCHS)
@pytest.mark.parametrize(("sigma", "steps"), [(0.5, 10), (1.0, 1000), (5.0, 3), (50.0, 10**6), (3.0, 10**9)])
def test_a_lower_distribution_has_mass_and_mean_one_except_for_its_tails(
    epoch: Any, sigma: float, steps: int
) -> None:
    law = epoch(1.0 / sigma, steps, FINE)
    slack = 2.0 * law.mass_error + law.value_error + 1e-11
    assert 1.0 - slack <= float(np.sum(law.p)) <= 1.0 + slack
    assert 1.0 - slack <= float(law.p @ law.x) <= 1.0 + slack


@pytest.mark.parametrize("sigma", [0.5, 1.0, 4.0])
def test_the_cells_of_one_output_are_as_precise_as_claimed(sigma: float) -> None:
    """One step is the Gaussian mechanism, whose profile is known."""
    law = opposed(1.0 / sigma, 1, Resolution(fineness=0.01, tail=1e-14))
    for epsilon in (0.1, 1.0, 2.0):
        low, high = gaussian_delta_bounds(sigma, epsilon)
        if low > 1e-8:
            assert 0.999 * low <= profile.delta_lower(law, epsilon, "zero-out") <= high


# ------------------------------------------------------------------------- the counts of clones, composed


def pair_of_counts(pair_epsilon: float, rate: float, others: int) -> list[tuple[float, float]]:
    """Return the probabilities of all counts under P and under Q."""
    a = 1.0 / (1.0 + math.exp(-pair_epsilon))
    found = []
    for c in range(others + 1):
        row = [math.comb(c, x) / 2**c for x in range(c + 1)]
        weight = math.comb(others, c) * rate**c * (1.0 - rate) ** (others - c)
        for before, same in zip([0.0, *row], [*row, 0.0], strict=True):
            found.append((weight * (a * before + (1.0 - a) * same), weight * ((1.0 - a) * before + a * same)))
    return found


@pytest.mark.parametrize(
    ("pair_epsilon", "rate", "others", "epochs"),
    [(1.0, 0.5, 5, 2), (2.0, 0.3, 4, 3), (0.5, 0.9, 7, 2), (3.0, 0.05, 6, 2), (1.0, 0.6, 3, 3)],
)
def test_the_composed_counts_dominate_their_enumeration(
    pair_epsilon: float, rate: float, others: int, epochs: int
) -> None:
    pairs = pair_of_counts(pair_epsilon, rate, others)
    law = product_of(counts(pair_epsilon, rate, others, FINE), epochs, FINE).upper
    merged: Counter[tuple[float, float]] = Counter()
    for several_counts in itertools.combinations_with_replacement(range(len(pairs)), epochs):
        orders = math.factorial(epochs)
        for repeated in Counter(several_counts).values():
            orders //= math.factorial(repeated)
        p = math.prod(pairs[i][0] for i in several_counts)
        q = math.prod(pairs[i][1] for i in several_counts)
        merged[p, q] += orders
    for epsilon in (0.0, 0.3, 1.0):
        exact = math.fsum(times * max(0.0, p - math.exp(epsilon) * q) for (p, q), times in merged.items())
        for direction in ("remove", "add"):
            assert exact * (1.0 - 1e-12) <= profile.delta_upper(law, epsilon, direction)
            assert profile.delta_upper(law, epsilon, direction) <= 1.02 * exact + 1e-9


def test_the_counts_of_one_epoch_agree_with_their_formula() -> None:
    """The formula maximises over the threshold, the distribution sums its atoms."""
    for pair_epsilon, rate, others in (
        (1.0, 0.5, 1000),
        (3.0, 0.05, 10**5),
        (0.3, 0.4, 10**7),
        (2.0, 0.2, 10**9),
    ):
        law = counts(pair_epsilon, rate, others, FINE).upper
        scale = pair_epsilon / math.sqrt(others * rate)
        for epsilon in (0.0, scale, 3.0 * scale):
            formula = clones_delta(pair_epsilon, rate, others, epsilon)
            assert profile.delta_upper(law, epsilon, "remove") == pytest.approx(formula, rel=0.03)


def test_the_cost_of_the_approximation_is_within_its_budget() -> None:
    for distance in (1.0, 2.0):
        clones = Clones(sigma=4.0, others=999, distance=distance)
        for epsilon, budget in ((0.5, 1e-7), (3.0, 1e-6)):
            for split in (0.5, 0.3):
                terms = clones.terms(epsilon, budget, split)
                assert terms is not None
                assert 0.2 * budget <= (1.0 + math.exp(epsilon)) * terms[2] <= 2.0 * budget


def test_designated_examples_are_uniformly_permuted() -> None:
    """One example of each of three batches of two: every set of designated ones is in every order equally."""
    orders: dict[frozenset[int], Counter[tuple[int, ...]]] = {}
    for order in itertools.permutations(range(6)):
        batches = [order[:2], order[2:4], order[4:]]
        choices = [[0] if 0 in batch else list(batch) for batch in batches]  # 0 is the differing example
        weight = 4 // math.prod(len(choice) for choice in choices)
        for chosen in itertools.product(*choices):
            orders.setdefault(frozenset(chosen), Counter())[chosen] += weight
    assert len(orders) == math.comb(5, 2)
    for counted in orders.values():
        assert len(counted) == 6
        assert len(set(counted.values())) == 1


# ------------------------------------------------------------------------------ relations of the schemes


def test_one_step_in_each_epoch_is_the_gaussian_mechanism() -> None:
    for sigma, epochs, delta in ((1.0, 3, 1e-6), (5.0, 20, 1e-4)):
        exact = gaussian_epsilon_bounds(sigma / math.sqrt(epochs), delta)
        for redraw in ("each-epoch", "once"):
            fields = {"sigma": sigma, "steps": 1, "delta": delta, "epochs": epochs, "redraw": redraw}
            assert 0.99 * exact[0] <= lower_end("shuffling-epsilon", **fields) <= exact[1]
            upper = answer("shuffling.clones", "shuffling-epsilon", **fields).upper
            assert exact[0] <= upper <= exact[1] * (1.0 + 1e-9)
        half = gaussian_epsilon_bounds(0.5 * sigma / math.sqrt(epochs), delta)
        fields = {"sigma": sigma, "steps": 1, "delta": delta, "epochs": epochs, "redraw": "once"}
        fields |= {"adjacency": "replace-one"}
        assert 0.98 * half[0] <= lower_end("shuffling-epsilon", **fields) <= half[1]
        assert answer("shuffling.clones", "shuffling-epsilon", **fields).upper <= half[1] * (1.0 + 1e-9)


def test_epochs_with_one_order_are_one_epoch_with_less_noise() -> None:
    for epochs, sigma in ((4, 2.0), (9, 3.0)):
        fields = {"steps": 100, "delta": 1e-6}
        one = answer("shuffling.composed", "shuffling-epsilon", sigma=sigma / math.sqrt(epochs), **fields)
        kept = {"sigma": sigma, "epochs": epochs, "redraw": "once", **fields}
        assert answer("shuffling.composed", "shuffling-epsilon", **kept).lower == one.lower
        detail = answer("shuffling.clones", "shuffling-epsilon", **kept).detail
        assert (
            detail
            == "no amplification; no better upper end is known for an order that is kept for all epochs"
        )


def test_an_order_that_is_kept_is_never_better_than_new_ones() -> None:
    """Averaging both densities over permutations of the steps of every epoch is a contraction."""
    for sigma, steps, epochs in ((1.0, 10, 10), (2.0, 235, 10), (3.0, 50, 4)):
        fields = {"sigma": sigma, "steps": steps, "epochs": epochs, "delta": 1e-5}
        for adjacency in ("zero-out", "replace-one"):
            kept, new = (
                lower_end("shuffling-epsilon", redraw=redraw, adjacency=adjacency, **fields)
                for redraw in ("once", "each-epoch")
            )
            assert kept >= 0.99 * new


def test_the_lower_end_of_allocation_is_one_of_shuffling() -> None:
    for sigma, steps, epochs in ((4.0, 1000, 10), (2.0, 235, 10), (0.5, 100, 2), (20.0, 100, 30)):
        fields = {"sigma": sigma, "steps": steps, "epochs": epochs, "delta": 1e-6}
        allocation = answer("allocation.certified", "allocation-epsilon", **fields).lower
        assert lower_end("shuffling-epsilon", redraw="each-epoch", **fields) >= 0.995 * allocation


def test_replacing_an_example_reveals_more_than_zeroing_it_out() -> None:
    for sigma, epochs in ((1.0, 3), (3.0, 10)):
        fields = {"sigma": sigma, "steps": 200, "epochs": epochs, "delta": 1e-6, "redraw": "each-epoch"}
        zero = lower_end("shuffling-epsilon", **fields)
        assert lower_end("shuffling-epsilon", adjacency="replace-one", **fields) >= zero
        for adjacency in ("remove", "add"):
            assert lower_end("shuffling-epsilon", adjacency=adjacency, **fields) <= zero


@pytest.mark.thorough
def test_the_ends_never_cross_on_drawn_problems() -> None:
    rng = random.Random(5)
    for _ in range(15):
        fields = {
            "sigma": math.exp(rng.uniform(-1.5, 3.0)),
            "steps": round(math.exp(rng.uniform(0.0, 14.0))),
            "epochs": round(math.exp(rng.uniform(0.0, 5.0))),
            "delta": 10.0 ** rng.uniform(-12.0, -1.0),
            "redraw": rng.choice(("each-epoch", "once")),
            "adjacency": rng.choice(("zero-out", "remove", "add", "replace-one")),
        }
        upper = answer("shuffling.clones", "shuffling-epsilon", **fields).upper
        assert lower_end("shuffling-epsilon", **fields) <= upper, fields


def test_delta_and_epsilon_agree_over_several_epochs() -> None:
    fields = {"sigma": 3.0, "steps": 10**4, "epochs": 10, "redraw": "each-epoch"}
    upper = answer("shuffling.clones", "shuffling-epsilon", delta=1e-6, **fields).upper
    assert 5e-7 <= answer("shuffling.clones", "shuffling-delta", epsilon=upper, **fields).upper <= 1.1e-6
    lower = lower_end("shuffling-epsilon", delta=1e-6, **fields)
    assert 0.8e-6 <= lower_end("shuffling-delta", epsilon=lower, **fields) <= 1.3e-6
    for epsilon in (-0.2, -1.0):
        trivial = -math.expm1(epsilon)
        bounds = (
            lower_end("shuffling-delta", epsilon=epsilon, **fields),
            answer("shuffling.clones", "shuffling-delta", epsilon=epsilon, **fields).upper,
        )
        assert trivial * (1.0 - 1e-9) <= bounds[0] <= bounds[1] < 1.0


# ------------------------------------------------------------------------------- words of the problems


def test_the_former_word_of_the_relation_is_read_and_refused_in_questions() -> None:
    kind = find_problem("shuffling-epsilon")
    given = {"sigma": 1.0, "steps": 10, "delta": 1e-5, "adjacency": "add-remove"}
    read = kind.from_fields(given)
    assert read == kind.from_fields(given | {"adjacency": "zero-out"})
    assert read.identity() == {"sigma": 1.0, "steps": 10, "delta": 1e-5}
    with pytest.raises(DomainError, match="add-remove is defined only if every epoch leaves"):
        kind.asked(given)
    assert kind.asked(given | {"adjacency": "replace-one"}).as_fields()["adjacency"] == "replace-one"


def test_several_epochs_need_a_word_about_their_order() -> None:
    fields = {"sigma": 1.0, "steps": 10, "delta": 1e-5, "epochs": 2}
    with pytest.raises(DomainError, match="Expected redraw each-epoch"):
        problem("shuffling-epsilon", **fields)
    for epochs, redraw in ((2, "once"), (2, "each-epoch"), (1, "once"), (1, "one-epoch")):
        problem("shuffling-epsilon", **fields | {"epochs": epochs, "redraw": redraw})
