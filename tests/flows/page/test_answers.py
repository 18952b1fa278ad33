"""The page gives the answers of Store.lookup: the same ends to the bit, methods, sources and refusals."""

import json
import math
import random
import re
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from flows.page.data import constraints
from flows.page.tabs import TABS, Tab
from flows.printing import as_json, exactly, rounded_down, rounded_up
from flows.spec.sweep import parse
from privcore import PROBLEMS, DomainError, Problem, find_problem
from privcore.parameter import Integer, Real
from storage import Store, StoreError, open_store
from tests.flows.page.browser import call, wait
from tests.flows.page.stores import SPARSE, TIES, stored_values
from tests.privcore.draws import draw_value

pytestmark = [pytest.mark.sampled(2), pytest.mark.xdist_group("page")]

QUESTIONS = 300
CONSTRAINED = [kind for kind in PROBLEMS if constraints(kind)]

ASK = """
    const [{ open }, { question, DomainError }, { lookup, Contradiction }] =
        await Promise.all(["table/source.js", "fields.js", "table/lookup.js"].map(load));
    const source = await open();
    const answers = [];
    for (const [name, texts] of given) {
        const table = await source.table(name);
        try {
            answers.push(lookup(table, question(table.problem, texts)));
        } catch (error) {
            if (error instanceof DomainError) answers.push("refused");
            else if (error instanceof Contradiction) answers.push("contradiction");
            else throw error;
        }
    }
    return JSON.stringify(answers, (_, value) => (value === Infinity ? "inf" : value));
"""

Question = tuple[str, dict[str, str]]


def ask_page(browser: webdriver.Chrome, questions: list[Question]) -> list[Any]:
    return json.loads(call(browser, ASK, *questions))  # type: ignore[no-any-return]


def ask_python(store: Store, question: Question) -> Any:
    """Return the answer of the Python API, in the format of the page."""
    name, texts = question
    kind = find_problem(name)
    try:
        found = store.lookup(asked(kind, texts))
    except DomainError:
        return "refused"
    except StoreError:
        return "contradiction"
    if found is None:
        return None
    about = {"assumed", "neighbours"}  # facts about the question, which the page has by itself
    return {name: _plain(value) for name, value in vars(found).items() if name not in about}


def asked(kind: type[Problem], texts: Mapping[str, str]) -> Problem:
    """Return the problem with these texts of its fields."""
    numbers = {n: isinstance(kind.parameters[n], Real | Integer) for n in texts}
    return kind.from_fields({n: float(text) if numbers[n] else text for n, text in texts.items()})


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, tuple):
        return list(value)
    return "inf" if value == math.inf else value


def same(page: Any, python: Any) -> bool:
    """Return whether two answers agree in all values of Python's, floats to the bit; errors may differ."""
    if python == "refused":
        return page in (None, "refused")
    if isinstance(python, dict) and isinstance(page, dict):
        return all(page[name] == value for name, value in python.items())
    return bool(page == python)


def drawn(kind: type[Problem], values: Mapping[str, list[Any]], rng: random.Random) -> dict[str, str]:
    """The texts of a question: on stored values, between or beyond them, or outside of every domain."""
    texts = {}
    for name, stored in values.items():
        x = rng.choice(stored)
        parameter = kind.parameters[name]
        finite = isinstance(parameter, Real | Integer) and math.isfinite(x)
        how = rng.random()
        if finite and name in kind.monotone and how < 0.5:
            x *= math.exp(rng.uniform(-1.0, 1.0))
            x = round(x) if isinstance(parameter, Integer) else x
        elif finite and how > 0.97:
            x = rng.choice([0.0, -1.0, x + 1, 1e300, x * 1e6])
        texts[name] = exactly(x)
    return texts


@pytest.mark.sampled(1)
@pytest.mark.parametrize("tab", TABS, ids=lambda tab: tab.name)
def test_every_tab_answers_like_python(browser: webdriver.Chrome, page: str, store: Path, tab: Tab) -> None:
    rng = random.Random(tab.name)
    with open_store(store) as opened:
        present = opened.sql("select distinct problem from best")["problem"].to_pylist()
        kinds = [kind for kind in tab.problems if kind.name in present]
        values = {kind: stored_values(store, kind) for kind in kinds}
        questions = []
        for _ in range(QUESTIONS):
            kind = rng.choice(kinds)
            questions.append((kind.name, drawn(kind, values[kind], rng)))
        browser.get(page)
        answers = ask_page(browser, questions)
        expected = [ask_python(opened, question) for question in questions]
    for question, got, wanted in zip(questions, answers, expected, strict=True):
        assert same(got, wanted), question
    told = [answer for answer in expected if isinstance(answer, dict)]
    assert len(told) >= QUESTIONS // 4
    assert sum(not answer["exact"] for answer in told) >= 20
    assert expected.count(None) + expected.count("refused") >= 10
    if "unamplified-epsilon" in [kind.name for kind in kinds]:
        assert sum(answer["upper_also"] is not None for answer in told) >= 5, "chords between two deltas"


CHECK = """
    const { check, DomainError } = await load("fields.js");
    const decoded = (values) => Object.fromEntries(
        Object.entries(values).map(([name, value]) => [name, value === "inf" ? Infinity : value]));
    const problem = { constraints: given[0] };
    return given.slice(1).map((values) => {
        try {
            check(problem, decoded(values));
            return null;
        } catch (error) {
            if (error instanceof DomainError) return error.message;
            throw error;
        }
    });
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", CONSTRAINED, ids=lambda kind: kind.name)
def test_fields_that_contradict_one_another_are_refused_in_the_words_of_python(
    browser: webdriver.Chrome, page: str, kind: type[Problem]
) -> None:
    rng = random.Random(kind.name)
    questions = [
        {name: draw_value(each, rng, wild=rng.random() < 0.2) for name, each in kind.parameters.items()}
        for _ in range(QUESTIONS)
    ]
    content = [each.as_content() for each in constraints(kind)]
    browser.get(page)
    given = json.loads(as_json([content, *questions]))
    expected = [refusal(kind, question) for question in questions]
    assert {None} < set(expected)
    assert list(map(rounded, call(browser, CHECK, *given))) == list(map(rounded, expected))


def refusal(kind: type[Problem], fields: Mapping[str, Any]) -> str | None:
    """Return the sentence with which Python refuses fields that contradict one another."""
    try:
        for each in constraints(kind):
            each.check(SimpleNamespace(**fields))
    except DomainError as error:
        return str(error)
    return None


def rounded(sentence: str | None) -> str | None:
    """A sentence with its numbers to six digits, which Python and JavaScript write in different ways."""
    return sentence and re.sub(r"-?\d+(\.\d+)?(e[+-]?\d+)?", lambda found: f"{float(found[0]):g}", sentence)


@pytest.mark.parametrize(("name", "axes"), [("unamplified-epsilon", TIES), ("unamplified-delta", SPARSE)])
def test_equal_ends_come_from_the_same_row(
    browser: webdriver.Chrome, origin: str, ties: Path, name: str, axes: Mapping[str, Any]
) -> None:
    rng = random.Random(5)
    values = {field: list(each) for field, each in axes.items()}
    questions = [(name, drawn(find_problem(name), values, rng)) for _ in range(QUESTIONS)]
    browser.get(f"{origin}/ties/")
    answers = ask_page(browser, questions)
    with open_store(ties) as opened:
        expected = [ask_python(opened, question) for question in questions]
        tabulated = opened.sql(f"select count(*) as n from axes.{name.replace('-', '_')}")["n"].to_pylist()[0]
    assert bool(tabulated) == (axes is TIES)
    assert [
        q for q, got, wanted in zip(questions, answers, expected, strict=True) if not same(got, wanted)
    ] == []
    assert sum(isinstance(answer, dict) for answer in expected) >= QUESTIONS // 2


def test_a_contradiction_is_told_and_no_number_is_shown(
    browser: webdriver.Chrome, origin: str, ties: Path
) -> None:
    question = (
        "shuffling-epsilon",
        {"sigma": "1.5", "steps": "10", "delta": "1e-5", "adjacency": "zero-out"},
    )
    with open_store(ties) as opened:
        assert ask_python(opened, question) == "contradiction"
    browser.get(f"{origin}/ties/#problem=shuffling-epsilon&sigma=1.5&steps=10&delta=1e-5&adjacency=zero-out")
    assert ask_page(browser, [question]) == ["contradiction"]
    assert "contradicts itself" in browser.find_element(By.ID, "bracket").text
    assert not browser.find_elements(By.ID, "number")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name", ["allocation-epsilon", "label-advantage", "audit-tail", "membership-private-advantage"]
)
def test_the_inputs_of_every_tab_give_the_same_answers(
    browser: webdriver.Chrome, page: str, store: Path, name: str
) -> None:
    browser.get("about:blank")
    kind, rng, told = find_problem(name), random.Random(name), 0
    stated = "".join(f"&{field}={exactly(kind.defaults()[field])}" for field in kind.stated)
    browser.get(f"{page}#problem={name}{stated}")
    wait(browser, "#number")
    values = stored_values(store, kind)
    with open_store(store) as opened:
        for _ in range(24):
            drawing = drawn(kind, values, rng)
            for field in rng.sample(list(drawing), 1 if told else 2):
                enter(browser, field, drawing[field])
            texts = {n: browser.find_element(By.ID, f"exact-{n}").get_property("value") for n in values}
            expected = ask_python(opened, (name, {n: str(text) for n, text in texts.items()}))
            shown = browser.find_element(By.ID, "bracket").text
            if not isinstance(expected, dict):
                assert "Expected" in shown or (expected is None and "no bound" in shown), texts
                continue
            lower, upper = float(expected["lower"]), float(expected["upper"])
            told += 1
            if lower > 0:
                assert rounded_down(lower) in shown, texts
            if upper < math.inf:
                assert rounded_up(upper) in shown, texts
    assert told >= 3


def test_every_problem_has_a_sweep_file_that_extends_the_store_by_a_question(
    browser: webdriver.Chrome, page: str
) -> None:
    body = """
        const [{ open }, { extension }, { question }] =
            await Promise.all(["table/source.js", "table/hull.js", "fields.js"].map(load));
        const { catalogue } = await open();
        return Object.values(catalogue.problems).filter(({ rows }) => rows > 0).map((problem) =>
            [problem.name, problem.start, extension(problem, question(problem, problem.start))]);
    """
    browser.get(page)
    extensions = call(browser, body)
    assert len(extensions) == 11
    for name, start, file in extensions:
        (grid,) = parse(file.encode(), "extend.toml").grids
        problems = list(grid.problems())
        assert problems == [find_problem(name).from_fields(start)]


def enter(browser: webdriver.Chrome, field: str, text: str) -> None:
    """Type a value, or choose it from a list."""
    element = browser.find_element(By.ID, f"exact-{field}")
    if element.tag_name == "select":
        element.find_element(By.CSS_SELECTOR, f"option[value='{text}']").click()
    else:
        element.send_keys(Keys.CONTROL, "a")
        element.send_keys(text)


def test_numbers_are_written_as_on_the_command_line(browser: webdriver.Chrome, page: str) -> None:
    rng = random.Random(3)
    numbers = [rng.choice((1, 3, 7)) * 10.0**k for k in range(-30, 30)] + [
        0.0,
        0.1,
        0.5,
        999999.5,
        1e6,
        1e7,
        9.9999999,
    ]
    numbers += [math.exp(rng.uniform(-700, 700)) for _ in range(1000)] + [
        5e-324,
        1.7976931348623157e308,
        2.0**70,
    ]
    numbers += [math.nextafter(x, up) for x in numbers[:66] if x for up in (0.0, math.inf)]
    body = """
        const { roundedDown, roundedUp, exactly } = await load("numbers.js");
        return given.map((x) => [roundedDown(x), roundedUp(x), exactly(x)]);
    """
    browser.get(page)
    written = call(browser, body, *numbers)
    assert written == [[rounded_down(x), rounded_up(x), exactly(x)] for x in numbers]
