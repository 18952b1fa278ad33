"""The page assumes no sampler: the loader comes first, and the page compares samplers if it is unknown."""

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

from flows.answers.parse import LOADERS, SAMPLING
from flows.page.tabs import COMPARED
from tests.flows.page.browser import complaints, text, visit, wait

pytestmark = [pytest.mark.sampled(3), pytest.mark.xdist_group("page")]

HIDDEN = ("answer", "origin", "noise-section", "copy-section", "problem")


def press(browser: webdriver.Chrome, words: str) -> None:
    wait(browser, "#loaders button")
    buttons = browser.find_elements(By.CSS_SELECTOR, "#loaders button")
    next(each for each in buttons if each.text == words).click()


@pytest.mark.parametrize("where", ["", "#tab=nowhere", "#problem=nothing"])
def test_no_answer_is_shown_before_a_loader_is_chosen(
    browser: webdriver.Chrome, page: str, where: str
) -> None:
    visit(browser, page + where)
    wait(browser, "#loaders button")
    assert not browser.find_element(By.ID, "content").is_displayed()
    assert browser.find_elements(By.CSS_SELECTOR, "[role=tab][aria-selected=true]") == []
    shown = [each.text for each in browser.find_elements(By.CSS_SELECTOR, "#loaders button")]
    assert set(shown) <= {*LOADERS.values(), "I do not know"}
    assert LOADERS["poisson"] in shown
    assert ("no problem nothing" in text(browser, "notice")) == ("nothing" in where)


@pytest.mark.parametrize("sampling", ["poisson", "allocation", "none"])
def test_a_loader_leads_to_the_problem_of_its_sampler(
    browser: webdriver.Chrome, page: str, sampling: str
) -> None:
    visit(browser, page)
    press(browser, LOADERS[sampling])
    wait(browser, "#number, #tight")
    assert not browser.find_element(By.ID, "loaders").is_displayed()
    assert browser.find_element(By.ID, "problem").get_property("value") == SAMPLING[sampling]


def test_who_does_not_know_the_loader_sees_the_samplers_side_by_side(
    browser: webdriver.Chrome, page: str
) -> None:
    visit(browser, page)
    press(browser, "I do not know")
    wait(browser, "#compare table")
    rows = browser.find_elements(By.CSS_SELECTOR, "#compare tbody th")
    assert [row.text for row in rows] == [scheme["title"] for scheme in COMPARED["schemes"]]
    assert "report the largest upper end" in text(browser, "meaning")
    for name in HIDDEN:
        assert not browser.find_element(By.ID, name).is_displayed(), name
    wait(browser, "#form input")
    sigma = browser.find_element(By.ID, "exact-sigma")
    sigma.clear()
    sigma.send_keys("-1")
    assert "Expected sigma" in wait(browser, "#compare .error").text
    visit(browser, page + "#sampling=unknown&sigma=2&steps=50")
    wait(browser, "#compare table")
    assert browser.find_element(By.ID, "exact-sigma").get_property("value") == "2"
    assert not browser.find_element(By.ID, "answer").is_displayed()
    browser.find_element(By.ID, "tab-allocation").click()
    wait(browser, "#number, #tight")
    assert browser.find_element(By.ID, "answer").is_displayed()
    assert complaints(browser) == []
