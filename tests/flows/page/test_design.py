"""The page for people: the answer in view, sliders by ratios, captions, tabs, and the privacy statement."""

import math
import random
import re
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from flows.answers.sourced import from_store
from flows.answers.training.statement import statement
from privcore import DomainError, find_problem
from storage import open_store
from tests.flows.page.browser import call, click, complaints, copied, text, visit, wait
from tests.flows.page.stores import stored_values
from tests.flows.page.test_answers import asked, drawn

pytestmark = [pytest.mark.sampled(1), pytest.mark.xdist_group("page")]

PLACES = """
    const { stops } = await load("table/form.js");
    const [kind, trend, ...values] = given;
    return stops({ kind, trend }, values).map(({ value, place }) => [value, place]);
"""
BOX = """
    const { top, bottom } = document.querySelector(arguments[0]).getBoundingClientRect();
    return [top, bottom];
"""
COVERED = """
    const { left, top, width, height } = document.activeElement.getBoundingClientRect();
    return document.elementFromPoint(left + width / 2, top + height / 2) !== document.activeElement;
"""


def test_on_a_phone_the_answer_is_at_the_top_and_stays_there_while_typing(
    browser: webdriver.Chrome, page: str, phone: dict[str, Any]
) -> None:
    visit(browser, f"{page}#problem=allocation-epsilon&sigma=2&steps=100&delta=1e-6")
    shown = wait(browser, "#number").text
    assert browser.execute_script(BOX, "#bracket")[1] < 0.3 * phone["height"]
    for name, value in (("sigma", "4"), ("epochs", "2")):
        field = browser.find_element(By.ID, f"exact-{name}")
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(value)
        top, bottom = browser.execute_script(BOX, "#number")
        assert 0 <= top < bottom < 0.3 * phone["height"]
        assert not browser.execute_script(COVERED)
        assert text(browser, "number") != shown
        shown = text(browser, "number")


def test_a_slider_moves_by_ratios_over_the_stored_range(browser: webdriver.Chrome, page: str) -> None:
    visit(browser, f"{page}#problem=unamplified-epsilon&sigma=1&delta=1e-6&steps=1&epochs=1")
    wait(browser, "#number")
    for name, place in (("sigma", math.log(1 / 0.5) / math.log(5 / 0.5)), ("delta", 0.8)):
        at = browser.find_element(By.ID, f"slide-{name}").get_property("value")
        assert int(str(at)) == round(1000 * place)
    for low, high in ((0.4, 20.0), (1e-10, 1e-5), (1, 10**6)):
        kind = "integer" if isinstance(low, int) else "real"
        found = call(browser, PLACES, kind, -1, low, math.sqrt(low * high), high)
        assert all(place == pytest.approx(math.log(x / low) / math.log(high / low)) for x, place in found)
        assert len(found) > 100
        assert {low, high} <= {x for x, _ in found}
        assert [x for x, _ in found] == sorted({x for x, _ in found})


def test_a_slider_has_a_place_for_zero_and_only_stored_values_without_a_trend(
    browser: webdriver.Chrome, page: str
) -> None:
    visit(browser, f"{page}#problem=poisson-epsilon")
    wait(browser, "#number")
    first, second, *_, last = call(browser, PLACES, "real", 1, 0, 1e-8, 1e-5)
    assert (first, last) == ([0, 0], [1e-5, 1])
    assert second[0] == 1e-8
    assert 0 < second[1] < 0.1
    assert call(browser, PLACES, "real", 0, 1, 2, 4) == [[1, 0], [2, 0.5], [4, 1]]
    linear = call(browser, PLACES, "real", 1, 0.8, 0.9, 1)
    assert all(place == pytest.approx((x - 0.8) / 0.2) for x, place in linear)


def test_a_hovered_tab_does_not_look_selected(browser: webdriver.Chrome, page: str) -> None:
    visit(browser, f"{page}#problem=allocation-epsilon")
    wait(browser, "#number")

    def line(tab: str) -> Any:
        element = browser.find_element(By.ID, f"tab-{tab}")
        return browser.execute_script("return getComputedStyle(arguments[0]).borderBottomColor", element)

    before = line("labels")
    ActionChains(browser).move_to_element(browser.find_element(By.ID, "tab-labels")).perform()
    assert browser.execute_script("return document.querySelector('#tab-labels').matches(':hover')")
    assert line("labels") == before != line("table")
    ActionChains(browser).move_to_element(browser.find_element(By.ID, "answer")).perform()


@pytest.mark.parametrize(
    ("problem", "named"),
    [
        ("label-advantage", ("mechanism=", "prior=")),
        ("allocation-epsilon", ("adjacency=add-remove", "participations=1")),
    ],
)
def test_the_caption_of_a_chart_names_every_fixed_field(
    browser: webdriver.Chrome, page: str, problem: str, named: tuple[str, ...]
) -> None:
    visit(browser, f"{page}#problem={problem}")
    wait(browser, "#chart svg")
    caption = browser.find_element(By.CSS_SELECTOR, "#chart figcaption").text
    assert all(each in caption for each in named)


STATED = """
    const [{ open }, { question }, { lookup }, { statement }] =
        await Promise.all(["table/source.js", "fields.js", "table/lookup.js", "table/copies.js"].map(load));
    const source = await open();
    const found = [];
    for (const [name, texts] of given) {
        const table = await source.table(name);
        const state = { catalogue: source.catalogue, table, question: question(table.problem, texts) };
        found.push(statement({ ...state, found: lookup(table, state.question) }));
    }
    return found;
"""


def test_the_statement_to_copy_is_that_of_the_command_line(
    browser: webdriver.Chrome, page: str, store: Path
) -> None:
    rng, questions, expected = random.Random(7), [], []
    with open_store(store) as opened:
        for name in ("allocation-epsilon", "poisson-epsilon", "unamplified-epsilon", "shuffling-epsilon"):
            kind = find_problem(name)
            values = stored_values(store, kind)
            for _ in range(24):
                texts = drawn(kind, values, rng)
                try:
                    problem = asked(kind, texts)
                    found = opened.lookup(problem)
                    made = found and statement(from_store(problem, found), limit_seconds=0.0)
                except DomainError as error:
                    if "upper end" not in str(error):
                        continue
                    made = None
                questions.append((name, texts))
                expected.append(made and made.text("text"))
    visit(browser, f"{page}#problem=poisson-epsilon")
    assert call(browser, STATED, *questions) == expected
    assert sum(each is not None for each in expected) >= 15
    assert expected.count(None) >= 5


def test_a_computed_bracket_is_the_one_that_is_copied(browser: webdriver.Chrome, page: str) -> None:
    visit(browser, f"{page}#problem=allocation-epsilon&sigma=2&steps=100&delta=1e-6")
    lower, upper = re.findall(r"[\d.]+", wait(browser, "#tight").text)
    shown = copied(browser, "Privacy statement")
    assert f"Guarantee: ({upper}, 1e-6)-differential privacy" in shown
    assert f"for the worst data sets it is not less than {lower}." in shown
    assert "Proof: both ends: the engine of the page" in shown
    assert rf"$\varepsilon \in [{lower}, {upper}]$" in copied(browser, "LaTeX")
    assert "table" not in text(browser, "copy-text")
    browser.find_element(By.ID, "exact-sigma").send_keys("0")
    assert f"at most {upper} " not in copied(browser, "Privacy statement")


def test_a_statement_is_offered_for_training_runs_with_a_proved_upper_end(
    browser: webdriver.Chrome, page: str
) -> None:
    complaints(browser)
    visit(browser, f"{page}#problem=unamplified-epsilon&sigma=1&delta=1e-6")
    wait(browser, "#number")
    shown = copied(browser, "Privacy statement")
    assert shown.startswith("Guarantee: (")
    assert "two data sets are neighbours if" in shown
    assert "secret seed" in shown
    # The engine does not compute k of t; the lower end of a stored row with fewer participations holds.
    visit(browser, f"{page}#problem=allocation-epsilon&sigma=2&steps=10&participations=2&epochs=1&delta=1e-6")
    wait(browser, "#number")
    assert "needs a proved upper end" in copied(browser, "Privacy statement")
    assert not browser.find_element(By.ID, "copy-button").is_enabled()
    click(browser, "#tab-labels")
    wait(browser, "#content")
    assert not browser.find_element(By.CSS_SELECTOR, "input[value='Privacy statement']").is_displayed()
    assert "find_problem" in text(browser, "copy-text")
    assert complaints(browser) == []
