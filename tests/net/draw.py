"""Draws the questions of the net. A drawn question stays: its answers are kept in the file."""

import random
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any
from zlib import crc32

import pyarrow.parquet as pq

from privcore import DomainError, Point, Problem, answering, evaluate, find_problem
from privcore.parameter import Integer, Real
from storage.table.shipped import FOLDER
from tests.net.questions import Question, of_answer
from tests.privcore.draws import draw_problem

PATIENCE, SLOWEST, TOTAL = 3.0, 0.25, 1.6
"""Largest declared and measured seconds of an answer, and of all answers to a kind of problem."""
AGAIN = 3
"""Slow answers after which a method is no longer tried; the first one may compile."""
PAGES = 5
"""The page server starts processes, which takes seconds: of every fifth kind, it is asked one question."""
COUNT = 15
"""Questions about a kind of problem."""
LOOKUPS = {
    "poisson-epsilon": 150,
    "allocation-epsilon": 150,
    "shuffling-epsilon": 90,
    "unamplified-epsilon": 60,
    "label-advantage": 50,
    "audit-planned-epsilon": 40,
    "membership-advantage": 30,
    "audit-power": 20,
    "membership-private-advantage": 20,
}
"""Lookups in the shipped table, about every problem that it has."""
SAMPLERS = {
    "poisson": ("add-remove", "remove", "add", "zero-out", "replace-one"),
    "allocation": ("add-remove", "remove", "add"),
    "none": ("add-remove", "replace-one"),
    "balls-in-bins": ("add-remove", "zero-out", "replace-one"),
    "fixed-size": ("add-remove", "zero-out", "replace-one"),
    "with-replacement": ("zero-out", "replace-one"),
    "truncated-poisson": ("add-remove", "zero-out"),
    "shuffling": ("zero-out", "replace-one"),
}
"""Neighbouring relations that are drawn for each sampler."""
RUNS, COMPARISONS = 177, 60
"""Of the comparisons with sizes, which take up to a minute, one in five is asked."""


def questions() -> Iterator[Question]:
    """Yield the questions that do not depend on the methods: runs, comparisons and lookups."""
    yield from map(drawn_run, range(RUNS))
    yield from (drawn_comparison(n) for n in range(COMPARISONS) if n % 2 == 0 or n % 10 == 1)
    for name, count in LOOKUPS.items():
        yield from drawn_lookups(name, count)


def about(kind: type[Problem]) -> Iterator[Question]:
    """Yield questions about a kind of problem with the answers of the methods that are quick."""
    draw, spent, count = random.Random(f"net {kind.name}"), 0.0, 0
    methods, slow = [method() for method in answering(kind)], Counter[str]()
    for k in range(4 * COUNT):
        problem = draw_problem(kind, draw, wild=0.4 if k % 3 == 0 else 0.0)
        question = Question("methods", kind.name, problem.as_fields())
        for method in methods:
            declared = 0.0 if method.applies(problem) else method.cost(problem).seconds
            if declared > PATIENCE or slow[method.name] == AGAIN:
                continue
            start = time.process_time()
            answer = evaluate(Point(problem=problem, method=method))
            if (seconds := time.process_time() - start) < SLOWEST:
                question.said[method.name] = of_answer(method.name, answer)
                spent += seconds
            else:
                slow[method.name] += 1
        if any(said.status == "ok" for said in question.said.values()):
            if len(question.said) == len(methods):
                page = count == 0 and crc32(kind.name.encode()) % PAGES == 0
                question.door = "page" if page else ("command", "python")[count % 2]
            yield question
            count += 1
        if count == COUNT or spent > TOTAL:
            return


def drawn_run(number: int) -> Question:
    """Return a question about a training run; one in four has examples and a batch size for its steps."""
    draw = random.Random(number)
    sampling = list(SAMPLERS)[number % len(SAMPLERS)]
    steps = draw.choice([1, 7, 50, 234, 1000])
    given: dict[str, Any] = {
        "sigma": float(f"{draw.uniform(0.6, 4.0):.4g}"),
        "delta": float(f"{10 ** draw.uniform(-9.0, -4.0):.3g}"),
        "adjacency": draw.choice(SAMPLERS[sampling]),
        "epochs": draw.choice([1, 1, 3, 10]),
    }
    sized = sampling in ("poisson", "allocation", "fixed-size", "shuffling") and number // 8 % 2
    if sized:
        batch = draw.choice([10, 50, 200])
        given |= {"examples": batch * draw.randint(2, 60) + draw.choice([0, 1]), "batch_size": batch}
    elif sampling != "none":
        given["steps"] = steps
    if sampling in ("poisson", "fixed-size", "truncated-poisson") and not sized:
        given["sampling_probability"] = float(f"{10 ** draw.uniform(-3.0, -0.7):.3g}")
    if sampling in ("with-replacement", "truncated-poisson"):
        given["examples"] = draw.choice([100, 5000])
    if sampling == "with-replacement":
        given["batch_size"] = draw.choice([1, 5, 20])
    if sampling == "truncated-poisson":
        mean = given["sampling_probability"] * given["examples"]
        given["largest_batch"] = min(given["examples"], 1 + int(1.3 * mean))
    if sampling in ("balls-in-bins", "shuffling") and given["epochs"] > 1:
        given["redraw"] = draw.choice(["once", "each-epoch"])
    return Question("run", sampling, given)


def drawn_comparison(number: int) -> Question:
    """Return a question about all samplers of a run; every other one has examples and a batch size."""
    draw = random.Random(f"compare {number}")
    batch = draw.choice([10, 50, 200])
    sizes = {"examples": batch * draw.randint(2, 60) + 1, "batch_size": batch}
    given: dict[str, Any] = sizes if number % 2 else {"steps": draw.choice([1, 2, 10, 100])}
    given |= {"epochs": draw.choice([1, 3]), "delta": float(f"{10 ** draw.uniform(-7, -3):.3g}")}
    given |= {"adjacency": draw.choice(["add-remove", "zero-out", "replace-one", "remove"])}
    return Question(
        "compare", "every sampler", given | {"sigma": float(f"{10 ** draw.uniform(-0.2, 0.5):.3g}")}
    )


def drawn_lookups(name: str, count: int) -> Iterator[Question]:
    """Yield lookups in the shipped table: up to three fields lie between stored ones, or beyond them."""
    draw, kind = random.Random(f"lookup {name}"), find_problem(name)
    (file,) = FOLDER.glob("lookup-*.parquet")
    stored = pq.read_table(file, filters=[("problem", "=", name)], columns=list(kind.parameters)).to_pylist()
    numbers = [n for n, p in kind.parameters.items() if isinstance(p, Real | Integer)]
    while count:
        given = {n: v for n, v in draw.choice(stored).items() if v is not None}
        for field in draw.sample(numbers, min(draw.randint(0, 3), len(numbers))):
            value = given[field] * draw.uniform(0.7, 1.4)
            whole = isinstance(kind.parameters[field], Integer)
            given[field] = max(1, round(value)) if whole else float(f"{value:.4g}")
        try:
            yield Question("lookup", name, kind.from_fields(given).as_fields())
        except DomainError:  # the fields contradict one another
            continue
        count -= 1
