"""Problems without stored rows, which the engine of the page answers at once."""

import re
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from flows.page.tabs import ENGINE
from privsweep import ask
from tests.flows.page.browser import call, complaints, copied, text, visit, wait

pytestmark = [pytest.mark.sampled(2), pytest.mark.xdist_group("page")]

BINS = "balls-in-bins-epsilon"
KEPT: dict[str, Any] = {
    "sigma": 1.1,
    "delta": 1e-5,
    "steps": 234,
    "epochs": 10,
    "redraw": "once",
    "adjacency": "add-remove",
}


def test_the_page_has_every_problem_of_its_engine(browser: webdriver.Chrome, page: str) -> None:
    visit(browser, f"{page}#problem=poisson-epsilon")
    wait(browser, "#number")
    assert tuple(call(browser, "return (await load('engine/questions.js')).PROBLEMS;")) == ENGINE
    catalogue = call(
        browser, "return (await load('table/source.js')).open().then(({ catalogue }) => catalogue);"
    )
    assert set(ENGINE) <= set(catalogue["problems"])
    assert catalogue["problems"][BINS]["rows"] == 0


@pytest.mark.thorough
def test_the_answer_without_rows_is_computed_and_contains_that_of_python(
    browser: webdriver.Chrome, page: str
) -> None:
    complaints(browser)
    given = "&".join(f"{name}={value}" for name, value in KEPT.items())
    visit(browser, f"{page}#problem={BINS}&{given}")
    lower, upper = map(float, re.findall(r"[\d.]+", wait(browser, "#tight").text))
    found = ask(BINS, **KEPT)
    assert max(lower, found.lower) <= min(upper, found.upper)
    assert upper / lower < 1.011
    assert not browser.find_element(By.ID, "bracket").is_displayed()
    assert text(browser, "box-title") == "Fields"
    assert copied(browser, "Command line").startswith(f"privsweep ask {BINS} ")
    assert copied(browser, "Python").startswith("import privsweep as ps")
    assert "(privsweep" in copied(browser, "LaTeX")
    assert "likelihood ratio" in text(browser, "engine")
    browser.execute_script("document.getElementById('curve-start').click()")
    WebDriverWait(browser, 60).until(lambda b: "Thick bars" in text(b, "curve"))
    assert len(browser.find_elements(By.CSS_SELECTOR, "#chart .computed")) > 10
    assert complaints(browser) == []


@pytest.mark.thorough
def test_phases_of_a_run_are_typed(browser: webdriver.Chrome, origin: str, ties: object) -> None:
    visit(browser, f"{origin}/ties/#problem=run-epsilon")
    shown = wait(browser, "#tight").text
    field = browser.find_element(By.ID, "exact-phases")
    field.send_keys("; none(sigma=3,steps=2)")
    wait(browser, "#tight")
    assert "none(sigma=3,steps=2)" in copied(browser, "Command line")
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys("labels(sigma=2,steps=50)")
    assert "balls-in-bins, poisson, fixed-size, shuffling and none" in wait(browser, "#not-computed").text
    assert shown.startswith("ε ∈ [")


def test_a_problem_without_trends_says_where_it_has_answers(browser: webdriver.Chrome, page: str) -> None:
    visit(
        browser,
        f"{page}#problem=audit-epsilon&canaries=100&guesses=50&correct=45&delta=1e-5&design=independent",
    )
    wait(browser, "#bracket .number")
    assert "There are answers only at the stored values of canaries" in text(browser, "meaning")
    assert "; for others, the command line" in text(browser, "meaning")
    assert copied(browser, "Command line").startswith('privsweep sql "from audit_epsilon ')
    visit(browser, f"{page}#problem=poisson-epsilon")
    wait(browser, "#number")
    assert "only at the stored" not in text(browser, "meaning")
