"""Batches: groups are cut by cost and state, and a batch can be parted."""

import pickle

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from privcore import find, find_problem
from tasks.batch import MOST_POINTS, Batch, Columns, Cut, Span, aim, cut

DELTA = find_problem("unamplified-delta")


def stretch(seconds: list[float], parted: list[bool], first: int = 0) -> Span:
    places = np.arange(first, first + len(seconds))
    return Span(places, np.array(seconds), np.array(parted, np.bool_))


def by_loop(seconds: list[float], parted: list[bool], least: float) -> list[Cut]:
    """The same as `cut`, point by point."""
    cuts, start, sum_ = [], 0, 0.0
    for i, (cost, ends) in enumerate(zip(seconds, parted, strict=True)):
        sum_ += cost
        if sum_ >= (least if ends else 2 * least) or i - start + 1 >= MOST_POINTS or i == len(seconds) - 1:
            cuts.append(Cut(start, i + 1, i + 1 - start, sum_))
            start, sum_ = i + 1, 0.0
    return cuts


@given(
    points=st.lists(st.tuples(st.floats(0, 3), st.booleans()), max_size=60),
    lengths=st.lists(st.integers(1, 9), min_size=60, max_size=60),
    least=st.floats(0.5, 6),
)
def test_a_group_is_cut_as_a_loop_over_its_points_would(
    points: list[tuple[float, bool]], lengths: list[int], least: float
) -> None:
    """The stretches in which the points come make no difference."""
    seconds, parted = [s for s, _ in points], [p for _, p in points]
    stretches, first = [], 0
    for length in lengths:
        if first < len(points):
            stretches.append(stretch(seconds[first : first + length], parted[first : first + length], first))
            first += length
    assert list(cut(stretches, least)) == by_loop(seconds, parted, least)


def test_points_that_cost_nothing_fill_batches_of_ten_thousand() -> None:
    count = 2 * MOST_POINTS + 5
    stretches = [stretch([0.0] * 7001, [True] * 7001, 7001 * k) for k in range(2)]
    stretches.append(stretch([0.0] * (count - 14_002), [True] * (count - 14_002), 14_002))
    assert [(each.start, each.points) for each in cut(stretches, 1.0)] == [
        (0, 10_000),
        (10_000, 10_000),
        (20_000, 5),
    ]


def test_a_batch_has_at_least_a_second_and_at_most_fifteen_of_work() -> None:
    assert [aim(seconds, 2) for seconds in (0.0, 80.0, 1e9)] == [1.0, 10.0, 15.0]


def batch_of(count: int) -> Batch:
    exact = find("unamplified.exact")()
    problems = [DELTA.from_fields({"sigma": 1 + i / 8, "epsilon": 1.0}) for i in range(count)]
    rows = zip(*(problem.as_fields().values() for problem in problems), strict=True)
    columns = [np.array(values, object if isinstance(values[0], str) else None) for values in rows]
    return Batch(problem=DELTA, method=exact, fields=Columns.of(columns), seconds=4.0, bytes=0.0)


def test_a_part_of_a_batch_has_its_points_and_its_share_of_the_cost() -> None:
    batch = batch_of(4)
    assert [len(batch.part(1)), len(batch.part(0, 1))] == [3, 1]
    assert batch.part(0, 1).seconds == batch.seconds / len(batch)
    assert list(batch.part(1).points()) == list(batch.points())[1:]


def test_a_batch_is_sent_as_numbers_and_arrives_as_it_was() -> None:
    batch = batch_of(500)
    sent = pickle.dumps(batch)
    assert len(sent) < 60 * len(batch)
    assert pickle.loads(sent) == batch
    assert [type(value) for value in batch.fields[0]] == [float, float, int, int, int, str]
