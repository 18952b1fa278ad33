"""Phases of a run: limits to known schemes, orders between schemes, and counts by enumeration."""

import itertools
import math
import random
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest

from privcore import Answer, Point, PrivsweepError, evaluate, find
from privcore.likelihood_ratio.ratios import Gaussian
from privcore.training import PHASES, phases, written
from privcore.training.certified import RunsCertified
from privcore.training.samplers import Above, Bounds, composed, occupancies, truncation
from tests.privcore.draws import problem


def answered(text: str, adjacency: str = "add-remove", **at: Any) -> Answer:
    asked = problem("run-delta" if "epsilon" in at else "run-epsilon", phases=text, adjacency=adjacency, **at)
    answer = evaluate(Point(problem=asked, method=find("runs.certified")()))
    assert answer.ok, answer
    assert answer.lower <= answer.upper, answer
    return answer


def meet(one: Answer, other: Answer) -> bool:
    """Return whether two enclosures of the same number intersect."""
    return max(one.lower, other.lower) <= min(one.upper, other.upper)


SAME = [
    ("fixed-size(sigma=2,sampling_probability=1,steps=7)", "none(sigma=1,steps=7)", "add-remove"),
    ("fixed-size(sigma=2,sampling_probability=1,steps=7)", "none(sigma=2,steps=7)", "zero-out"),
    ("fixed-size(sigma=2,sampling_probability=1,steps=7)", "none(sigma=2,steps=7)", "replace-one"),
    ("poisson(sigma=2,sampling_probability=1,steps=7)", "none(sigma=2,steps=7)", "replace-one"),
    (
        "fixed-size(sigma=2,sampling_probability=0.1,steps=7)",
        "poisson(sigma=1,sampling_probability=0.1,steps=7)",
        "add-remove",
    ),
    ("balls-in-bins(sigma=2,steps=1,epochs=4,redraw=once)", "none(sigma=1,steps=1)", "add-remove"),
    ("balls-in-bins(sigma=2,steps=9,redraw=once)", "allocation(sigma=2,steps=9)", "add-remove"),
    ("allocation(sigma=2,steps=3,participations=3,epochs=2)", "none(sigma=2,steps=6)", "replace-one"),
    ("shuffling(sigma=2,steps=1,epochs=3,redraw=each-epoch)", "none(sigma=2,steps=3)", "zero-out"),
    (
        "shuffling(sigma=2,steps=1,epochs=3,redraw=each-epoch,dropped=0.25)",
        "poisson(sigma=1,sampling_probability=0.75,steps=3)",
        "add-remove",
    ),
    ("shuffling(sigma=2,steps=1,epochs=3,redraw=once)", "none(sigma=2,steps=3)", "replace-one"),
    (
        "with-replacement(sigma=2,examples=50,batch_size=1,steps=7)",
        "fixed-size(sigma=2,sampling_probability=0.02,steps=7)",
        "add-remove",
    ),
    (
        "with-replacement(sigma=2,examples=1,batch_size=1,steps=7)",
        "none(sigma=2,steps=7)",
        "zero-out",
    ),
    (
        "truncated-poisson(sigma=2,sampling_probability=0.1,examples=9,largest_batch=9,steps=7)",
        "poisson(sigma=2,sampling_probability=0.1,steps=7)",
        "replace-one",
    ),
    ("allocation(sigma=2,steps=4,participations=4,epochs=3)", "none(sigma=2,steps=12)", "zero-out"),
    (
        "poisson(sigma=1,sampling_probability=0.1,steps=4); none(sigma=2,steps=3)",
        "none(sigma=2,steps=2); poisson(sigma=1,sampling_probability=0.1,steps=4); none(sigma=2,steps=1)",
        "add-remove",
    ),
    (
        "balls-in-bins(sigma=3,steps=9,participations=3,epochs=4,redraw=once)",
        "allocation(sigma=1.5,steps=9,participations=3)",
        "zero-out",
    ),
]
SEVERAL = "allocation(sigma=2,steps=9,participations=3)"


@pytest.mark.parametrize(("one", "other", "adjacency"), SAME)
def test_limits_of_a_sampler_are_samplers_that_are_known(one: str, other: str, adjacency: str) -> None:
    for at in ({"delta": 1e-6}, {"epsilon": 0.7}):
        assert meet(answered(one, adjacency, **at), answered(other, adjacency, **at)), at


@pytest.mark.thorough
@pytest.mark.thorough
@pytest.mark.parametrize(
    "text",
    [
        "allocation(sigma=1.1,steps=234,epochs=10)",
        "balls-in-bins(sigma=1.1,steps=234,epochs=10,redraw=once)",
        "allocation(sigma=1,steps=2)",
    ],
)
def test_an_example_that_is_replaced_in_one_step_of_an_epoch_has_close_ends(text: str) -> None:
    replaced = answered(text, "replace-one", delta=1e-5)
    assert replaced.upper <= 1.01 * replaced.lower
    assert replaced.upper >= answered(text, delta=1e-5).lower, "0 may take its place"


def test_several_participations_composed_with_no_information_are_those_alone() -> None:
    """The first is a product of distributions, the second the sums of all losses."""
    for at in ({"delta": 1e-6}, {"epsilon": 0.7}):
        composed, alone = (
            answered(run, "add-remove", **at) for run in (f"{SEVERAL}; none(sigma=900000,steps=1)", SEVERAL)
        )
        assert meet(composed, alone), at
        assert composed.upper <= 1.011 * composed.lower, at


def test_several_participations_beyond_a_million_steps_have_a_bracket_by_reduction_to_one() -> None:
    many, one = (
        answered(f"allocation(sigma=3,steps={steps},participations={k})", delta=1e-6)
        for steps, k in ((2_000_000, 7), (300_000, 1))
    )
    assert one.lower < many.lower <= many.upper <= 1.02 * many.lower


MORE_PRIVATE = [  # the first is at least as private as the second
    (
        "balls-in-bins(sigma=2,steps=9,epochs=5,redraw=each-epoch)",
        "balls-in-bins(sigma=2,steps=9,epochs=5,redraw=once)",
    ),
    ("allocation(sigma=2,steps=9,epochs=5)", "shuffling(sigma=2,steps=9,epochs=5,redraw=each-epoch)"),
    (
        "poisson(sigma=2,sampling_probability=0.1,steps=20)",
        "truncated-poisson(sigma=2,sampling_probability=0.1,examples=100,largest_batch=12,steps=20)",
    ),
    (
        "poisson(sigma=2,sampling_probability=0.1,steps=20)",
        "fixed-size(sigma=2,sampling_probability=0.1,steps=20)",
    ),
    ("poisson(sigma=2,sampling_probability=0.1,steps=20)", "none(sigma=2,steps=20)"),
]


@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])
@pytest.mark.parametrize(("better", "worse"), MORE_PRIVATE)
def test_the_lower_end_of_a_better_sampler_is_below_the_upper_end_of_a_worse_one(
    better: str, worse: str, adjacency: str
) -> None:
    assert answered(better, adjacency, delta=1e-6).lower <= answered(worse, adjacency, delta=1e-6).upper


def test_ends_from_different_theorems_do_not_cross_where_a_wrong_one_would() -> None:
    """Each case has a lower end that would exceed the upper end if its rate, its distance or its order were
    those of a similar sampler.
    """
    few = "truncated-poisson(sigma=2,sampling_probability=0.5,examples=100,largest_batch=1,steps=20)"
    for adjacency in ("add-remove", "zero-out", "replace-one"):
        wide = "fixed-size(sigma=2,sampling_probability=0.02,steps=20)"
        assert answered(few, adjacency, delta=1e-5).lower <= answered(wide, adjacency, delta=1e-5).upper
    twice = "with-replacement(sigma=1,examples=2,batch_size=2,steps=1)"
    assert answered(twice, "zero-out", epsilon=6.0).upper < answered(twice, "replace-one", epsilon=6.0).lower
    order = "shuffling(sigma=2.5,steps=100000,epochs=10,redraw={})"
    once, again = (answered(order.format(word), "zero-out", delta=1e-6) for word in ("once", "each-epoch"))
    assert once.lower > again.upper, "a kept order is proved to be worse"


@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])
@pytest.mark.parametrize(
    "run",
    [
        "shuffling(sigma=0.2,steps=9,epochs=90,redraw=each-epoch)",
        "fixed-size(sigma=0.3,sampling_probability=0.5,steps=1000)",
    ],
)
def test_a_run_beyond_the_range_of_doubles_has_both_ends(adjacency: str, run: str) -> None:
    found = answered(f"{run}; none(sigma=1,steps=2)", adjacency, delta=1e-5)
    assert 1000.0 < found.lower < found.upper < 1.1 * found.lower
    most = answered(f"{run}; none(sigma=1,steps=2)", adjacency, epsilon=50.0)
    assert most.lower > 0.5, "delta is almost 1"


def test_distances_in_total_variation_are_added_over_steps_and_parts() -> None:
    one = Bounds(above=(Above(Gaussian(1.0), moved=0.01),), below=(Gaussian(1.0),))
    assert one.repeated(4) == Bounds(above=(Above(Gaussian(2.0), moved=0.04),), below=(Gaussian(2.0),))
    assert one.repeated(1000).above[0].moved == 1.0
    both = composed([one.repeated(3), one.repeated(4)])
    assert both.above[0].moved == pytest.approx(0.07)


def test_a_large_group_and_a_small_rate_keep_their_brackets_narrow() -> None:
    answered("allocation(sigma=3,steps=100,group=30,epochs=2)", delta=1e-5)
    found = answered("poisson(sigma=2,sampling_probability=1e-05,steps=10000000,group=2)", delta=1e-5)
    assert found.upper <= 1.03 * found.lower
    found = answered("with-replacement(sigma=2,examples=10000,batch_size=1,steps=1000000)", delta=1e-5)
    assert found.upper <= 1.03 * found.lower


@pytest.mark.parametrize(
    ("adjacency", "least", "most"), [("zero-out", 6.85, 7.12), ("replace-one", 8.25, 8.91)]
)
def test_draws_with_replacement_have_close_ends(adjacency: str, least: float, most: float) -> None:
    found = answered(
        "with-replacement(sigma=1.1,examples=60000,batch_size=256,steps=2343)", adjacency, delta=1e-5
    )
    assert least <= found.lower <= found.upper <= most


def test_a_rare_and_large_ratio_has_close_ends_at_a_wide_tolerance() -> None:
    """A grid with few cells has no bound at all, and a finer one has."""
    text = "fixed-size(sigma=0.395,sampling_probability=7e-4,steps=2)"
    asked = problem("run-epsilon", phases=text, adjacency="zero-out", delta=1.8e-8)
    found = evaluate(Point(problem=asked, method=RunsCertified(tolerance=0.01)))
    assert 13.4 <= found.lower <= found.upper <= 13.6


@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])
def test_few_draws_of_many_examples_are_as_private_as_different_ones(adjacency: str) -> None:
    """Nearly all batches have every example once at most. For zero-out, that upper end is not close."""
    drawn = answered(
        "with-replacement(sigma=2,examples=100000,batch_size=10,steps=300)", adjacency, epsilon=1e-3
    )
    other = answered("fixed-size(sigma=2,sampling_probability=0.0001,steps=300)", adjacency, epsilon=1e-3)
    assert drawn.lower == pytest.approx(other.lower, rel=0.01)
    assert other.upper <= drawn.upper * 1.01
    if adjacency != "zero-out":
        assert drawn.upper == pytest.approx(other.upper, rel=0.01)


def test_a_rate_of_1_is_no_sampling_to_the_last_digit() -> None:
    poisson = answered("poisson(sigma=0.3,sampling_probability=1,steps=27)", delta=2e-6)
    none = answered("none(sigma=0.3,steps=27)", delta=2e-6)
    assert (poisson.lower, poisson.upper) == (none.lower, none.upper)
    full = "truncated-poisson(sigma=1,sampling_probability=1,examples=100,largest_batch=10,steps=5)"
    fixed = "fixed-size(sigma=1,sampling_probability=0.1,steps=5)"
    for adjacency in ("add-remove", "zero-out", "replace-one"):
        one, other = answered(full, adjacency, epsilon=1.0), answered(fixed, adjacency, epsilon=1.0)
        assert one.lower == pytest.approx(other.lower, rel=0.02)
        assert one.upper == pytest.approx(other.upper, rel=0.02)


def test_truncation_matters_less_the_larger_the_largest_batch() -> None:
    ends = [
        answered(
            f"truncated-poisson(sigma=1,sampling_probability=0.05,examples=1000,largest_batch={b},steps=100)",
            delta=1e-5,
        ).upper
        for b in (70, 85, 90, 200)
    ]
    assert ends[:3] == sorted(ends[:3], reverse=True)
    assert ends[3] == pytest.approx(ends[2], rel=1e-3), "almost 6 deviations above the mean"
    assert ends[0] == pytest.approx(5.4435, rel=0.01)
    assert ends[1] == pytest.approx(3.5049, rel=0.01)


def test_drawn_runs_have_a_lower_end_below_the_upper_end() -> None:
    rng = random.Random(7)
    for _ in range(12):
        sigma, rate, steps = rng.uniform(0.8, 5.0), 10.0 ** rng.uniform(-3.0, -0.3), rng.randint(1, 400)
        kinds = [
            f"poisson(sigma={sigma},sampling_probability={rate},steps={steps})",
            f"fixed-size(sigma={2.0 * sigma},sampling_probability={rate},steps={steps})",
            f"shuffling(sigma={sigma},steps={steps},epochs=2,redraw=each-epoch)",
            f"balls-in-bins(sigma={sigma},steps={steps},epochs=3,redraw=once)",
            f"allocation(sigma={sigma},steps={steps},epochs=2)",
        ]
        run = "; ".join(rng.sample(kinds, 2))
        for adjacency in ("zero-out", "replace-one"):
            answered(run, adjacency, delta=1e-6)


def test_the_occupancies_of_steps_are_those_of_all_assignments() -> None:
    for group, steps in ((2, 2), (3, 2), (4, 3), (5, 4)):
        exact = Counter(
            sum(times * times for times in Counter(bins).values())
            for bins in itertools.product(range(steps), repeat=group)
        )
        found = occupancies(group, steps)
        assert found.keys() == exact.keys()
        for size, times in exact.items():
            assert times / steps**group <= found[size] <= times / steps**group * (1.0 + 1e-9)


def test_the_rates_of_truncated_batches_are_those_of_all_samples() -> None:
    for n, q, largest in ((5, Fraction(1, 2), 2), (6, Fraction(1, 4), 3), (4, Fraction(3, 4), 1)):
        mean = full = in_full = cut = Fraction(0)
        for sample in itertools.product((False, True), repeat=n):
            probability = math.prod((q if drawn else 1 - q) for drawn in sample)
            size, others = sum(sample), sum(sample[1:])
            included = Fraction(min(size, largest), size) if sample[0] else Fraction(0)
            mean += probability * included
            cut += probability * (size > largest)
            if others >= largest:
                full += probability
                in_full += probability * included
        found = truncation(n, float(q), largest)
        assert mean * (1 - Fraction(1, 10**6)) <= Fraction(found.mean) <= mean
        assert full <= Fraction(found.full) <= full * (1 + Fraction(1, 10**6))
        assert 1 - full <= Fraction(found.room) <= (1 - full) * (1 + Fraction(1, 10**6))
        assert in_full / full <= Fraction(found.rate) <= in_full / full * (1 + Fraction(1, 10**6))
        assert cut <= Fraction(found.cut) <= cut * (1 + Fraction(1, 10**6))


def test_every_phase_is_written_as_it_is_read() -> None:
    for text in problem_texts():
        assert written(phases(text)) == text
        assert written(phases(written(phases(text.replace(",", " , "))))) == text


def problem_texts() -> list[str]:
    from privcore.training.notation import PHASES_TEXT

    assert {call.split("(")[0] for text in PHASES_TEXT.typical for call in text.split("; ")} == set(PHASES)
    return list(PHASES_TEXT.typical)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("none(sigma=1)", "Expected steps for none"),
        ("none(sigma=1,steps=2,steps=3)", "Expected steps once"),
        ("none(sigma=1,steps)", "Expected FIELD=VALUE"),
        ("none(sigma=0,steps=1)", "Expected sigma in"),
        ("nine(sigma=1,steps=1)", "Unknown sampling nine"),
        ("; ;", "Expected phases in"),
        ("none", "Expected phases in"),
        ("; ".join(["none(sigma=1,steps=1)"] * 1001), "Expected at most 1000 phases"),
    ],
)
def test_a_wrong_phase_is_refused_in_one_sentence(text: str, words: str) -> None:
    with pytest.raises(PrivsweepError, match=words) as refusal:
        phases(text)
    assert "\n" not in str(refusal.value)


def test_a_relation_that_no_theorem_covers_is_declined() -> None:
    asked = problem(
        "run-epsilon",
        phases="shuffling(sigma=1,steps=9,redraw=once)",
        adjacency="add-remove",
        delta=1e-6,
    )
    assert "number of batches" in (find("runs.certified")().applies(asked) or "")
