"""Fields that a question must state: the form leaves them open, and the page answers once they are chosen."""

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

from privcore import find_problem
from tests.flows.page.browser import text, visit, wait

pytestmark = pytest.mark.xdist_group("page")

CLAIM = "#problem=membership-private-advantage"


def test_the_relation_of_a_claim_is_chosen_by_the_reader(browser: webdriver.Chrome, page: str) -> None:
    stated = find_problem("membership-private-advantage").stated
    visit(browser, page + CLAIM)
    wait(browser, "#form select")
    assert f"Expected claimed_delta for membership-private-advantage: {stated['claimed_delta']}." in text(
        browser, "bracket"
    )
    browser.find_element(By.ID, "exact-claimed_delta").send_keys("0")
    assert f"Expected neighbours for membership-private-advantage: {stated['neighbours']}." in text(
        browser, "bracket"
    )
    assert not browser.find_elements(By.ID, "number")
    select = browser.find_element(By.ID, "exact-neighbours")
    assert [option.text.split(" (")[0] for option in select.find_elements(By.TAG_NAME, "option")] == [
        "substitution",
        "add-remove",
        "choose",
    ]
    select.find_element(By.CSS_SELECTOR, "option[value=substitution]").click()
    assert wait(browser, "#number").text


def test_a_link_that_states_them_needs_no_choice(browser: webdriver.Chrome, page: str) -> None:
    visit(browser, f"{page}{CLAIM}&neighbours=substitution&claimed_delta=0")
    assert wait(browser, "#number").text
