import math
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from privcore import Answer, Problem, Trend, find_problem
from privcore.parameter import Value
from storage import Found, open_store
from tests.storage.made_up import Claims, UnamplifiedEpsilon, epsilon, put, row

# Values on and between the stored ones; steps and adjacency have no proved trend in this problem.
GRID: dict[str, list[Value]] = {
    "sigma": [0.5, 0.75, 1.0, 1.5, 2.0],
    "delta": [1e-8, 1e-7, 1e-6, 1e-5, 1e-4],
    "steps": [3, 4],
    "participations": [1, 2, 3],
    "epochs": [1, 2, 5],
    "adjacency": ["add-remove", "add"],
}
problems = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in GRID.items()}).map(
    UnamplifiedEpsilon.from_fields
)
slacks = st.sampled_from([0.0, 0.125, 1.0, math.inf])


def is_worse(one: Problem, other: Problem) -> bool:
    """Whether the truth of `one` is proved to be at least that of `other`."""
    for name, mine in one.as_fields().items():
        theirs: Any = getattr(other, name)
        if name not in one.monotone:
            if mine != theirs:
                return False
        elif mine != theirs and (mine > theirs) != (one.monotone[name].trend is Trend.INCREASING):
            return False
    return True


def monotone_truth(anchors: Mapping[Problem, float], problem: Problem) -> float:
    """The largest value of the anchors whose truth is at most that of the problem: a monotone function."""
    return max((value for anchor, value in anchors.items() if is_worse(problem, anchor)), default=0.0)


@settings(max_examples=15)
@given(
    anchors=st.dictionaries(problems, st.integers(1, 64).map(float), min_size=1, max_size=12),
    table=st.dictionaries(problems, st.tuples(slacks, slacks), min_size=1, max_size=25),
    questions=st.lists(problems, min_size=1, max_size=20),
)
@example(
    anchors={epsilon(sigma=1.0): 4.0},
    table={epsilon(sigma=1.0): (0.0, 0.0)},
    questions=[
        epsilon(sigma=1.0),
        epsilon(sigma=math.nextafter(1.0, 2)),
        epsilon(sigma=math.nextafter(1.0, 0)),
    ],
)
def test_a_lookup_contains_the_truth_and_is_the_best_corner(
    anchors: dict[Problem, float], table: dict[Problem, tuple[float, float]], questions: list[Problem]
) -> None:
    stored = {
        problem: (max(0.0, truth - below), truth + above)
        for problem, (below, above) in table.items()
        for truth in [monotone_truth(anchors, problem)]
    }
    useful = {p: ends for p, ends in stored.items() if ends[0] > 0 or ends[1] < math.inf}
    with tempfile.TemporaryDirectory() as folder:
        put(Path(folder) / "store", [row(p, Answer.enclosure(*ends)) for p, ends in stored.items()])
        with open_store(Path(folder) / "store") as store:
            for question in [*questions, *table]:
                above = {
                    p: high for p, (_, high) in useful.items() if high < math.inf and is_worse(p, question)
                }
                below = {p: low for p, (low, _) in useful.items() if low > 0 and is_worse(question, p)}
                found = store.lookup(question)
                if not above and not below:
                    assert found is None
                    continue
                assert found is not None
                assert found.lower <= monotone_truth(anchors, question) <= found.upper
                assert found.upper == min(above.values(), default=math.inf)
                assert found.lower == max(below.values(), default=0.0)
                assert found.exact == (question in useful)
                check_sources(found, above, below)


def check_sources(found: Found, above: dict[Problem, float], below: dict[Problem, float]) -> None:
    """The fields that a lookup names are those of a stored problem which gives that end."""
    for ends, end, source in [(above, found.upper, found.upper_from), (below, found.lower, found.lower_from)]:
        assert (source is None) == (not ends)
        if source is not None:
            assert ends[UnamplifiedEpsilon.from_fields(source)] == end


def test_an_exact_hit_is_tightened_by_its_neighbours(root: Path) -> None:
    put(
        root,
        [
            row(epsilon(sigma=1.0), Answer.enclosure(2.0, 5.0)),
            row(epsilon(sigma=0.9), Answer.enclosure(3.0, 4.0), method=Claims()),
            row(epsilon(sigma=1.1), Answer.enclosure(2.5, 4.5), method=Claims(number=1)),
        ],
    )
    with open_store(root) as store:
        found = store.lookup(epsilon(sigma=1.0))
    assert found == Found(
        lower=2.5,
        upper=4.0,
        exact=True,
        lower_from=epsilon(sigma=1.1).as_fields(),
        upper_from=epsilon(sigma=0.9).as_fields(),
        lower_method="test.claims",
        upper_method="test.claims",
    )


def test_an_exact_hit_is_named_as_the_source_where_a_neighbour_says_the_same(root: Path) -> None:
    put(root, [row(epsilon(sigma=s), Answer.enclosure(1.0, 2.0)) for s in (0.8, 0.9, 1.0, 1.1)])
    with open_store(root) as store:
        found = store.lookup(epsilon(sigma=1.0))
    assert found is not None
    assert found.lower_from == found.upper_from == epsilon(sigma=1.0).as_fields()


def test_beyond_the_grid_one_end_is_open(root: Path) -> None:
    put(root, row(epsilon(sigma=1.0), Answer.enclosure(1.0, 2.0)))
    with open_store(root) as store:
        less_noise, more_noise = store.lookup(epsilon(sigma=0.5)), store.lookup(epsilon(sigma=2.0))
        assert less_noise is not None
        assert (less_noise.lower, less_noise.upper, less_noise.upper_from) == (1.0, math.inf, None)
        assert more_noise is not None
        assert (more_noise.lower, more_noise.upper, more_noise.lower_from) == (0.0, 2.0, None)
        assert store.lookup(epsilon(sigma=2.0, delta=1e-9)) is None


def test_rows_at_the_ends_of_a_field_that_makes_no_difference_serve_all_between(root: Path) -> None:
    put(root, row(epsilon(steps=1), Answer.enclosure(1.0, 2.0)))
    put(root, row(epsilon(steps=10**6), Answer.enclosure(1.0, 2.0)))
    with open_store(root) as store:
        found = store.lookup(epsilon(steps=234))
    assert found is not None
    assert (found.lower, found.upper) == (1.0, 2.0)


def test_a_field_without_a_proved_trend_must_match(root: Path) -> None:
    put(root, row(epsilon(), Answer.enclosure(1.0, 2.0)))
    delta_problem = find_problem("unamplified-delta").from_fields({"sigma": 1.0, "epsilon": 1.0})
    with open_store(root) as store:
        assert store.lookup(epsilon(adjacency="add")) is None
        assert store.lookup(delta_problem) is None
