"""An answer is never NaN, never crossed, and its kind can be read off it."""

import math
from typing import Any

import pytest

from privcore import Answer, Status


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
