"""Examples and batch size become steps: both roundings, and which of them is safe for which sampling."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.answers.training.training_run import epsilons
from privcore import DomainError
from privcore.training import TrainingRun

SIZES = st.integers(0, 15).flatmap(lambda power: st.integers(1, 10**power))


@given(sizes=st.tuples(SIZES, SIZES), epochs=st.integers(1, 100), participations=st.integers(1, 5))
def test_the_roundings_stand_around_the_quotient_and_keep_the_examples(
    sizes: tuple[int, int], epochs: int, participations: int
) -> None:
    batch, examples = sorted(sizes)
    given = {"examples": examples, "batch_size": batch, "epochs": epochs, "participations": participations}
    if participations * batch > examples or examples > 10**9 * batch:
        with pytest.raises(DomainError, match=r"^Expected (participations <= examples|steps) "):
            TrainingRun.checked(given)
        return
    run = TrainingRun.checked(given)
    quotient, rate = Fraction(examples, batch), Fraction(participations * batch, examples)
    for sampling, safest in (("allocation", min), ("poisson", max)):
        roundings = run.roundings(sampling)
        counts = [rounding.steps for rounding in roundings]
        assert min(counts) <= quotient <= max(counts) < quotient + 1
        assert len(counts) == (1 if quotient.denominator == 1 else 2)
        assert run.safe(sampling).steps == safest(counts)
        assert sum(rounding.safe for rounding in roundings) == 1
        for rounding in roundings:
            assert rounding.total_steps == epochs * rounding.steps
            assert participations <= rounding.steps
            if sampling == "poisson":
                assert rounding.sampling_probability is not None
                assert (
                    rate
                    <= Fraction(rounding.sampling_probability)
                    <= min(Fraction(1), rate * (1 + Fraction(1, 2**51)))
                )
                assert rounding.mean_batch == participations * batch
            else:
                assert rounding.sampling_probability is None
                assert rounding.mean_batch * rounding.steps == pytest.approx(
                    participations * examples, rel=1e-15
                )


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("sizes", "noise"),
    [
        ({"examples": 7, "batch_size": 3}, {"sigma": 1.0, "delta": 1e-5}),
        ({"examples": 11, "batch_size": 4, "epochs": 3}, {"sigma": 2.0, "delta": 1e-6}),
        ({"examples": 100, "batch_size": 60}, {"sigma": 0.7, "delta": 1e-3, "adjacency": "add"}),
        ({"examples": 9, "batch_size": 2, "participations": 2}, {"sigma": 1.5, "delta": 1e-5}),
    ],
)
def test_the_safe_rounding_has_the_larger_epsilon(sizes: dict[str, int], noise: dict[str, Any]) -> None:
    run = TrainingRun.checked(sizes)
    asked = dict(zip(run.all_roundings(), epsilons(run, noise, 60.0), strict=True))
    for sampling in ("allocation", "poisson"):
        safe, other = sorted(run.roundings(sampling), key=lambda rounding: not rounding.safe)
        assert asked[safe].upper > asked[other].upper
        if run.participations == 1:
            assert asked[safe].lower > asked[other].upper, "proved, not only bounded"


def test_one_batch_of_all_examples_is_one_certain_step() -> None:
    run = TrainingRun.checked({"examples": 100, "batch_size": 100})
    assert [(r.sampling, r.way, r.steps, r.sampling_probability) for r in run.all_roundings()] == [
        ("allocation", "exact", 1, None),
        ("poisson", "exact", 1, 1.0),
    ]
    one, other = epsilons(run, {"sigma": 1.0, "delta": 1e-5}, 60.0)
    assert one.lower <= other.upper
    assert other.lower <= one.upper


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ((60_000, 256), "234.375"),
        ((100, 3), "33.333"),
        ((1_000_000, 3), "333333.333"),
        ((12, 4), "3"),
        ((10**15, 10**6 + 1), "999999000.000"),
    ],
)
def test_the_quotient_is_written_with_a_fraction_or_as_a_whole_number(
    sizes: tuple[int, int], text: str
) -> None:
    assert TrainingRun(examples=sizes[0], batch_size=sizes[1]).quotient == text


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"examples": 10, "batch_size": 11},
            "Expected batch_size <= examples, got batch_size=11, examples=10.",
        ),
        (
            {"examples": 10, "batch_size": 0},
            r"Expected batch_size in \{1, ..., 1000000000000000\}, got batch_size=0.",
        ),
        ({"examples": 1.5, "batch_size": 1}, "Expected examples in "),
        ({"examples": 10, "batch_size": 2, "epochs": 0}, "Expected epochs in "),
        ({"examples": 10, "batch_size": 2, "participations": "x"}, "Expected participations in "),
        ({"examples": 10**10, "batch_size": 1}, "Expected steps in "),
        (
            {"examples": 10, "batch_size": 4, "participations": 3},
            "Expected participations <= examples / batch_size, the steps of an epoch, ",
        ),
    ],
)
def test_sizes_that_contradict_one_another_are_refused(given: dict[str, object], sentence: str) -> None:
    with pytest.raises(DomainError, match="^" + sentence):
        TrainingRun.checked(given)


def test_an_example_may_be_replaced_in_both_schemes() -> None:
    run = TrainingRun(examples=1000, batch_size=30)
    noise = {"sigma": 1.0, "delta": 1e-5}
    asked = zip(
        epsilons(run, {**noise, "adjacency": "replace-one"}, 60.0), epsilons(run, noise, 60.0), strict=True
    )
    for replaced, added in asked:
        assert replaced.ok
        assert replaced.upper >= added.lower
