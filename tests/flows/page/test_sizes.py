"""Examples and batch size on the page: the same steps and rates as in Python, in the fields of the form."""

import json
import random

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.expected_conditions import url_contains
from selenium.webdriver.support.wait import WebDriverWait

from flows.printing import exactly
from privcore.training import TrainingRun
from tests.flows.page.browser import call, complaints, text, visit, wait

pytestmark = pytest.mark.xdist_group("page")

COMPUTED = """
    const { steps, rate } = await load("sizes.js");
    const each = ([n, b]) => [String(steps(n, b, false)), String(steps(n, b, true)), rate(n, b)];
    return JSON.stringify(given.map(each));
"""


def test_steps_and_rates_are_those_of_python(browser: webdriver.Chrome, page: str) -> None:
    visit(browser, f"{page}#problem=poisson-epsilon")
    wait(browser, "#number")
    drawn = random.Random(5)
    pairs = [(n := drawn.randint(1, 10 ** drawn.randint(1, 15)), drawn.randint(1, n)) for _ in range(2000)]
    pairs += [(60_000, 256), (1, 1), (10**15, 1), (10**15, 10**15), (2**49, 2**20), (3, 1)]
    found = json.loads(call(browser, COMPUTED, *pairs))
    for (n, b), (down, up, rate) in zip(pairs, found, strict=True):
        assert (int(down), int(up)) == (n // b, -(-n // b)), (n, b)
        assert rate == TrainingRun(examples=n, batch_size=b).rate, (n, b)


def type_in(browser: webdriver.Chrome, field: str, what: str) -> None:
    element = browser.find_element(By.ID, field)
    element.clear()
    element.send_keys(what)


def value_of(browser: webdriver.Chrome, field: str) -> str:
    return str(browser.find_element(By.ID, field).get_attribute("value"))


@pytest.mark.thorough
def test_examples_and_batch_size_fill_steps_and_rate(browser: webdriver.Chrome, page: str) -> None:
    for problem, steps in (("allocation-epsilon", "234"), ("poisson-epsilon", "235")):
        visit(browser, f"{page}#problem={problem}")
        wait(browser, "#size-examples")
        type_in(browser, "size-examples", "60000")
        type_in(browser, "size-batch_size", "256")
        assert value_of(browser, "exact-steps") == steps
        rounded = "down" if steps == "234" else "up"
        assert text(browser, "help-sizes") == (
            f"60000 / 256 gives {steps} steps an epoch, rounded {rounded}, which is safe for the upper end."
        )
        WebDriverWait(browser, 20).until(url_contains(f"&steps={steps}&"))
    rate = exactly(TrainingRun(examples=60_000, batch_size=256).rate)
    assert value_of(browser, "exact-sampling_probability") == rate
    type_in(browser, "size-batch_size", "60001")
    assert text(browser, "help-sizes").startswith("Expected two whole numbers")
    assert value_of(browser, "exact-steps") == "10", "that of 60000 and 6000, typed before"
    visit(browser, f"{page}#problem=shuffling-epsilon")
    wait(browser, "#size-examples")
    type_in(browser, "size-examples", "60000")
    type_in(browser, "size-batch_size", "256")
    assert "ask with dropped=0.0016 in a phase shuffling(...)" in text(browser, "help-sizes")
    assert complaints(browser) == []


def test_a_problem_without_steps_has_no_row_for_sizes(browser: webdriver.Chrome, page: str) -> None:
    visit(browser, f"{page}#problem=unamplified-epsilon")
    wait(browser, "#exact-sigma")
    assert browser.find_elements(By.ID, "size-examples") == []
