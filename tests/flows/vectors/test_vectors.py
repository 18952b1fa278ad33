"""The test vectors: valid questions, brackets that intersect those of today, and the example."""

import json
import random
import subprocess
import sys
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import mpmath
import pytest

from flows.answers.ask import ask
from flows.vectors.make import FILE, RANGES
from flows.vectors.questions import COUNTS, questions
from privcore import Problem, find, find_problem
from privcore.registry import used_versions, versions
from tests.suites import some

VECTORS = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
FIRST_ORDER = 1e-4
"""Relative error of adding the deltas of steps that rarely include the example: a hundred at rate 1e-5."""

EXAMPLE = FILE.with_name("against_dp_accounting.py")


def asked(vector: dict[str, Any]) -> Problem:
    """The question of a vector."""
    return find_problem(vector["problem"]).asked(vector["question"])


def test_there_are_a_thousand_different_valid_questions() -> None:
    assert len(VECTORS) == 1000
    assert Counter(vector["problem"] for vector in VECTORS) == COUNTS
    assert len({vector["id"] for vector in VECTORS}) == 1000
    problems = [asked(vector) for vector in VECTORS]
    assert len(set(problems)) == 1000
    assert [problem.as_fields() for problem in problems] == [vector["question"] for vector in VECTORS]


def test_every_scheme_with_directions_has_both() -> None:
    found = {(vector["problem"], vector["question"]["adjacency"]) for vector in VECTORS}
    for problem in COUNTS:
        assert {(problem, "add"), (problem, "remove")} <= found, problem


def test_brackets_are_ordered_and_in_their_range() -> None:
    for vector in VECTORS:
        smallest, largest = RANGES[find_problem(vector["problem"]).asks]
        assert smallest <= vector["lower"] <= vector["upper"] <= largest, vector["id"]


def test_no_end_is_of_a_version_of_its_method_that_is_not_used() -> None:
    used = {vector[end] for vector in VECTORS for end in ("lower_by", "upper_by")}
    least, newest = used_versions(), versions()
    current = {f"{name} {number}" for name in newest for number in range(least[name], newest[name] + 1)}
    assert used <= current, "`python -m flows.vectors.make` computes the vectors again"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("problem", [name for name in COUNTS if name.endswith("epsilon")])
def test_the_questions_are_drawn_again_in_the_same_order(problem: str) -> None:
    drawn = questions(problem)
    for vector in VECTORS:
        if vector["problem"] == problem:
            assert asked(vector) in islice(drawn, 500), vector["id"]


def intersects(vector: dict[str, Any]) -> bool:
    """Whether the bracket of a vector intersects that of today, computed with the default tolerance."""
    problem = asked(vector)
    names = {vector[end].partition(" ")[0] for end in ("lower_by", "upper_by")}
    found = ask(problem, [find(name)() for name in sorted(names)])
    assert found.ok
    assert found.confidence == 1
    return bool(found.lower <= vector["upper"] and vector["lower"] <= found.upper)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("number", range(20))
def test_a_vector_intersects_the_bracket_of_today(number: int) -> None:
    vector = random.Random(number).choice(VECTORS)
    assert intersects(vector), vector["id"]


@pytest.mark.soak
@pytest.mark.parametrize("problem", COUNTS)
def test_every_vector_intersects_the_bracket_of_today(problem: str) -> None:
    assert [v["id"] for v in VECTORS if v["problem"] == problem and not intersects(v)] == []


def test_a_wrong_vector_does_not_intersect() -> None:
    vector = next(v for v in VECTORS if v["problem"] == "unamplified-epsilon")
    assert intersects(vector)
    assert not intersects(vector | {"lower": vector["upper"] * 1.1, "upper": vector["upper"] * 1.2})


def held(file: Path | None = None) -> str:
    """The output of the example, in a process of its own."""
    words = [sys.executable, "-m", "flows.vectors.against_dp_accounting", *([str(file)] if file else [])]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


@pytest.mark.thorough
def test_the_example_finds_the_one_wrong_vector(tmp_path: Path) -> None:
    unamplified = [v for v in VECTORS if v["problem"] == "unamplified-epsilon" and v["upper"] < 5]
    chosen = some([v for v in unamplified if v["question"]["adjacency"] == "add-remove"], 2)
    wrong = chosen[0] | {"id": "wrong", "lower": 3 * chosen[0]["lower"], "upper": 3 * chosen[0]["upper"]}
    others = [v for v in VECTORS if v["problem"].startswith(("allocation", "shuffling"))][:3]
    (tmp_path / "few.jsonl").write_text("".join(f"{json.dumps(v)}\n" for v in [*chosen, *others, wrong]))
    printed = held(tmp_path / "few.jsonl").splitlines()
    assert printed[0] == f"{len(chosen) + 1} checked, 1 refuted: wrong"
    assert printed[1].endswith("at wrong")


def test_the_vector_that_refutes_dp_accounting_agrees_with_a_sum_over_steps() -> None:
    (vector,) = (v for v in VECTORS if v["id"] == "poisson-delta-22")
    given = {name: mpmath.mpf(value) for name, value in vector["question"].items() if name != "adjacency"}
    sigma, rate, epsilon = given["sigma"], given["sampling_probability"], given["epsilon"]
    assert given["epochs"] == 1
    with mpmath.workdps(40):
        threshold = sigma**2 * mpmath.log(mpmath.expm1(epsilon) / rate + 1) + 0.5
        present, absent = (mpmath.ncdf(-(threshold - mean) / sigma) for mean in (1, 0))
        delta = given["steps"] * (rate * present - (mpmath.expm1(epsilon) + rate) * absent)
    assert vector["lower"] < delta * (1 - FIRST_ORDER) < delta * (1 + FIRST_ORDER) < vector["upper"]


def page(repository: Path, language: str) -> str:
    """The block in a language on the page about the vectors."""
    text = (repository / "docs/vectors.md").read_text(encoding="utf-8")
    return text.partition(f"```{language}\n")[2].partition("```")[0]


def test_the_page_shows_the_example_and_a_vector(repository: Path) -> None:
    assert page(repository, "py") == EXAMPLE.read_text(encoding="utf-8")
    assert json.loads(page(repository, "json")) in VECTORS
    assert EXAMPLE.read_text().count("\n") <= 50


@pytest.mark.soak
def test_the_page_shows_the_output_of_the_example(repository: Path) -> None:
    assert page(repository, "text") == held()
