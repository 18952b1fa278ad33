import math
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from privcore import Answer, Method, Problem, find, find_problem
from privcore.parameter import Value
from storage import Found, open_store
from tests.storage.made_up import Claims, UnamplifiedEpsilon, epsilon, put, row
from tests.suites import whole

PoissonEpsilon = find_problem("poisson-epsilon")

# Values on and between the stored ones; adjacency has no proved trend.
COMMON: dict[str, list[Value]] = {
    "sigma": [0.5, 0.75, 1.0, 1.5, 2.0],
    "delta": [1e-8, 1e-7, 1e-6, 1e-5, 1e-4],
    "epochs": [1, 2, 5],
    "adjacency": ["add-remove", "add"],
}
GRIDS: dict[type[Problem], dict[str, list[Value]]] = {
    UnamplifiedEpsilon: {"steps": [3, 4], "participations": [1, 2, 3]},
    PoissonEpsilon: {"steps": [1, 2, 4, 5, 10], "sampling_probability": [0.1, 0.25, 1.0]},
}
METHOD = {UnamplifiedEpsilon: find("unamplified.exact")(), PoissonEpsilon: find("poisson.certified")()}
slacks = st.sampled_from([0.0, 0.125, 1.0, math.inf])


def drawn(kind: type[Problem]) -> st.SearchStrategy[Problem]:
    grid = COMMON | GRIDS[kind]
    return st.fixed_dictionaries({name: st.sampled_from(values) for name, values in grid.items()}).map(
        kind.from_fields
    )


def is_worse(one: Problem, other: Problem) -> bool:
    """Whether the truth of `one` is proved to be at least that of `other`."""
    mine: Any = one
    theirs: Any = other
    if isinstance(one, PoissonEpsilon):
        longer = mine.steps * mine.epochs >= theirs.steps * theirs.epochs
        further = longer and mine.sampling_probability >= theirs.sampling_probability
    else:  # steps that do not use an example make no difference
        further = mine.participations * mine.epochs >= theirs.participations * theirs.epochs
    noisier = mine.sigma > theirs.sigma or mine.delta > theirs.delta
    return further and not noisier and mine.adjacency == theirs.adjacency


def monotone_truth(anchors: Mapping[Problem, float], problem: Problem) -> float:
    """The largest value of the anchors whose truth is at most that of the problem: a monotone function."""
    return max((value for anchor, value in anchors.items() if is_worse(problem, anchor)), default=0.0)


Case = tuple[dict[Problem, float], dict[Problem, tuple[float, float]], list[Problem]]


def cases(kind: type[Problem]) -> st.SearchStrategy[Case]:
    """True values at some problems, brackets of stored problems around them, and questions."""
    problems = drawn(kind)
    return st.tuples(
        st.dictionaries(problems, st.integers(1, 64).map(float), min_size=1, max_size=12),
        st.dictionaries(problems, st.tuples(slacks, slacks), min_size=1, max_size=25),
        st.lists(problems, min_size=1, max_size=20),
    )


@settings(max_examples=20 if whole() else 4)
@given(case=st.sampled_from([UnamplifiedEpsilon, PoissonEpsilon]).flatmap(cases))
@example(
    case=(
        {epsilon(sigma=1.0): 4.0},
        {epsilon(sigma=1.0): (0.0, 0.0)},
        [
            epsilon(sigma=1.0),
            epsilon(sigma=math.nextafter(1.0, 2)),
            epsilon(sigma=math.nextafter(1.0, 0)),
        ],
    )
)
def test_a_lookup_contains_the_truth_and_is_the_best_corner(case: Case) -> None:
    anchors, table, questions = case
    stored = {
        problem: (max(0.0, truth - below), truth + above)
        for problem, (below, above) in table.items()
        for truth in [monotone_truth(anchors, problem)]
    }
    useful = {p: ends for p, ends in stored.items() if ends[0] > 0 or ends[1] < math.inf}
    with tempfile.TemporaryDirectory() as folder:
        method = METHOD[type(questions[0])]
        put(
            Path(folder) / "store",
            [row(p, Answer.enclosure(*ends), method=method) for p, ends in stored.items()],
        )
        with open_store(Path(folder) / "store") as store, corners_alone(method):
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


@contextmanager
def corners_alone(method: Method) -> Iterator[None]:
    """Leave out the chords between deltas: the made-up truth is not convex."""
    (kind,) = (kind for kind in method.problems if kind in GRIDS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kind, "exp_convex", {})
        yield


def check_sources(found: Found, above: dict[Problem, float], below: dict[Problem, float]) -> None:
    """The fields that a lookup names are those of a stored problem which gives that end."""
    for ends, end, source in [(above, found.upper, found.upper_from), (below, found.lower, found.lower_from)]:
        assert (source is None) == (not ends)
        if source is not None:
            assert ends[type(next(iter(ends))).from_fields(source)] == end


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


def test_only_the_product_of_steps_and_epochs_matters_for_poisson_sampling(root: Path) -> None:
    def poisson(steps: int, epochs: int) -> Problem:
        fields = {"sigma": 1.0, "steps": steps, "sampling_probability": 0.01, "delta": 1e-5, "epochs": epochs}
        return PoissonEpsilon.from_fields(fields)

    def found(steps: int, epochs: int) -> tuple[float, float] | None:
        answer = store.lookup(poisson(steps, epochs))
        return None if answer is None else (answer.lower, answer.upper)

    method = METHOD[PoissonEpsilon]
    put(root, row(poisson(100, 10), Answer.enclosure(1.0, 2.0), method=method))
    with open_store(root) as store:
        for steps, epochs in ((100, 10), (1000, 1), (1, 1000), (250, 4)):
            assert found(steps, epochs) == (1.0, 2.0)
        assert found(999, 1) == (0.0, 2.0)
        assert found(143, 7) == (1.0, math.inf)
        near = store.lookup(poisson(1000, 1))
    assert near is not None
    assert (near.exact, near.upper_from) == (False, poisson(100, 10).as_fields())


def test_the_question_itself_is_named_although_an_equal_product_is_stored_before_it(root: Path) -> None:
    fields = {"sigma": 1.0, "sampling_probability": 0.01, "delta": 1e-5}
    stored = [
        PoissonEpsilon.from_fields({**fields, "steps": steps, "epochs": 12 // steps})
        for steps in (2, 3, 4, 6)
    ]
    put(root, [row(p, Answer.enclosure(1.0, 2.0), method=METHOD[PoissonEpsilon]) for p in stored])
    with open_store(root) as store:
        for question in stored:
            found = store.lookup(question)
            assert found is not None
            assert found.exact
            assert found.lower_from == found.upper_from == question.as_fields()


def test_a_field_without_a_proved_trend_must_match(root: Path) -> None:
    put(root, row(epsilon(), Answer.enclosure(1.0, 2.0)))
    delta_problem = find_problem("unamplified-delta").from_fields({"sigma": 1.0, "epsilon": 1.0})
    with open_store(root) as store:
        assert store.lookup(epsilon(adjacency="add")) is None
        assert store.lookup(delta_problem) is None
