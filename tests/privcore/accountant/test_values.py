"""Numbers of the accountant: closed forms, reference values, and 200 random trees in dp-accounting."""

import csv
import json
import math
import random
import time
from collections import defaultdict
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dp_accounting import LowerEndpointAndGuess, NeighboringRelation, calibrate_dp_mechanism, dp_event
from dp_accounting.pld import PLDAccountant

from privcore.accountant import PrivsweepAccountant
from privcore.numerics.gaussian import gaussian_delta_bounds, gaussian_epsilon_bounds
from tests.privcore.accountant.trees import DRAWS, EpsilonDeltaDpEvent, factors, tree, truncated

ADD, REPLACE, ZERO = (
    NeighboringRelation.ADD_OR_REMOVE_ONE,
    NeighboringRelation.REPLACE_ONE,
    NeighboringRelation.REPLACE_SPECIAL,
)
ROWS = list(csv.DictReader((Path(__file__).parents[1] / "data" / "runs.csv").read_text().splitlines()))
EVENTS = [row for row in ROWS if 24 <= int(row["id"][1:]) <= 50]
GAUSSIAN = dp_event.GaussianDpEvent(1.0)
LOSS_STEP = 1e-3
"""Loss step of dp-accounting in these tests."""


def accountant(relation: NeighboringRelation, **options: Any) -> PrivsweepAccountant:
    """Return an accountant whose replacements are 2 clipping norms apart, as in dp-accounting."""
    return PrivsweepAccountant(relation, sensitivity=2 if relation is REPLACE else None, **options)


def encloses(interval: tuple[float, float], value: float, relative: float) -> bool:
    return interval[0] <= value * (1.0 + relative) and value * (1.0 - relative) <= interval[1]


@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.1])
def test_gaussian_steps_add_the_squares_of_their_inverse_noise(delta: float) -> None:
    parts = [(1.0, 3), (0.7, 1), (30.0, 1000)]
    event = dp_event.ComposedDpEvent(
        [dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(noise), count) for noise, count in parts]
    )
    sigma = 1.0 / math.sqrt(sum(count / noise**2 for noise, count in parts))
    lower, upper = accountant(ADD).compose(event).get_epsilon_interval(delta)
    exact = gaussian_epsilon_bounds(sigma, delta)
    assert lower <= exact[1]
    assert exact[0] <= upper
    assert upper <= lower * (1.0 + 1e-11)
    at = accountant(ADD).compose(event).get_delta_interval(upper)
    assert encloses(at, gaussian_delta_bounds(sigma, upper)[0], 0.0)
    assert at[1] <= delta <= at[0] * (1.0 + 1e-9)


def test_laplace_noise_without_sampling_has_its_closed_forms() -> None:
    one = accountant(ADD).compose(dp_event.LaplaceDpEvent(2.0))
    assert encloses(one.get_delta_interval(0.2), 1.0 - math.exp(0.5 * (0.2 - 0.5)), 1e-12)
    ten = accountant(ADD).compose(dp_event.LaplaceDpEvent(2.0), 10)
    assert ten.get_epsilon_interval(0.0) == pytest.approx((5.0, 5.0), rel=1e-12)
    assert ten.get_delta(5.0 * (1.0 + 1e-12)) == 0.0


def test_sampled_laplace_noise_has_the_loss_of_the_likelier_direction() -> None:
    event = dp_event.PoissonSampledDpEvent(0.2, dp_event.LaplaceDpEvent(0.5))
    interval = accountant(ADD).compose(event, 3).get_epsilon_interval(0.0)
    assert encloses(interval, 3.0 * math.log1p(0.2 * math.expm1(2.0)), 0.0)
    assert interval[1] <= interval[0] * (1.0 + 1e-12)


@pytest.mark.parametrize(("relation", "loss"), [(REPLACE, math.log(3.5 / 0.5)), (ZERO, math.log(3.5))])
def test_randomized_response_has_the_largest_log_ratio_of_its_outputs(
    relation: NeighboringRelation, loss: float
) -> None:
    event = dp_event.RandomizedResponseDpEvent(0.5, 6)
    interval = accountant(relation).compose(event, 4).get_epsilon_interval(0.0)
    assert encloses(interval, 4.0 * loss, 0.0)
    assert interval[1] <= interval[0] * (1.0 + 1e-12)


@pytest.mark.parametrize("relation", [REPLACE, ZERO])
def test_repeated_randomized_response_has_the_profile_of_its_counts(relation: NeighboringRelation) -> None:
    noise, buckets, times, epsilon = 0.6, 3, 4, 0.7
    change = noise / buckets
    p = {0: 1.0 - noise + change, 1: change, 2: change}
    q = dict.fromkeys(range(3), 1.0 / 3.0) if relation is ZERO else {0: change, 1: p[0], 2: change}
    exact = 0.0
    for pair in ((p, q), (q, p)):
        delta = 0.0
        for outputs in np.ndindex(*[buckets] * times):
            first, second = (math.prod(ratio[o] for o in outputs) for ratio in pair)
            delta += max(0.0, first - math.exp(epsilon) * second)
        exact = max(exact, delta)
    event = dp_event.RandomizedResponseDpEvent(noise, buckets)
    interval = accountant(relation).compose(event, times).get_delta_interval(epsilon)
    assert encloses(interval, exact, 1e-12)
    assert interval[1] <= interval[0] * 1.01


def test_discrete_laplace_noise_has_the_profile_of_its_shift() -> None:
    noise, shift, epsilon = 0.4, 3, 0.5
    x = np.arange(-200, 200)
    q = math.tanh(noise / 2.0) * np.exp(-noise * np.abs(x))
    p = math.tanh(noise / 2.0) * np.exp(-noise * np.abs(x - shift))
    exact = float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())
    event = dp_event.DiscreteLaplaceDpEvent(noise, shift)
    interval = accountant(ADD).compose(event).get_delta_interval(epsilon)
    assert encloses(interval, exact, 1e-12)
    assert interval[1] <= interval[0] * (1.0 + 1e-12)


def test_a_shift_of_two_coordinates_loses_less_than_one_of_the_sum() -> None:
    once = accountant(ADD).compose(dp_event.DiscreteLaplaceDpEvent(0.4, 3))
    split = accountant(ADD).compose(dp_event.DiscreteLaplaceDpEvent(0.4, 2))
    split.compose(dp_event.DiscreteLaplaceDpEvent(0.4, 1))
    for epsilon in (0.0, 0.3, 0.9):
        assert split.get_delta_interval(epsilon)[0] <= once.get_delta_interval(epsilon)[1]


def event_of(scheme: str, params: dict[str, Any]) -> dp_event.DpEvent:
    """Return the event of a row of the reference values."""
    gaussian = dp_event.GaussianDpEvent(params["sigma"])
    if scheme == "fixed-size-without-replacement":
        batch = round(10_000 * params["rate"])
        return dp_event.SampledWithoutReplacementDpEvent(10_000, batch, gaussian)
    if scheme == "fixed-size-with-replacement":
        return dp_event.SampledWithReplacementDpEvent(params["examples"], params["batch"], gaussian)
    if scheme == "truncated-poisson":
        return dp_event.TruncatedSubsampledGaussianDpEvent(
            params["examples"], params["rate"], params["largest_batch"], params["sigma"]
        )
    assert scheme == "poisson"
    return dp_event.PoissonSampledDpEvent(params["rate"], gaussian)


@pytest.mark.parametrize("row", EVENTS, ids=lambda row: row["id"])
def test_reference_values_are_respected(row: dict[str, str]) -> None:
    params, value = json.loads(row["params"]), float(row["value"])
    relations = {"add-remove": ADD, "replace-one": REPLACE, "zero-out": ZERO}
    found = accountant(relations[params["adjacency"]])
    found.compose(event_of(row["scheme"], params), params["steps"])
    asks_delta = row["quantity"] == "delta"
    interval = (
        found.get_delta_interval(params["epsilon"])
        if asks_delta
        else found.get_epsilon_interval(params["delta"])
    )
    kind, _, digits = row["digits_or_kind"].partition(":")
    slack = 10.0 ** (1 - int(digits)) if digits else 5e-3
    lower, upper = interval
    assert lower <= upper
    if kind in ("exact", "at_least"):  # the accountant answers for the worse of both directions
        assert upper >= value * (1.0 - slack)
    if kind == "exact" and params["direction"] in ("both", "remove"):
        assert lower <= value * (1.0 + slack)
        assert upper <= lower * (1.01 if not asks_delta else 1.1) or row["scheme"] == "truncated-poisson"
    if kind == "at_least":
        assert lower >= value * 0.99
    if kind == "at_most" and params["direction"] == "remove":
        assert upper <= value * 1.01
    if kind == "peer":
        assert upper >= value * 0.99 or row["scheme"] == "truncated-poisson"


@pytest.mark.parametrize("seed", range(100))
def test_a_random_tree_agrees_with_dp_accounting(seed: int) -> None:
    rng = random.Random(seed)
    relation = rng.choice(list(DRAWS))
    event, delta = tree(rng, DRAWS[relation]), 10.0 ** rng.uniform(-9.0, -3.0)
    lower, upper = accountant(relation).compose(event).get_epsilon_interval(delta)
    peer = PLDAccountant(relation, LOSS_STEP).compose(event).get_epsilon(delta)
    assert upper <= lower * (1.0 + 4e-3)
    assert lower <= peer * (1.0 + 1e-9)
    spread, rounded = factors(event)
    loose = accountant(relation).compose(event)
    if spread:
        loose.compose(EpsilonDeltaDpEvent(LOSS_STEP, 0.0), spread)
    assert peer <= (loose.get_epsilon(delta) + rounded * LOSS_STEP) * (1.0 + 1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_truncated_batches_lose_at_most_what_dp_accounting_says(seed: int) -> None:
    rng = random.Random(seed)
    relation, count = rng.choice(list(DRAWS)), rng.randint(1, 30)
    event, delta = truncated(rng, count), 10.0 ** rng.uniform(-7.0, -3.0)
    lower, upper = accountant(relation).compose(event, count).get_epsilon_interval(delta)
    peer = PLDAccountant(relation, LOSS_STEP).compose(event, count).get_epsilon(delta)
    assert lower <= peer * (1.0 + 1e-9)
    assert upper <= peer * (1.0 + 4e-3)


@pytest.mark.parametrize("relation", [ADD, REPLACE, ZERO])
def test_batches_of_one_example_are_the_same_with_and_without_replacement(
    relation: NeighboringRelation,
) -> None:
    gaussian = dp_event.GaussianDpEvent(0.8)
    kept = accountant(relation).compose(dp_event.SampledWithReplacementDpEvent(50, 1, gaussian), 30)
    other = accountant(relation).compose(dp_event.SampledWithoutReplacementDpEvent(50, 1, gaussian), 30)
    first, second = kept.get_epsilon_interval(1e-4), other.get_epsilon_interval(1e-4)
    assert max(first[0], second[0]) <= min(first[1], second[1])
    assert first[1] == pytest.approx(second[1], rel=5e-3) or relation is ZERO  # which has a better bound


@pytest.mark.parametrize("relation", [ADD, REPLACE, ZERO])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_truncated_batches_of_a_few_examples_have_both_ends(
    relation: NeighboringRelation, epsilon: float
) -> None:
    event = dp_event.TruncatedSubsampledGaussianDpEvent(4, 0.5, 2, 1.2)
    interval = accountant(relation).compose(event).get_delta_interval(epsilon)
    for others in (0.0, 1.0, -1.0):
        assert truncated_delta(relation, others, 1.2, epsilon) <= interval[1]
    assert interval[0] <= truncated_delta(relation, 0.0, 1.2, epsilon) * (1.0 + 1e-6)


def truncated_delta(relation: NeighboringRelation, others: float, sigma: float, epsilon: float) -> float:
    """Return the larger direction of delta of a step with 4 examples, rate 1/2 and batches of at most 2.

    The example has the gradient 1, all others the same; batches are enumerated, and integrals are sums.
    """
    replaced = {ADD: None, REPLACE: -1.0, ZERO: 0.0}[relation]
    ratios = []
    for gradient in (1.0, replaced):
        values = [others] * 3 + ([] if gradient is None else [gradient])
        means: defaultdict[float, float] = defaultdict(float)
        for included in product((False, True), repeat=len(values)):
            sample = [value for value, used in zip(values, included, strict=True) if used]
            batches = list(combinations(sample, 2)) if len(sample) > 2 else [tuple(sample)]
            for batch in batches:
                means[sum(batch)] += 0.5 ** len(values) / len(batches)
        z = np.linspace(-14.0, 14.0, 40_001)
        ratios.append(np.sum([w * np.exp(-0.5 * ((z - at) / sigma) ** 2) for at, w in means.items()], axis=0))
    first, second = (ratio / ratio.sum() for ratio in ratios)
    return max(
        float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum()) for p, q in ((first, second), (second, first))
    )


@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_composition_is_irrelevant(seed: int) -> None:
    rng = random.Random(seed)
    relation = rng.choice(list(DRAWS))
    events = [tree(rng, DRAWS[relation]) for _ in range(3)]
    first, second = accountant(relation), accountant(relation)
    for event in events:
        first.compose(event)
    second.compose(dp_event.ComposedDpEvent(events[::-1]))
    assert first.get_epsilon_interval(1e-6) == second.get_epsilon_interval(1e-6)
    assert first.get_delta_interval(0.5) == second.get_delta_interval(0.5)


def test_equal_steps_are_counted_wherever_they_are() -> None:
    step = dp_event.PoissonSampledDpEvent(0.01, dp_event.GaussianDpEvent(1.0))
    nested = dp_event.ComposedDpEvent(
        [
            dp_event.SelfComposedDpEvent(dp_event.ComposedDpEvent([step, step]), 20),
            dp_event.NoOpDpEvent(),
            step,
        ]
    )
    counted = accountant(ADD).compose(step, 41)
    assert accountant(ADD).compose(nested).get_epsilon_interval(1e-5) == counted.get_epsilon_interval(1e-5)


def training(noise: float, steps: int = 500) -> dp_event.DpEvent:
    return dp_event.SelfComposedDpEvent(
        dp_event.PoissonSampledDpEvent(0.02, dp_event.GaussianDpEvent(noise)), steps
    )


def test_calibrated_noise_meets_the_target_and_little_less_noise_does_not() -> None:
    noise = calibrate_dp_mechanism(lambda: accountant(ADD), training, 1.0, 1e-5, tol=1e-4)
    assert accountant(ADD).compose(training(noise)).get_epsilon(1e-5) <= 1.0
    assert accountant(ADD).compose(training(noise * 0.99)).get_epsilon_interval(1e-5)[0] > 1.0


def test_calibrated_steps_meet_the_target_and_a_percent_more_does_not() -> None:
    steps = calibrate_dp_mechanism(
        lambda: accountant(ADD),
        lambda steps: training(1.5, steps),
        1.0,
        1e-5,
        bracket_interval=LowerEndpointAndGuess(1, 100),
        discrete=True,
    )
    assert accountant(ADD).compose(training(1.5, steps)).get_epsilon(1e-5) <= 1.0
    assert accountant(ADD).compose(training(1.5, steps + steps // 50)).get_epsilon_interval(1e-5)[0] > 1.0


def test_epsilon_and_delta_are_inverse_to_each_other() -> None:
    found = accountant(ADD).compose(training(1.0)).compose(dp_event.LaplaceDpEvent(5.0), 3)
    for delta in (1e-9, 1e-5, 1e-2):
        lower, upper = found.get_epsilon_interval(delta)
        assert found.get_delta_interval(lower)[1] >= delta
        assert found.get_delta_interval(upper)[0] <= delta


def test_ratios_beyond_the_range_of_doubles_leave_closed_forms() -> None:
    tiny = dp_event.PoissonSampledDpEvent(0.5, dp_event.GaussianDpEvent(0.01))
    assert math.isfinite(accountant(ADD).compose(tiny, 10).get_epsilon(1e-5))
    loud = accountant(ADD).compose(dp_event.LaplaceDpEvent(1e-3), 2)
    assert encloses(loud.get_epsilon_interval(1e-5), 2000.0, 1e-3)


EXTREMES = [
    dp_event.ComposedDpEvent([dp_event.LaplaceDpEvent(9e-71), dp_event.GaussianDpEvent(0.008)]),
    dp_event.ComposedDpEvent([dp_event.LaplaceDpEvent(1e6), dp_event.GaussianDpEvent(1e6)]),
    dp_event.SelfComposedDpEvent(EpsilonDeltaDpEvent(0.0, 0.35), 10**6),
    dp_event.SelfComposedDpEvent(EpsilonDeltaDpEvent(3e-33, 0.0), 1000),
    dp_event.ComposedDpEvent([EpsilonDeltaDpEvent(6e64, 0.1), dp_event.PoissonSampledDpEvent(0.1, GAUSSIAN)]),
    EpsilonDeltaDpEvent(1.0, 1.0),
    dp_event.SelfComposedDpEvent(dp_event.PoissonSampledDpEvent(1e-12, GAUSSIAN), 10**6),
    dp_event.SelfComposedDpEvent(
        dp_event.SampledWithoutReplacementDpEvent(2, 1, dp_event.GaussianDpEvent(0.0177)), 7
    ),
    dp_event.TruncatedSubsampledGaussianDpEvent(
        10**9, 1e-12, 1, dp_event.GaussianDpEvent(3.0).noise_multiplier
    ),
    dp_event.MixtureOfGaussiansDpEvent(1e6, [0.0, 1e-5], [0.5, 0.5]),
    dp_event.DiscreteLaplaceDpEvent(1e8, 1000),
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("relation", [ADD, REPLACE, ZERO])
@pytest.mark.parametrize("event", EXTREMES, ids=range(len(EXTREMES)))
def test_extreme_events_have_ordered_ends(relation: NeighboringRelation, event: dp_event.DpEvent) -> None:
    found = accountant(relation)
    if not found.supports(event):
        return
    found.compose(event)
    for delta in (0.0, 1e-110, 1e-9, 0.5):
        lower, upper = found.get_epsilon_interval(delta)
        assert 0.0 <= lower <= upper
    for epsilon in (0.0, 1.0, 700.0, math.inf):
        lower, upper = found.get_delta_interval(epsilon)
        assert 0.0 <= lower <= upper <= 1.0


def test_more_noise_never_costs_more_than_the_tolerance() -> None:
    ends = [accountant(ADD).compose(training(0.7 * 1.03**k)).get_epsilon_interval(1e-6) for k in range(25)]
    assert all(later[1] < earlier[0] for earlier, later in pairwise(ends))


@pytest.mark.soak
def test_a_warm_epsilon_of_a_training_run_takes_less_than_50_milliseconds() -> None:
    rng, seconds = random.Random(1), []
    for _ in range(40):
        rate = rng.choice([64, 256, 1024]) / rng.choice([5000, 60_000, 10**6])
        step = dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(rng.uniform(0.6, 3.0)))
        found = accountant(ADD).compose(step, max(1, round(rng.randint(1, 50) / rate)))
        start = time.process_time()
        found.get_epsilon(1e-6)
        seconds.append(time.process_time() - start)
    assert sorted(seconds)[20] < 0.05


def test_repeated_randomized_response_is_more_than_dp_accounting_counts() -> None:
    event = dp_event.RandomizedResponseDpEvent(0.5, 4)
    once, thrice = (PLDAccountant(REPLACE).compose(event, count).get_epsilon(1e-5) for count in (1, 3))
    assert thrice == once  # release 0.6 ignores the count of this event
    assert accountant(REPLACE).compose(event, 3).get_epsilon_interval(1e-5)[0] > 2.9 * once
