"""Lookups between stored deltas: by convexity of the privacy profile, ends are better and still proved."""

import math
import random
from pathlib import Path
from typing import Any

import pytest

from privcore import PROBLEMS, Answer, Method, Point, Problem, evaluate, find, find_problem
from storage import Found, Row, Store, open_store
from tests.storage.made_up import epsilon, put, row

EXACT = find("unamplified.exact")()
COMPUTED: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "allocation-epsilon": ("allocation.certified", [{"steps": 100}, {"steps": 1000, "epochs": 10}]),
    "poisson-epsilon": (
        "poisson.certified",
        [{"steps": 300, "sampling_probability": 0.01, "adjacency": "add"}],
    ),
    "unamplified-epsilon": ("unamplified.exact", [{"epochs": 10}, {"adjacency": "remove"}]),
    "shuffling-epsilon": ("shuffling.clones", [{"steps": 1000}]),
    "balls-in-bins-epsilon": (
        "bins.certified",
        [{"steps": 100, "epochs": 3, "redraw": "once", "adjacency": "zero-out"}],
    ),
}

FROM = ("lower_from", "upper_from", "lower_method", "upper_method")


def answered(problem: Problem, method: Method) -> Row:
    return row(problem, evaluate(Point(problem=problem, method=method)), method=method)


def asked(store: Store, problem: Problem) -> Found:
    found = store.lookup(problem)
    assert found is not None
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", COMPUTED)
def test_ends_between_deltas_agree_with_computed_brackets(name: str, tmp_path: Path) -> None:
    rng = random.Random(name)
    method, settings = COMPUTED[name]
    by = find(method)()
    better = 0
    for number, setting in enumerate(settings):
        fields = {"sigma": rng.uniform(0.6, 3.0), **setting}
        kind = find_problem(name)
        stored = [answered(kind.from_fields({**fields, "delta": d}), by) for d in (1e-7, 1e-6, 1e-5, 1e-4)]
        put(tmp_path / str(number), stored)
        corners = dict(zip((1e-7, 1e-6, 1e-5, 1e-4), (each.answer for each in stored), strict=True))
        with open_store(tmp_path / str(number)) as store:
            for _ in range(6):
                delta = 10.0 ** rng.uniform(-7.0, -3.8)
                question = kind.from_fields({**fields, "delta": delta})
                found, true = asked(store, question), answered(question, by).answer
                assert found.upper >= true.lower, question
                assert found.lower <= true.upper, question
                corner = min(each.upper for at, each in corners.items() if at <= delta)
                assert found.upper <= corner
                better += found.upper_also is not None and found.upper < corner
    assert better >= len(settings)


def test_the_chord_is_that_of_the_two_nearest_deltas(root: Path) -> None:
    ends = {1e-8: 6.0, 1e-6: 5.0, 1e-5: 4.0}
    put(root, [row(epsilon(delta=delta), Answer.enclosure(end - 0.5, end)) for delta, end in ends.items()])
    with open_store(root) as store:
        found = asked(store, epsilon(delta=4e-6))
    share = 1 / 3
    assert found.upper == pytest.approx(math.log((1 - share) * math.exp(5.0) + share * math.exp(4.0)))
    assert found.upper_from == epsilon(delta=1e-6).as_fields()
    assert found.upper_also == epsilon(delta=1e-5).as_fields()
    assert (found.upper_method, found.upper_also_method) == ("unamplified.exact", "unamplified.exact")
    assert not found.exact


def test_beyond_the_largest_delta_the_lower_end_falls_gradually(root: Path) -> None:
    ends = {1e-6: 5.0, 1e-5: 4.5}
    put(root, [row(epsilon(delta=delta), Answer.enclosure(end, end)) for delta, end in ends.items()])
    with open_store(root) as store:
        found = asked(store, epsilon(delta=1.2e-5))
        far = asked(store, epsilon(delta=1e-3))
    share = 2e-6 / 9e-6
    assert found.lower == pytest.approx(4.5 + math.log(1 - share * math.expm1(0.5)))
    assert (found.lower_from, found.lower_also) == (
        epsilon(delta=1e-5).as_fields(),
        epsilon(delta=1e-6).as_fields(),
    )
    assert (far.lower, far.lower_from, far.lower_also) == (0.0, None, None)


def test_a_stored_delta_and_a_single_delta_have_no_chord(root: Path) -> None:
    put(root, [row(epsilon(delta=1e-5), Answer.enclosure(3.0, 4.0))])
    with open_store(root) as store:
        assert asked(store, epsilon(delta=1e-5)).upper_also is None
        assert asked(store, epsilon(delta=2e-5)).upper == 4.0


def test_rows_with_a_confidence_and_infinite_ends_make_no_chord(root: Path) -> None:
    put(
        root,
        [
            row(epsilon(delta=1e-6), Answer.enclosure(4.0, 5.0)),
            row(epsilon(delta=1e-5), Answer.at_least(3.0)),
            row(epsilon(delta=1e-4), Answer.enclosure(0.5, 1.0, confidence=0.99)),
        ],
    )
    with open_store(root) as store:
        found = asked(store, epsilon(delta=4e-6))
    assert (found.lower, found.upper, found.upper_also) == (3.0, 5.0, None)


def test_other_fields_of_both_rows_may_differ_from_the_question(root: Path) -> None:
    stored = {(0.8, 1e-6): 6.0, (0.9, 1e-5): 4.0, (1.2, 1e-5): 2.0}
    put(root, [row(epsilon(sigma=s, delta=d), Answer.enclosure(1.0, end)) for (s, d), end in stored.items()])
    with open_store(root) as store:
        found = asked(store, epsilon(sigma=1.0, delta=2e-6))
    assert found.upper == pytest.approx(math.log(8 / 9 * math.exp(6.0) + 1 / 9 * math.exp(4.0)))
    assert found.upper_also == epsilon(sigma=0.9, delta=1e-5).as_fields()


@pytest.mark.thorough
def test_a_search_without_an_index_gives_the_same_chord(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(7)
    put(
        root,
        [
            row(epsilon(sigma=sigma, delta=delta), Answer.enclosure(0.9 * end, end))
            for sigma in (0.5, 1.0, 2.0)
            for delta, factor in ((1e-8, 6.0), (1e-6, 5.0), (1e-5, 4.5), (1e-4, 3.5))
            for end in [factor / sigma]
        ],
    )
    questions = [epsilon(sigma=rng.uniform(0.5, 2.0), delta=10 ** rng.uniform(-8, -4)) for _ in range(20)]
    with open_store(root) as store:
        indexed = [asked(store, question) for question in questions]
        monkeypatch.setattr("storage.sql.lookup._stored_values", lambda *_: {})
        assert [asked(store, question) for question in questions] == indexed


@pytest.mark.thorough
def test_macros_for_sql_have_the_ends_of_lookups_between_deltas(root: Path) -> None:
    rng = random.Random(24)
    allocation, certified = find_problem("allocation-epsilon"), find("allocation.certified")()
    ends = {1e-9: 8.0, 1e-8: 7.0, 1e-7: 6.2, 1e-6: 5.0, 1e-5: 4.5, 1e-4: 3.5, 1e-3: 3.0}
    stored = [
        row(allocation.from_fields({"sigma": s, "steps": t, "delta": d}), answer, method=certified)
        for s in (0.5, 1.0, 2.0)
        for t in (10, 100)
        for d, end in ends.items()
        for answer in [Answer.enclosure(0.98 * end / s, end / s - t / 1e4)]
        if rng.random() < 0.9
    ]
    put(root, stored)
    questions = [
        {
            "sigma": rng.choice((1.0, 2.0, rng.uniform(0.4, 2.5))),
            "steps": rng.choice((9, 10, 40, 200)),
            "delta": 10 ** rng.uniform(-10, -2.5),
        }
        for _ in range(80)
    ]
    values = ", ".join(
        f"({k}, {q['sigma']!r}, {q['steps']}, {q['delta']!r}::double)" for k, q in enumerate(questions)
    )
    query = f"""
        select e.* exclude (problem) from (values {values}) as q(k, sigma, steps, delta),
        epsilon_at(sigma := q.sigma, steps := q.steps, delta := q.delta) as e order by k
    """
    with open_store(root) as store:
        found = [store.lookup(allocation.from_fields(question)) for question in questions]
        told = store.sql(query).to_pylist()
    no_rows: dict[str, Any] = dict.fromkeys(FROM)
    nothing = Found(lower=0.0, upper=math.inf, exact=False, **no_rows)
    assert not any(said.pop("imported") for said in told)
    assert told == [{name: getattr(each or nothing, name) for name in told[0]} for each in found]
    assert sum(each["upper_also"] is not None for each in told) > 30
    assert sum(each["lower_also"] is not None for each in told) > 8


def test_every_problem_about_epsilon_at_a_delta_of_a_mechanism_is_declared_convex() -> None:
    declared = {kind.name for kind in PROBLEMS if kind.exp_convex}
    assert all(set(kind.exp_convex) == {"delta"} for kind in PROBLEMS if kind.exp_convex)
    profiles = {
        kind.name for kind in PROBLEMS if kind.topic in ("allocation", "training") and kind.asks == "epsilon"
    }
    assert declared == profiles


@pytest.mark.thorough
def test_the_noise_for_a_target_has_the_ends_of_lookups_between_deltas(root: Path) -> None:
    noises = (1.0, 1.5, 2.0, 3.0)
    stored = [epsilon(sigma=sigma, delta=delta) for sigma in noises for delta in (1e-8, 1e-6, 1e-4)]
    put(root, [answered(each, EXACT) for each in stored])
    by_convexity = 0
    with open_store(root) as store:
        for delta in (1e-8, 1e-7, 3e-5):
            uppers = [found.upper for n in noises if (found := store.lookup(epsilon(sigma=n, delta=delta)))]
            for target in (*uppers, 1.001 * uppers[1], 0.999 * uppers[2]):
                query = f"from unamplified_epsilon_noise(epsilon := {target!r}, delta := {delta!r})"
                (said,) = store.sql(query).to_pylist()
                least = next(k for k, upper in enumerate(uppers) if upper <= target)
                assert (said["sigma"], said["upper"]) == (noises[least], uppers[least])
                by_convexity += said["upper_also"] is not None
    assert by_convexity > 6
