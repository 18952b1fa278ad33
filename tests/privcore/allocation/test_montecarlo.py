"""Simulation: its intervals cover the truth, its order statistics are those of the normal distribution."""

import math

import numpy as np
import pytest
from scipy.special import log_ndtr

from privcore import Answer, Point, Problem, evaluate, find
from privcore.allocation.montecarlo import (
    Simulation,
    draw_exceedances,
    kept_ranks,
    normal_of_exceedance,
    rank_weights,
)
from privcore.numerics.bounded_mean import MOST_GROUPS, SampledMean, kl_lower, kl_upper
from tests.privcore.draws import problem

METHOD = find("allocation.montecarlo")


def certified(question: Problem) -> Answer:
    return evaluate(
        Point(problem=question, method=find("allocation.certified").from_knobs({"tolerance": 0.001}))
    )


def deviation(mean: SampledMean) -> float:
    """Standard error of a mean of samples that are all kept."""
    values = np.concatenate(mean.parts)
    return float(values.std(ddof=1)) / math.sqrt(values.size)


def mean_of(values: np.ndarray, groups: int = MOST_GROUPS) -> SampledMean:
    mean = SampledMean(values.size, groups)
    for part in np.array_split(values, 3):
        mean.add(part)
    return mean


@pytest.mark.sampled(6)
@pytest.mark.parametrize("adjacency", ["remove", "add", "add-remove"])
@pytest.mark.parametrize(
    ("sigma", "steps", "epochs", "epsilon"),
    [(0.5, 20, 1, 1.0), (1.0, 2, 1, 0.5), (0.8, 10, 3, 1.0), (0.4, 2000, 1, 0.3), (0.7, 50, 1, -0.2)],
)
def test_intervals_cover_the_truth_as_often_as_they_say(
    sigma: float, steps: int, epochs: int, epsilon: float, adjacency: str
) -> None:
    """With confidence 1/2 and 40 seeds, fewer than 10 hits have probability 3e-4; the bounds are wider."""
    question = problem(
        "allocation-delta", sigma=sigma, steps=steps, epochs=epochs, epsilon=epsilon, adjacency=adjacency
    )
    truth = certified(question)
    method = METHOD.from_knobs({"samples": 300, "confidence": 0.5})
    answers = [method.answer(question, seed) for seed in range(40)]
    hits = sum(a.lower <= truth.upper and truth.lower <= a.upper for a in answers)
    assert hits >= 20
    assert len({a.upper for a in answers}) == 40


@pytest.mark.sampled(2)
@pytest.mark.parametrize("sampling", ["order", "importance", "plain"])
def test_many_samples_come_near_the_truth(sampling: str) -> None:
    """No bias: the mean lies within four standard errors, for both directions and several epochs."""
    for sigma, steps, epochs, epsilon, adjacency in (
        (0.5, 100, 1, 1.0, "remove"),
        (0.9, 5, 1, 0.5, "add"),
        (1.0, 4, 2, 0.5, "remove"),
        (1.0, 4, 2, 0.5, "add"),
    ):
        question = problem(
            "allocation-delta",
            sigma=sigma,
            steps=steps,
            epochs=epochs,
            epsilon=epsilon,
            adjacency=adjacency,
        )
        simulation = Simulation(
            steps=steps,
            epochs=epochs,
            shift=1.0 / sigma,
            epsilon=epsilon,
            conditional=sampling != "plain",
            sparse=sampling == "order",
        )
        h, probability = simulation.event(adjacency)
        low, high = simulation.means(np.random.default_rng(5), adjacency, h, 40_000)
        error = probability * deviation(high)
        truth = certified(question)
        assert probability * low.mean - 4.0 * error <= truth.upper
        assert probability * high.mean + 4.0 * error >= truth.lower
        assert probability * high.mean - 4.0 * error <= truth.upper
        assert low.total == pytest.approx(high.total, rel=1e-9)  # with few steps, all outputs are drawn


def test_importance_sampling_has_less_variance_than_plain_sampling() -> None:
    for sigma, steps, epsilon, direction, gain in (
        (0.3, 20, 12.0, "remove", 15.0),
        (0.5, 2, 2.0, "add", 5.0),
    ):
        variances = []
        for conditional in (True, False):
            simulation = Simulation(
                steps=steps,
                epochs=1,
                shift=1.0 / sigma,
                epsilon=epsilon,
                conditional=conditional,
                sparse=False,
            )
            h, probability = simulation.event(direction)
            mean, _ = simulation.means(np.random.default_rng(1), direction, h, 40_000)
            variances.append((probability * deviation(mean)) ** 2)
        assert gain * variances[0] < variances[1], (sigma, direction, variances)


def test_importance_sampling_reaches_below_what_plain_sampling_can() -> None:
    question = problem("allocation-delta", sigma=0.2, steps=20, epsilon=30.0, adjacency="remove")
    truth = certified(question)
    important, plain = (
        METHOD.from_knobs({"sampling": s}).answer(question, 3) for s in ("importance", "plain")
    )
    assert truth.lower < important.upper < 1e-4
    assert plain.upper > 5e-4
    assert important.lower <= truth.upper


@pytest.mark.thorough
def test_order_statistics_bracket_what_all_outputs_give() -> None:
    question = problem("allocation-delta", sigma=0.5, steps=3000, epsilon=0.3, adjacency="remove")
    truth = certified(question)
    simulation = Simulation(steps=3000, epochs=1, shift=2.0, epsilon=0.3, conditional=True, sparse=True)
    h, probability = simulation.event("remove")
    low, high = simulation.means(np.random.default_rng(2), "remove", h, 20_000)
    error = 4.0 * probability * deviation(high)
    assert low.mean < high.mean < 1.5 * low.mean
    assert probability * low.mean - error <= truth.upper
    assert truth.lower <= probability * high.mean + error


@pytest.mark.parametrize("count", [1, 5, 300, 10**9])
def test_drawn_order_statistics_follow_the_beta_law(count: int) -> None:
    """The k-th largest of m uniform variables has mean 1 - k/(m+1); six standard errors."""
    ranks = kept_ranks(count)
    draws = draw_exceedances(np.random.default_rng(3), count, ranks, 4000)
    assert draws.shape == (4000, len(ranks))
    assert np.all(np.diff(draws, axis=1) >= 0.0)
    below = -np.expm1(-draws)  # 1 - U has the distribution Beta(k, m - k + 1)
    mean = ranks / (count + 1.0)
    deviation = np.sqrt(mean * (1.0 - mean) / (count + 2.0))
    assert np.all(np.abs(below.mean(axis=0) - mean) <= 6.0 * deviation / math.sqrt(4000))
    assert below.std(axis=0) == pytest.approx(deviation, rel=0.1)


@pytest.mark.parametrize("count", [0, 1, 2, 256, 257, 1000, 10**9])
def test_kept_ranks_stand_for_all(count: int) -> None:
    ranks = kept_ranks(count)
    assert len(ranks) <= 256
    if count:
        assert (ranks[0], ranks[-1]) == (1, count)
        assert np.all(np.diff(ranks) >= 1)
        for weights in rank_weights(ranks):
            assert weights.sum() == count
            assert weights.min() >= 1


def test_rounding_to_kept_ranks_brackets_every_sum() -> None:
    values = np.sort(np.random.default_rng(4).lognormal(0.0, 2.0, 5000))[::-1]
    ranks = kept_ranks(5000)
    low, high = (float(weights @ values[ranks - 1]) for weights in rank_weights(ranks))
    assert low <= values.sum() <= high <= 1.2 * low


def test_normal_quantiles_are_precise_in_both_tails() -> None:
    exceedances = np.array([1e-280, 1e-20, 1e-3, 0.4999, 0.5001, 3.0, 600.0])
    z = normal_of_exceedance(exceedances)
    tails = np.where(exceedances < 0.5, log_ndtr(-z), np.log(-log_ndtr(np.minimum(z, 5.0))))
    expected = np.where(exceedances < 0.5, np.log(-np.expm1(-exceedances)), np.log(exceedances))
    assert tails == pytest.approx(expected, rel=1e-10, abs=1e-10)


def test_published_confidence_bounds_are_met() -> None:
    """Means 0, 1e-5, 1e-3 of 500000 samples and 0.2 of 1000 at confidence 0.99, to 14 digits."""
    for mean, samples, upper in (
        (0.0, 500_000, 9.21029795692152e-06),
        (1e-5, 500_000, 3.02936719683932e-05),
        (1e-3, 500_000, 0.00114185018277669),
        (0.2, 1000, 0.24015861935799),
    ):
        assert kl_upper(mean, samples, 0.01) == pytest.approx(upper, rel=1e-9)


def test_confidence_bounds_mirror_each_other() -> None:
    for mean in (0.1, 0.5, 0.93, 1.0):
        assert kl_lower(mean, 50, 0.05) == pytest.approx(1.0 - kl_upper(1.0 - mean, 50, 0.05), abs=1e-10)
    assert kl_lower(0.0, 50, 0.05) == 0.0


@pytest.mark.parametrize("groups", [MOST_GROUPS, 50])
def test_confidence_bounds_hold_for_coins_and_for_smooth_variables(groups: int) -> None:
    """At error 0.1 for each end, 400 trials fail less often than 40 times, and mostly much less."""
    rng = np.random.default_rng(6)
    for draw, mean in (
        (lambda: rng.random(200) < 0.03, 0.03),
        (lambda: 0.1 * rng.random(200), 0.05),
        (lambda: rng.beta(0.2, 5.0, 200), 0.2 / 5.2),
    ):
        means = [mean_of(draw().astype(float), groups) for _ in range(400)]
        assert sum(t.upper(0.1) < mean for t in means) < 40
        assert sum(t.lower(0.1) > mean for t in means) < 40


def test_the_empirical_variance_helps() -> None:
    mean = mean_of(0.05 + 0.001 * (np.arange(1000) % 2))
    assert mean.upper(0.02) < 0.06 < kl_upper(mean.mean, 1000, 0.01)


@pytest.mark.parametrize("often", [0.4, 1e-3, 2e-5, 0.0])
def test_means_of_groups_bound_common_and_rare_events_as_tightly(often: float) -> None:
    """Common events cost at most 6 % of the width; for rare ones, a tenth of the error is left."""
    values = (np.random.default_rng(8).random(300_000) < often).astype(float)
    alone, grouped = mean_of(values), mean_of(values, 100_000)
    width, wider = (each.upper(0.25) - each.lower(0.25) for each in (alone, grouped))
    assert wider <= width * (1.06 if often > 1e-4 else 2.5)


def test_samples_with_and_without_their_largest_output_are_in_random_order() -> None:
    """Bets would refute the truth if the first samples were of another kind."""
    simulation = Simulation(steps=4, epochs=1, shift=2.0, epsilon=0.5, conditional=True, sparse=False)
    h, _ = simulation.event("remove")
    drawn, _ = simulation.means(np.random.default_rng(9), "remove", h, 40_000)
    values = np.concatenate(drawn.parts)
    first, last = values[:10_000], values[-10_000:]
    error = math.sqrt((first.var() + last.var()) / 10_000)
    assert abs(first.mean() - last.mean()) < 5.0 * error


def test_the_seed_alone_is_random() -> None:
    question = problem("allocation-delta", sigma=0.5, steps=50, epsilon=1.0)
    method = METHOD()
    assert method.answer(question, 1) == method.answer(question, 1)
    assert method.answer(question, 1) != method.answer(question, 2)


def test_the_confidence_is_stored_and_is_no_proof() -> None:
    question = problem("allocation-delta", sigma=0.5, steps=50, epsilon=1.0)
    answers = [METHOD.from_knobs({"confidence": c}).answer(question, 1) for c in (0.9, 0.999)]
    assert [a.confidence for a in answers] == [0.9, 0.999]
    assert not any(a.rigorous for a in answers)
    assert answers[1].lower < answers[0].lower < answers[0].upper < answers[1].upper


def test_several_participations_are_refused() -> None:
    question = problem("allocation-delta", sigma=1.0, steps=10, epsilon=1.0, participations=2)
    assert METHOD().applies(question) == (
        "The simulation covers participations=1 only: for more, the likelihood ratio is not a mean "
        "of independent ratios."
    )


def test_more_numbers_than_can_be_drawn_are_refused() -> None:
    question = problem("allocation-delta", sigma=1.0, steps=10**9, epsilon=1.0)
    assert METHOD.from_knobs({"sampling": "importance"}).applies(question) is not None
    assert METHOD().applies(question) is None


def test_the_ends_of_the_domain_are_survived() -> None:
    method = METHOD.from_knobs({"samples": 100})
    for sigma in (1e-3, 1.0, 1e6):
        for steps in (1, 2, 10**9):
            for epsilon in (-100.0, -1e-12, 0.0, 1e-12, 1e4):
                for epochs in (1, 3):
                    question = problem(
                        "allocation-delta", sigma=sigma, steps=steps, epsilon=epsilon, epochs=epochs
                    )
                    answer = method.answer(question, 0)
                    assert 0.0 <= answer.lower <= answer.upper <= 1.0
                    truth = evaluate(Point(problem=question, method=find("allocation.largest")()))
                    assert answer.upper >= truth.lower


@pytest.mark.parametrize(("adjacency", "other"), [("remove", "add"), ("add", "remove")])
def test_a_negative_epsilon_is_the_other_direction_reflected(adjacency: str, other: str) -> None:
    """delta(-x) = 1 - e^-x + e^-x delta'(x); here the two directions differ by many standard errors."""
    fields = {"sigma": 0.5, "steps": 20, "epsilon": -0.5}
    found = METHOD.from_knobs({"samples": 4000}).answer(
        problem("allocation-delta", **fields, adjacency=adjacency), 0
    )
    truth = certified(problem("allocation-delta", **fields, adjacency=adjacency))
    wrong = certified(problem("allocation-delta", **fields, adjacency=other))
    assert found.lower <= truth.upper
    assert truth.lower <= found.upper
    assert found.upper < wrong.lower or wrong.upper < found.lower


def test_an_interval_that_order_statistics_keep_wide_says_so_and_importance_sampling_narrows_it() -> None:
    question = problem("allocation-delta", sigma=5.0, steps=1000, epsilon=0.0, adjacency="remove")
    wide, narrow = (
        METHOD.from_knobs({"samples": 10_000, "sampling": each}).answer(question, 1)
        for each in ("order", "importance")
    )
    assert "normal widths, for order statistics bracket each sample" in wide.detail
    assert "order statistics" not in narrow.detail
    assert narrow.upper - narrow.lower < 0.25 * (wide.upper - wide.lower)


def test_an_interval_of_samples_that_hardly_differ_says_how_wide_it_is() -> None:
    question = problem("allocation-delta", sigma=1000.0, steps=10, epsilon=0.0, adjacency="remove")
    answer = METHOD.from_knobs({"samples": 100_000, "confidence": 0.95}).answer(question, 1)
    assert answer.detail.endswith("23 normal widths")
