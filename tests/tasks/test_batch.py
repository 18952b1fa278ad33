"""Batches: every point once, neighbours in state, of a size that suits the workers."""

import pickle
from dataclasses import dataclass
from typing import Annotated, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privcore import Answer, Cost, Direction, Method, Point, Problem, find, find_problem
from privcore.parameter import Real
from tasks.batch import LONGEST, MOST_POINTS, SHORTEST, cut, group
from tasks.limits import Limits

EPSILON, DELTA = find_problem("unamplified-epsilon"), find_problem("unamplified-delta")
_SECONDS = Real(name="seconds", symbol="", lower=0, upper=1e9, typical=(1.0,), meaning="Estimated seconds")


@dataclass(frozen=True, kw_only=True)
class Sharing(Method):
    """Costs the value of its setting, and shares state among points of one sigma and one number of epochs."""

    name: ClassVar[str] = "test.sharing"
    problems: ClassVar[tuple[type[Problem], ...]] = (EPSILON, DELTA)
    direction: ClassVar[Direction] = Direction.ESTIMATE
    reference: ClassVar[str] = "none"
    shares: ClassVar[tuple[str, ...]] = ("sigma", "epochs")
    seconds: Annotated[float, _SECONDS] = 1.0

    def cost(self, problem: Problem) -> Cost:
        return Cost(seconds=self.seconds, bytes=1e6)

    def answer(self, problem: Problem, seed: int) -> Answer:
        raise NotImplementedError


def grid(sigmas: int, deltas: int) -> list[Problem]:
    """Deltas vary slowest, so that points of one sigma are far apart."""
    return [
        EPSILON.from_fields({"sigma": 1 + s, "delta": 1e-9 * (1 + d)})
        for d in range(deltas)
        for s in range(sigmas)
    ]


@given(
    sigmas=st.integers(1, 12),
    deltas=st.integers(1, 12),
    seconds=st.floats(0, 40),
    workers=st.integers(1, 64),
)
def test_every_point_is_in_one_batch_and_the_same_points_give_the_same_batches(
    sigmas: int, deltas: int, seconds: float, workers: int
) -> None:
    methods: list[Method] = [Sharing(seconds=seconds), find("unamplified.exact")()]
    points = [Point(problem=p, method=m) for p in grid(sigmas, deltas) for m in methods]
    batches = cut(group(points, Limits()), workers)
    ids = [point.id for batch in batches for point in batch.points()]
    assert sorted(ids) == sorted(point.id for point in points)
    assert batches == cut(group(points, Limits()), workers)
    assert all(batch.seconds <= max(2 * LONGEST + seconds, seconds) for batch in batches)
    first, *others = [b.seconds for b in batches]
    assert [*others, first] == sorted((b.seconds for b in batches), reverse=True)


def test_points_that_share_state_are_neighbours_and_seldom_parted() -> None:
    points = [Point(problem=p, method=Sharing(seconds=0.5)) for p in grid(sigmas=8, deltas=10)]
    batches = cut(group(points, Limits()), workers=1)
    sigmas = [[problem.as_fields()["sigma"] for problem in (p.problem for p in b.points())] for b in batches]
    assert all(row == sorted(row) for row in sigmas)
    assert sum(len(set(row)) for row in sigmas) == 8, "no state is computed twice"


@pytest.mark.thorough
def test_one_and_a_hundred_thousand_trivial_points_make_few_but_enough_batches() -> None:
    exact = find("unamplified.exact")()
    points = (
        Point(problem=DELTA.from_fields({"sigma": 1 + i * 1e-6, "epsilon": 1.0}), method=exact)
        for i in range(100_000)
    )
    batches = cut(group(points, Limits()), workers=2)
    assert 8 <= len(batches) <= 200
    assert max(len(batch) for batch in batches) <= MOST_POINTS
    assert len(pickle.dumps(batches[0])) < 120 * len(batches[0])


def test_short_work_is_not_cut_finer_than_a_second() -> None:
    points = [Point(problem=p, method=Sharing(seconds=0.125)) for p in grid(sigmas=30, deltas=1)]
    batches = cut(group(points, Limits()), workers=16)
    assert [batch.seconds for batch in batches] == [0.75] + [SHORTEST] * 3


def test_points_beyond_their_limits_cost_nothing_and_are_counted() -> None:
    points = [Point(problem=p, method=Sharing(seconds=1e6)) for p in grid(sigmas=3, deltas=2)]
    (whole,) = group(points, Limits(point_seconds=300))
    assert (whole.beyond, whole.seconds, whole.bytes) == (6, 0.0, 0.0)


def test_a_part_of_a_batch_has_its_points_and_its_share_of_the_cost() -> None:
    (batch,) = cut(group((Point(problem=p, method=Sharing()) for p in grid(4, 1)), Limits()), workers=1)[:1]
    assert [len(batch.part(1)), len(batch.part(0, 1))] == [len(batch) - 1, 1]
    assert batch.part(0, 1).seconds == batch.seconds / len(batch)
