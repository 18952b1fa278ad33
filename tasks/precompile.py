"""Compilation of all functions before they are needed: `python -m tasks.precompile`, a step of the image.

Numba compiles a function for the types of its first call, so every method answers a few typical problems.
"""

import random
from collections.abc import Iterator
from itertools import islice

from privcore.errors import DomainError
from privcore.method import Method
from privcore.point import Point, evaluate
from privcore.problem import Problem
from privcore.registry import PROBLEMS, answering
from tasks.guard import estimate

SECONDS = 0.5  # longest estimate of a problem that is computed
EACH = 3  # problems for each method
TRIED = 300  # problems that are drawn for each method at most


def precompile() -> int:
    """Return the number of points that were computed so that their functions are compiled."""
    return sum(
        evaluate(point).status.value == "ok"
        for kind in PROBLEMS
        for method in answering(kind)
        for point in islice(typical_points(kind, method), EACH)
    )


def typical_points(kind: type[Problem], method: type[Method]) -> Iterator[Point]:
    """Yield points with typical parameters that a method answers within half a second, always the same."""
    source = random.Random(f"{kind.name} {method.name}")
    for _ in range(TRIED):
        fields = {name: source.choice(list(p.typical_values())) for name, p in kind.parameters.items()}
        try:
            problem = kind.from_fields(fields)
        except DomainError:  # the values contradict one another
            continue
        point = Point(problem=problem, method=method())
        if method().applies(problem) is None and estimate(point).seconds <= SECONDS:
            yield point


if __name__ == "__main__":
    print(f"{precompile()} points computed")
