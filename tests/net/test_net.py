"""The net: drawn questions at every door are answered as before, or more narrowly, or are listed."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from flows.answers.parse import problem_of
from flows.answers.question import adjacency_of, phases_of
from flows.answers.sourced import asked_until_tight, computed
from flows.answers.training.noise import confirmed, find_noise
from privcore import PROBLEMS
from privcore.params import SIGMA
from privcore.registry import versions
from privcore.training import run_profile, written
from tests.net.doors import Doors, opened, run
from tests.net.draw import COUNT, SAMPLERS
from tests.net.questions import ALLOWED, TOGETHER, Question, Said, before

QUESTIONS = before()
SLICES = 100
LEAST, CURRENT = 1800, 1000
"""Questions, and those whose answers before are by the versions of today: others may move freely."""
EXACT = f"unamplified.exact {versions()['unamplified.exact']}"
OLD = Said(1.0, 2.0, (EXACT,))


@pytest.fixture(scope="module")
def doors() -> Iterator[Doors]:
    with opened() as found:
        yield found


@pytest.mark.sampled(7)
@pytest.mark.parametrize("number", range(SLICES))
def test_every_answer_is_that_of_before_or_narrower(number: int, doors: Doors) -> None:
    asked = [question for question in QUESTIONS[number::SLICES] if question.about not in ALLOWED]
    assert [line for question in asked for line in question.differences(question.asked(doors))] == []


@pytest.mark.parametrize("relation", ["add-remove", "zero-out", "replace-one", "remove"])
def test_every_door_says_the_same_of_a_loader_that_drops_the_last_batch(relation: str, doors: Doors) -> None:
    sizes = {"examples": 1000, "batch_size": 300, "epochs": 2, "redraw": "each-epoch", "drop_last": True}
    given = {"sigma": 2.0, "delta": 1e-5, "adjacency": relation, **sizes}
    bracket = computed(run("shuffling", given)).bracket
    found = dict(doors.run("shuffling", given))
    assert found.keys() >= {"ps.epsilon", "certified_epsilon", "ps.compare", "page", "privsweep epsilon"}
    assert {name: ends for name, ends in found.items() if ends != (bracket.lower, bracket.upper)} == {}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("sampling", SAMPLERS)
def test_a_profile_has_the_ends_of_epsilon(sampling: str) -> None:
    question = next(q for q in QUESTIONS if q.door == "run" and q.about == sampling)
    problem = run(sampling, question.given)
    delta = {"delta": [question.given["delta"]]}
    profile = run_profile(written(phases_of(problem)), adjacency_of(problem), delta)
    line = next(each for each in profile.lines if each.quantity == "epsilon")
    bracket = computed(problem).bracket
    assert (line.lower, line.upper) == (bracket.lower, bracket.upper)


@pytest.mark.parametrize("sampling", ["poisson", "allocation", "none"])
def test_the_least_noise_has_the_ends_of_epsilon_at_this_noise(sampling: str) -> None:
    fields: dict[str, Any] = {"steps": 100, "delta": 1e-5}
    if sampling == "poisson":
        fields["sampling_probability"] = 0.01
    kind = problem_of(sampling)
    found = confirmed(find_noise(kind, fields, 2.0), asked_until_tight, precision=1e-3, largest=SIGMA.upper)
    bracket = computed(kind.from_fields({**fields, "sigma": found.sigma})).bracket
    assert (found.enough.lower, found.enough.upper) == (bracket.lower, bracket.upper)


def test_the_net_has_every_kind_of_problem_sampler_relation_and_door() -> None:
    names, kinds = {kind.name for kind in PROBLEMS}, Counter(question.about for question in QUESTIONS)
    new = names - set(kinds)
    assert len(new) <= COUNT, f"`python -m tests.net` draws questions about {new}"
    runs = {(q.about, q.given["adjacency"]) for q in QUESTIONS if q.door == "run"}
    assert runs == {(sampler, relation) for sampler, each in SAMPLERS.items() for relation in each}
    doors = Counter(question.door for question in QUESTIONS)
    assert set(doors) == {"methods", "command", "python", "page", "run", "compare", "lookup"}
    assert min(doors.values()) >= 10
    assert len({question.key for question in QUESTIONS}) == len(QUESTIONS) >= LEAST


def test_few_answers_are_of_versions_that_newer_ones_replaced() -> None:
    now = {f"{name} {number}" for name, number in versions().items()}
    old = [
        q for q in QUESTIONS if any(" " in by and by not in now for said in q.said.values() for by in said.by)
    ]
    assert len(QUESTIONS) - len(old) >= CURRENT, "`python -m tests.net` writes the answers of today"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"lower": 1.0 - 1e-4, "upper": 2.0 + 1e-4}, None),
        ({"lower": 1.5}, None),
        ({"upper": 2.001}, "wider or moved"),
        ({"lower": 0.999}, "wider or moved"),
        ({"lower": 2.1, "upper": 2.2}, "do not intersect"),
        ({"status": "failed"}, "is failed"),
        ({"confidence": 0.99}, "confidence fell"),
        ({"value": 1.5}, "estimate moved"),
    ],
)
def test_an_answer_that_is_wider_or_moved_is_noticed(changes: dict[str, float], reason: str | None) -> None:
    said = OLD.refused(replace(OLD, **changes))  # type: ignore[arg-type]
    assert said is None if reason is None else reason in str(said)


def test_an_interval_that_is_no_proof_stays_equal() -> None:
    likely = replace(OLD, confidence=0.99)
    assert likely.refused(likely) is None
    assert likely.refused(replace(likely, lower=1.1)) is not None


def test_a_newer_version_is_free_to_move_but_not_out_of_the_proof_before() -> None:
    old = replace(OLD, by=("unamplified.exact 0",))
    assert old.refused(replace(OLD, lower=0.0, upper=9.0)) is None
    assert "do not intersect" in str(old.refused(replace(OLD, lower=3.0, upper=9.0)))
    assert OLD.refused(replace(OLD, by=("none.such 1",))) is None
    assert "gone" in str(replace(OLD, by=("none.such 1",)).refused(OLD))


def test_an_answer_of_another_lookup_table_is_free_to_move() -> None:
    old = replace(OLD, by=("2026.01.01-00000000",))
    assert old.refused(replace(old, upper=9.0)) is not None
    assert old.refused(replace(old, upper=9.0, by=("2026.01.02-00000000",))) is None


def test_a_door_that_says_something_else_is_named() -> None:
    question = Question("run", "none", {}, {TOGETHER: OLD})
    assert question.differences({TOGETHER: OLD}) == []
    (line,) = question.differences({TOGETHER: OLD, "ps.ask": OLD})
    assert "ps.ask: another door says otherwise" in line
    (line,) = question.differences({})
    assert "no answer" in line


def test_a_line_is_read_as_it_was_written() -> None:
    for question in QUESTIONS[::50]:
        assert Question.read(question.line()) == question
