"""Answers are never NaN and never crossed, and their kind follows from their content."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privcore import Answer, Bracket, Status, intersect


@pytest.mark.parametrize(
    "wrong",
    [
        {"lower": math.nan},
        {"upper": math.nan},
        {"value": math.nan},
        {"lower": 1.0, "upper": 0.5},
        {"lower": math.inf, "upper": 1.0},
        {"confidence": 0.0},
        {"confidence": -0.1},
        {"confidence": 1.0000001},
        {"confidence": math.nan},
    ],
    ids=str,
)
def test_what_encloses_nothing_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Expected"):
        Answer(**wrong)


def test_an_enclosure_with_full_confidence_is_rigorous() -> None:
    answer = Answer.enclosure(1.0, 2.0, value=1.5, detail="how")
    assert (answer.lower, answer.upper, answer.value, answer.detail) == (1.0, 2.0, 1.5, "how")
    assert answer.ok
    assert answer.rigorous


def test_less_than_full_confidence_is_not_rigorous() -> None:
    assert not Answer.enclosure(1.0, 2.0, confidence=0.99).rigorous
    assert not Answer.at_least(1.0, confidence=0.99).rigorous


def test_one_sided_answers_leave_the_other_end_open() -> None:
    assert (Answer.at_most(2.0).lower, Answer.at_most(2.0).upper) == (0.0, 2.0)
    assert (Answer.at_least(1.0).lower, Answer.at_least(1.0).upper) == (1.0, math.inf)


def test_an_estimate_claims_nothing() -> None:
    answer = Answer.about(1.5, detail="by simulation")
    assert (answer.lower, answer.upper, answer.value) == (0.0, math.inf, 1.5)


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.OK])
def test_no_answer_is_never_rigorous(status: Status) -> None:
    answer = Answer.without(status, "The reason.")
    assert not answer.ok
    assert not answer.rigorous
    assert answer.value is None
    assert answer.detail == "The reason."


def test_proofs_intersect_and_keep_the_names_of_their_ends() -> None:
    found = intersect([Answer.enclosure(1.0, 3.0).said_by("a"), Answer.enclosure(2.0, 4.0).said_by("b")])
    assert found == Bracket(lower=2.0, upper=3.0, confidence=1.0, lower_by="b", upper_by="a")


def test_of_equal_ends_the_first_is_named_and_an_end_that_says_nothing_by_nobody() -> None:
    twice = [Answer.at_most(1.0).said_by("a"), Answer.at_most(1.0).said_by("b")]
    assert intersect(twice) == Bracket(upper=1.0, upper_by="a")
    assert intersect(twice, largest=1.0) == Bracket(upper=1.0)


def test_ends_that_exclude_one_another_are_crossed_and_named() -> None:
    found = intersect([Answer.at_most(1.0).said_by("a"), Answer.at_least(2.0).said_by("b")], largest=1.0)
    assert found.crossed
    assert (found.lower_by, found.upper_by) == ("b", "a")


@given(st.lists(st.floats(0.0, 1.0, exclude_min=True), min_size=1, max_size=6))
def test_confidences_are_joined_by_the_union_bound_and_one_alone_is_kept_to_the_bit(
    confidences: list[float],
) -> None:
    found = intersect(Bracket(confidence=each) for each in confidences).confidence
    doubtful = [each for each in confidences if each < 1.0]
    if len(doubtful) <= 1:
        assert found == min(confidences)
    assert found == pytest.approx(1.0 - sum(1.0 - each for each in doubtful), abs=1e-12)
