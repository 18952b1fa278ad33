"""Contract of every registered method, tested on problems drawn from the declared domains.

The tests are independent of topics: a new method or problem is tested before its author writes a test. The
number of drawn problems follows from the declared costs of the methods. `make test` draws some kinds.
"""

import itertools
import json
import random
import re
import subprocess
import sys
import time
import tracemalloc
from dataclasses import dataclass

import pytest

from privcore import METHODS, PROBLEMS, Answer, Direction, Method, Point, Problem, Status, Trend, evaluate
from tests.privcore.draws import draw_problem, draw_value
from tests.suites import some, whole

COST_FACTOR = 5.0
"""A measured cost may exceed the declared one by this factor,"""
GRACE = 0.2
"""plus this many seconds; the declared cost of a point is for compiled and imported code."""
GRACE_BYTES = 20e6
AFFORDABLE, SLOWER = 0.5, 10.0
"""Largest declared seconds of a problem, and the factor for methods without a problem of this cost."""

pytestmark = pytest.mark.xdist_group("contract")  # the drawn problems are evaluated once

KINDS = some(PROBLEMS, 20, "kinds")
THEIRS = [method for method in METHODS if set(method.problems) & set(KINDS)]
"""The methods that answer one of these kinds."""

each_method = pytest.mark.parametrize("method", THEIRS, ids=lambda method: method.name)
each_problem = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


@dataclass(frozen=True)
class Draw:
    """A drawn problem, the answer of a method and its CPU seconds; None if the method does not apply."""

    problem: Problem
    method: Method
    reason: str | None
    answer: Answer
    seconds: float


def run(problem: Problem, method: Method) -> Draw:
    """Evaluate one point and measure its CPU seconds."""
    start = time.process_time()
    answer = evaluate(Point(problem=problem, method=method))
    return Draw(problem, method, method.applies(problem), answer, time.process_time() - start)


def sample(kind: type[Problem], seed: int, *, budget: float, affordable: float, least: int = 6) -> list[Draw]:
    """Return the answers of the default methods to drawn problems of one kind.

    A method gets `least` problems to which it applies, at any cost, and more problems within the budget. A
    method without an affordable problem gets one problem that takes longer.

    Args:
        kind: Class of the problems; two of three are typical, the others have fields from the whole domain.
        seed: Seed of the draws.
        budget: Declared seconds to be spent on each method.
        affordable: Largest declared cost of a single point in seconds.
        least: Problems to which a method applies and that it gets at any cost.
    """
    rng = random.Random(f"{kind.name} {seed}")
    methods = [method() for method in METHODS if kind in method.problems]
    spent, met = dict.fromkeys(methods, 0.0), dict.fromkeys(methods, 0)
    draws = []
    for count in range(300):
        if count >= 60:  # only methods that rarely apply are missing
            methods = [method for method in methods if not met[method]]
        problem = draw_problem(kind, rng, wild=0.0 if count % 3 else 0.7)
        for method in methods:
            seconds = method.cost(problem).seconds
            patient = SLOWER if count >= 60 else 1.0
            if seconds > patient * affordable or (patient > 1.0 and met[method]):
                continue
            if spent[method] + seconds <= budget or met[method] < least:
                spent[method] += seconds
                draws.append(run(problem, method))
                met[method] += draws[-1].reason is None
    return draws


@pytest.fixture(scope="module")
def draws() -> list[Draw]:
    """Answers of every method to every kind of problem that it answers."""
    for kind in KINDS if whole() else ():  # compiles and imports before times are measured
        for method in METHODS:
            if kind in method.problems:
                run(draw_problem(kind, random.Random(0)), method())
    least, budget = (6, 0.7) if whole() else (2, 0.05)
    return [
        draw for kind in KINDS for draw in sample(kind, 1, least=least, budget=budget, affordable=AFFORDABLE)
    ]


def quick(draws: list[Draw]) -> list[Draw]:
    """Return the draws that are cheap enough to be repeated with a small change."""
    return [draw for draw in draws if draw.method.cost(draw.problem).seconds < 0.2 and draw.seconds < 0.2]


def by_problem(draws: list[Draw]) -> dict[Problem, list[Draw]]:
    """Group draws by their problem."""
    groups: dict[Problem, list[Draw]] = {}
    for draw in draws:
        groups.setdefault(draw.problem, []).append(draw)
    return groups


def test_every_method_meets_problems_to_which_it_applies(draws: list[Draw]) -> None:
    for method in THEIRS:
        applied = [draw for draw in draws if type(draw.method) is method and draw.reason is None]
        quick = any(draw.method.cost(draw.problem).seconds <= AFFORDABLE for draw in applied)
        assert len(applied) >= (5 if whole() and quick else 1), method.name


def test_a_method_applies_or_says_why_not_in_one_sentence(draws: list[Draw]) -> None:
    for draw in draws:
        if draw.reason is None:
            assert draw.answer.status is not Status.NOT_APPLICABLE, draw
        else:
            assert re.fullmatch(r"[A-Z][^\n]{10,200}\.", draw.reason), draw
            assert (draw.answer.status, draw.answer.detail) == (Status.NOT_APPLICABLE, draw.reason), draw


def test_evaluation_ends_in_an_answer_or_in_a_sentence_and_never_in_an_exception(draws: list[Draw]) -> None:
    for draw in draws:
        assert draw.answer.status in (Status.OK, Status.NOT_APPLICABLE, Status.FAILED), draw
        if draw.answer.status is Status.FAILED:
            assert not re.match(r"\w+(Error|Warning|Exception)\b", draw.answer.detail), draw
            assert re.fullmatch(r"[A-Z][^\n]{10,200}\.", draw.answer.detail), draw


def test_an_answer_lies_between_0_and_the_largest_truth(draws: list[Draw]) -> None:
    for draw in draws:
        answer, largest = draw.answer, draw.problem.largest
        assert 0.0 <= answer.lower <= largest, draw
        assert answer.upper >= 0.0, draw
        if draw.answer.ok and draw.method.direction is not Direction.ESTIMATE:
            assert answer.upper <= largest, draw
        assert answer.value is None or 0.0 <= answer.value <= largest, draw


def test_an_answer_is_of_the_kind_that_the_method_claims(draws: list[Draw]) -> None:
    for draw in draws:
        direction, answer = draw.method.direction, draw.answer
        if not answer.ok:
            continue
        assert answer.detail, draw
        if direction is Direction.ESTIMATE:
            assert answer.value is not None, draw
        if direction in (Direction.UPPER, Direction.ESTIMATE):
            assert answer.lower == 0.0, draw
        if direction in (Direction.LOWER, Direction.ESTIMATE):
            assert answer.upper >= draw.problem.largest, draw


def test_the_enclosures_of_a_problem_intersect(draws: list[Draw]) -> None:
    for problem, group in by_problem(draws).items():
        rigorous = [draw for draw in group if draw.answer.rigorous]
        for one, other in itertools.combinations(rigorous, 2):
            assert one.answer.lower <= other.answer.upper, (problem, one, other)
            assert other.answer.lower <= one.answer.upper, (problem, one, other)


def test_an_estimate_lies_near_the_enclosures(draws: list[Draw]) -> None:
    """Within a factor of 2: an estimate is not proved, but should not mislead."""
    for problem, group in by_problem(draws).items():
        for estimate in group:
            if estimate.answer.value is None:
                continue
            for draw in group:
                # No simulated bag has an event as rare as 1e-26.
                counted = estimate.answer.value > 0.0 or draw.answer.lower > 1e-3
                if draw.answer.rigorous and counted:
                    assert estimate.answer.value >= 0.5 * draw.answer.lower, (problem, estimate, draw)
                    assert estimate.answer.value <= 2.0 * draw.answer.upper + 1e-9, (problem, estimate, draw)


@pytest.mark.thorough
def test_the_declared_seconds_hold(draws: list[Draw]) -> None:
    def late(draw: Draw) -> bool:
        return draw.seconds > COST_FACTOR * draw.method.cost(draw.problem).seconds + GRACE

    # The first run may have met a garbage collection or code not compiled yet; a wrong cost stays wrong.
    again = [
        min((run(draw.problem, draw.method) for _ in range(3)), key=lambda draw: draw.seconds)
        for draw in filter(late, draws)
    ]
    slow = [
        f"{draw.seconds:.2f} s, declared {draw.method.cost(draw.problem).seconds:.3f} s: {draw}"
        for draw in filter(late, again)
    ]
    assert not slow


@each_method
def test_the_declared_bytes_hold(method: type[Method], draws: list[Draw]) -> None:
    applied = [draw for draw in quick(draws) if type(draw.method) is method and draw.answer.ok]
    for draw in applied[:: max(1, len(applied) // 4)]:
        declared = draw.method.cost(draw.problem).bytes
        tracemalloc.start()
        try:
            evaluate(Point(problem=draw.problem, method=draw.method))
            measured = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert measured <= COST_FACTOR * declared + GRACE_BYTES, draw


def test_the_same_point_gives_the_same_bits_in_a_fresh_process_in_another_order(draws: list[Draw]) -> None:
    cheap = quick(draws)[::-7]
    points = [
        {
            "problem": draw.problem.name,
            "fields": draw.problem.as_fields(),
            "method": draw.method.name,
        }
        for draw in cheap
    ]
    done = subprocess.run(
        [sys.executable, "-c", FRESH], input=json.dumps(points), capture_output=True, text=True, check=True
    )
    for draw, line in zip(cheap, done.stdout.splitlines(), strict=True):
        assert line == bits(draw.answer), draw


FRESH = """
import json, sys
from privcore import Point, evaluate, find, find_problem
for point in json.load(sys.stdin):
    problem = find_problem(point["problem"]).from_fields(point["fields"])
    answer = evaluate(Point(problem=problem, method=find(point["method"])()))
    print(repr((answer.lower, answer.upper, answer.value, answer.status.value)))
"""


def bits(answer: Answer) -> str:
    """Return the numbers of an answer as text; equal texts mean equal bits."""
    return repr((answer.lower, answer.upper, answer.value, answer.status.value))


@each_method
def test_a_knob_changes_tightness_and_never_the_truth(method: type[Method], draws: list[Draw]) -> None:
    rng = random.Random(method.name)
    applied = [
        draw for draw in draws if type(draw.method) is method and draw.answer.ok and draw.seconds < 0.1
    ]
    for name, parameter in method.knobs.items():
        for draw in rng.sample(applied, min(6, len(applied))):
            for wild in (False, True):
                changed = method.from_knobs({name: draw_value(parameter, rng, wild=wild)})
                if changed.cost(draw.problem).seconds > 1.0:
                    continue
                answer = evaluate(Point(problem=draw.problem, method=changed))
                if answer.rigorous and draw.answer.rigorous:
                    assert answer.lower <= draw.answer.upper, (draw, changed, answer)
                    assert draw.answer.lower <= answer.upper, (draw, changed, answer)


@each_problem
def test_declared_monotonicity_is_never_contradicted(kind: type[Problem], draws: list[Draw]) -> None:
    """Of drawn problems that differ in one field, the worse problem has the larger truth."""
    rng = random.Random(kind.name)
    ours = [
        draw for draw in draws if type(draw.problem) is kind and draw.answer.rigorous and draw.seconds < 0.1
    ]
    for draw in rng.sample(ours, min(25, len(ours)) if kind.monotone else 0):
        name, monotone = rng.choice(sorted(kind.monotone.items()))
        try:
            other = kind.from_fields(
                draw.problem.as_fields()
                | {name: draw_value(kind.parameters[name], rng, wild=rng.random() < 0.3)}
            )
        except ValueError:  # the fields contradict one another
            continue
        if draw.method.cost(other).seconds > 0.5:
            continue
        answer = evaluate(Point(problem=other, method=draw.method))
        grows = getattr(other, name) >= getattr(draw.problem, name)
        worse, better = (
            (answer, draw.answer) if grows is (monotone.trend is Trend.INCREASING) else (draw.answer, answer)
        )
        if answer.rigorous and getattr(other, name) != getattr(draw.problem, name):
            assert better.lower <= worse.upper, (name, draw, other, answer)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.products or kind.irrelevant])
def test_the_truth_depends_on_the_declared_products_alone(kind: type[Problem], draws: list[Draw]) -> None:
    """Brackets intersect if problems differ in irrelevant fields and in factors of equal products alone."""
    rng, compared = random.Random(kind.name), 0
    ours = [
        each for each in draws if type(each.problem) is kind and each.answer.rigorous and each.seconds < 0.1
    ]
    chosen = rng.sample(ours, min(25, len(ours)))
    for draw, divisor in itertools.product(chosen, (1, 2, 3, 5, 7)):
        fields = draw.problem.as_fields()
        for axis in kind.products:
            whole_product = axis.value(fields)
            if whole_product % divisor == 0:
                fields |= dict(zip(axis.factors, (whole_product // divisor, divisor), strict=True))
        fields |= {name: rng.randint(1, 10**6) for name in kind.irrelevant}
        try:
            other = kind.from_fields(fields)
        except ValueError:  # the fields contradict one another, or a factor is too large
            continue
        answer = evaluate(Point(problem=other, method=draw.method))
        if answer.rigorous and other != draw.problem:
            compared += 1
            assert answer.lower <= draw.answer.upper, (draw, other, answer)
            assert draw.answer.lower <= answer.upper, (draw, other, answer)
    assert compared >= (5 if whole() else 1)


@pytest.mark.soak
@each_problem
@pytest.mark.parametrize("seed", range(2, 12))
def test_many_more_enclosures_intersect(kind: type[Problem], seed: int) -> None:
    drawn = sample(kind, seed, budget=60.0, affordable=10.0)
    test_evaluation_ends_in_an_answer_or_in_a_sentence_and_never_in_an_exception(drawn)
    test_an_answer_lies_between_0_and_the_largest_truth(drawn)
    test_the_enclosures_of_a_problem_intersect(drawn)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_two_thousand_drawn_problems_have_no_conflict(seed: int) -> None:
    """A hundred problems of every kind, by every method that takes at most two seconds."""
    rng = random.Random(f"conflicts {seed}")
    drawn = []
    for kind in itertools.islice(itertools.cycle(PROBLEMS), 100):
        problem = draw_problem(kind, rng, wild=rng.choice((0.0, 0.3, 0.7)))
        methods = [method() for method in METHODS if kind in method.problems]
        drawn += [run(problem, method) for method in methods if method.cost(problem).seconds <= 2.0]
    test_evaluation_ends_in_an_answer_or_in_a_sentence_and_never_in_an_exception(drawn)
    test_an_answer_lies_between_0_and_the_largest_truth(drawn)
    test_the_enclosures_of_a_problem_intersect(drawn)
