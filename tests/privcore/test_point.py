"""Ids of points are stable hashes of everything that affects the answer, and of nothing else."""

import subprocess
import sys
from typing import Any

import pytest

from privcore import METHODS, Answer, Method, Point, PrivsweepError, Problem, Status, evaluate, find
from tests.privcore.draws import problem

PINNED = {
    "unamplified.exact": "d448206744ccbf2bc99fcdabe1533aa4",
    "allocation.certified": "4490970d65b97b4b178d46082f719d4e",
}


def pinned_point(method: str) -> Point:
    if method == "unamplified.exact":
        question = problem("unamplified-epsilon", sigma=1.0, delta=1e-5)
        return Point(problem=question, method=find(method)())
    question = problem("allocation-delta", sigma=0.5, steps=1000, epsilon=-1.5, adjacency="add")
    return Point(problem=question, method=find(method).from_knobs({"tolerance": 0.002}))


@pytest.mark.parametrize("method", PINNED)
def test_ids_never_change(method: str) -> None:
    assert pinned_point(method).id == PINNED[method]


def test_the_canonical_form_is_sorted_json_without_defaults() -> None:
    assert pinned_point("unamplified.exact").canonical == (
        '{"fields":{"delta":1e-05,"sigma":1.0},"method":"unamplified.exact",'
        '"problem":"unamplified-epsilon","version":1}'
    )
    assert pinned_point("allocation.certified").canonical == (
        '{"fields":{"adjacency":"add","epsilon":-1.5,"sigma":0.5,"steps":1000},'
        '"knobs":{"tolerance":0.002},"method":"allocation.certified","problem":"allocation-delta","version":5}'
    )


def test_the_id_is_the_same_in_another_process_with_another_hash_seed() -> None:
    program = (
        "from privcore import *;"
        "p = find_problem('unamplified-epsilon')(sigma=1.0, delta=1e-5);"
        "print(Point(problem=p, method=find('unamplified.exact')()).id)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": "7"},
    )
    assert done.stdout.strip() == PINNED["unamplified.exact"]


def test_fields_and_knobs_at_their_defaults_do_not_change_the_id() -> None:
    method = find("allocation.certified")
    short = Point(problem=problem("allocation-epsilon", sigma=1, steps=100.0, delta=1e-6), method=method())
    full = problem(
        "allocation-epsilon",
        sigma=1.0,
        steps=100,
        delta=1e-6,
        participations=1,
        epochs=1,
        adjacency="add-remove",
    )
    knobs = {name: getattr(method(), name) for name in method.knobs}
    assert Point(problem=full, method=method.from_knobs(knobs)).id == short.id


def test_whatever_affects_the_answer_changes_the_id() -> None:
    method = find("allocation.certified")
    fields = {"sigma": 1.0, "steps": 100, "delta": 1e-6}
    changes: tuple[dict[str, Any], ...] = (
        {},
        {"sigma": 1.0000000000000002},
        {"steps": 101},
        {"delta": 2e-6},
        {"participations": 2},
        {"epochs": 2},
        {"adjacency": "add"},
    )
    points = [
        Point(problem=problem("allocation-epsilon", **fields | change), method=method()) for change in changes
    ]
    base = points[0].problem
    points.append(Point(problem=base, method=method.from_knobs({"tolerance": 0.02})))
    points.append(Point(problem=base, method=find("allocation.decomposition")()))
    assert len({point.id for point in points}) == len(points)


def test_a_seed_is_a_function_of_the_id() -> None:
    point = pinned_point("unamplified.exact")
    assert point.seed == int(point.id[:16], 16) >> 1
    assert 0 <= point.seed < 2**63


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_a_method_is_not_paired_with_a_foreign_problem(method: type[Method]) -> None:
    foreign = problem("unamplified-epsilon", sigma=1.0, delta=1e-5)
    if isinstance(foreign, method.problems):
        foreign = problem("poisson-epsilon", sigma=1.0, steps=1, sampling_probability=0.5, delta=1e-5)
    with pytest.raises(PrivsweepError, match=f"Method {method.name} does not answer {foreign.name}"):
        Point(problem=foreign, method=method())


def interrupted_in_compiled_code(self: Method, problem: Problem, seed: int) -> Answer:
    """Raise as numba does if Ctrl-C comes while it converts arguments."""
    try:
        raise KeyboardInterrupt  # noqa: TRY301
    except KeyboardInterrupt as interrupt:
        raise SystemError("CPUDispatcher returned a result with an exception set") from interrupt


def failing(self: Method, problem: Problem, seed: int) -> Answer:
    raise SystemError("for another reason")


def test_an_interrupt_that_compiled_code_turned_into_an_error_is_not_a_failed_point(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    point = pinned_point("unamplified.exact")
    monkeypatch.setattr(type(point.method), "answer", interrupted_in_compiled_code)
    with pytest.raises(KeyboardInterrupt):
        evaluate(point)


def test_an_error_after_an_interrupt_that_was_handled_is_a_failed_point(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    point = pinned_point("unamplified.exact")
    monkeypatch.setattr(type(point.method), "answer", failing)
    try:
        raise KeyboardInterrupt  # noqa: TRY301
    except KeyboardInterrupt:
        answer = evaluate(point)
    assert (answer.status, answer.detail) == (Status.FAILED, "SystemError: for another reason")


INTERRUPTED = """
import os, signal, threading, time
import numpy as np
from privcore import Answer, Point, evaluate, find, find_problem
from privcore.numerics.compiled import compiled

@compiled(cache=False)
def total(values):
    whole = 0.0
    for value in values:
        whole += value
    return whole

def answer(self, problem, seed):
    give_up = time.monotonic() + 60
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    while time.monotonic() < give_up:
        total(np.ones(10))

total(np.ones(10))
method = find("unamplified.exact")
method.answer = answer
point = Point(problem=find_problem("unamplified-epsilon")(sigma=1.0, delta=1e-5), method=method())
for _ in range(20):
    try:
        print(evaluate(point).detail)
    except KeyboardInterrupt:
        print("interrupted")
"""


def test_ctrl_c_in_a_loop_of_compiled_code_is_never_an_answer() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n") == ["interrupted"] * 20 + [""]
