"""The problems by which the image compiles all functions: typical, quick, and always the same."""

from itertools import islice

from privcore import find, find_problem
from tasks.guard import estimate
from tasks.precompile import EACH, SECONDS, typical_points


def test_typical_points_are_quick_and_always_the_same() -> None:
    kind, method = find_problem("allocation-epsilon"), find("allocation.certified")
    points = list(islice(typical_points(kind, method), EACH))
    assert len({point.id for point in points}) == EACH
    assert [point.id for point in points] == [p.id for p in islice(typical_points(kind, method), EACH)]
    assert all(0.0 < estimate(point).seconds <= SECONDS for point in points)
