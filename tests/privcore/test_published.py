"""Rows of published bounds become methods whose ends are moved outward in one place."""

import math
import pickle
from typing import Any

import pytest

from privcore import METHODS, Answer, Direction, Method
from privcore.membership.gaussian_mean.problems import MembershipRateRecords
from privcore.membership.learner.problems import MembershipBitsAdvantage
from privcore.published import closed_form, published
from privcore.registry import registered

PROBLEM = MembershipBitsAdvantage(bits=2, records=5)


def row(formula: Any, direction: Direction = Direction.UPPER, **columns: Any) -> Method:
    return published(
        "example.row", type(PROBLEM), direction, "A row.", formula, reference="ours", **columns
    )()


def whole_row(formula: Any, **columns: Any) -> Answer:
    asked = MembershipRateRecords(rate_constant=1.0, coordinates=1, target_advantage=0.1)
    kind = published(
        "example.row", type(asked), Direction.ENCLOSURE, "A row.", formula, reference="ours", **columns
    )
    return kind().answer(asked, 0)


@pytest.mark.parametrize(
    ("direction", "lower", "upper", "value"),
    [
        (Direction.UPPER, 0.0, 0.53, None),
        (Direction.LOWER, 0.47, 1.0, None),
        (Direction.ENCLOSURE, 0.47, 0.53, None),
        (Direction.ESTIMATE, 0.0, math.inf, 0.5),
    ],
)
def test_one_number_becomes_the_ends_that_its_direction_allows(
    direction: Direction, lower: float, upper: float, value: float | None
) -> None:
    found = row(lambda p: 0.5, direction, slack=0.04, offset=0.01).answer(PROBLEM, 0)
    assert (found.lower, found.upper) == pytest.approx((lower, upper))
    assert found.value == value
    assert found.detail == "closed form"


def test_both_ends_are_moved_outward_and_kept_within_the_possible_values() -> None:
    found = row(lambda p: (1e-20, 0.999), Direction.ENCLOSURE, slack=0.01, offset=1e-19).answer(PROBLEM, 0)
    assert (found.lower, found.upper) == (0.0, 1.0)


def test_a_whole_truth_is_rounded_up_at_both_ends() -> None:
    found = whole_row(lambda p: (3.2, 7.0), slack=0.01)
    assert (found.lower, found.upper) == (4.0, 8.0)
    assert whole_row(lambda p: math.inf).upper == math.inf


def test_a_finished_answer_passes_unchanged() -> None:
    said = Answer.at_most(0.25, detail="finished")
    assert row(lambda p: said, slack=0.1).answer(PROBLEM, 0) is said


def test_a_row_has_the_claims_of_its_columns_and_reads_the_problem() -> None:
    made = row(
        lambda p: p.bits / p.records,
        unless=lambda p: "The bound needs three bits." if p.bits < 3 else None,
        detail=lambda p: f"{p.bits} bits",
        version=3,
        shares=("bits",),
    )
    assert made.applies(PROBLEM) == "The bound needs three bits."
    assert made.applies(MembershipBitsAdvantage(bits=3, records=5)) is None
    assert made.answer(PROBLEM, 0) == Answer.enclosure(0.0, 0.4, detail="2 bits")
    assert (made.name, made.version, made.shares) == ("example.row", 3, ("bits",))
    assert made.cost(PROBLEM) == closed_form(PROBLEM)
    with registered(type(made)):
        assert type(made) in METHODS


def test_a_row_is_found_by_pickle_in_the_module_that_has_it() -> None:
    rows = [kind for kind in METHODS if kind.answer.__module__ == published.__module__]
    assert len(rows) > 5
    for kind in rows:
        assert pickle.loads(pickle.dumps(kind())) == kind()


@pytest.mark.parametrize("direction", Direction)
def test_a_formula_that_gives_no_number_gives_no_answer(direction: Direction) -> None:
    if direction is not Direction.LOWER:
        with pytest.raises(ValueError, match="without NaN"):
            row(lambda problem: math.nan, direction).answer(PROBLEM, 0)
