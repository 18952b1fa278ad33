"""The comparison of schemes: stored brackets, and computed ones where these are missing or wide."""

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from privcore import find_problem
from tests.flows.page.browser import complaints, requested, text, visit, wait
from tests.flows.page.drawn import bracket

pytestmark = [pytest.mark.sampled(1), pytest.mark.xdist_group("page")]

WIDE = "#problem=allocation-epsilon&sigma=1.5&steps=500&delta=1e-8&participations=1&epochs=1"
STOP_AT_ONCE = """
    const watched = new MutationObserver(() => {
      const button = document.getElementById("compare-stop");
      if (button) { watched.disconnect(); button.click(); }
    });
    watched.observe(document.getElementById("compare-progress"), { childList: true });
"""


def compared(browser: webdriver.Chrome) -> list[list[str]]:
    """Return the rows of the comparison once nothing is being computed."""
    wait(browser, "#compare table")

    def settled(page: webdriver.Chrome) -> bool:
        return "computed in this browser" in text(page, "compare") and not text(page, "compare-progress")

    WebDriverWait(browser, 20, poll_frequency=0.05).until(settled)
    rows = browser.find_elements(By.CSS_SELECTOR, "#compare tbody tr")
    return [[cell.text for cell in row.find_elements(By.CSS_SELECTOR, "th, td")] for row in rows]


def ends(words: str) -> tuple[float, float]:
    lower, upper = words.removeprefix("ε ∈ [").split("]")[0].split(", ")
    return float(lower), float(upper)


@pytest.mark.thorough
def test_missing_and_wide_brackets_are_computed(browser: webdriver.Chrome, page: str) -> None:
    visit(browser, page + WIDE)
    requested(browser)
    allocation, poisson, shuffling, public = compared(browser)
    assert ends(allocation[1]) == ends(wait(browser, "#tight").text), "that of the headline"
    fields = {"sigma": 1.5, "delta": 1e-8, "steps": 500}
    for row, problem in (
        (allocation, find_problem("allocation-epsilon").from_fields(fields)),
        (poisson, find_problem("poisson-epsilon").from_fields({**fields, "sampling_probability": 1 / 500})),
    ):
        lower, upper = ends(row[1])
        ours = bracket(problem)
        assert lower <= ours[1]
        assert ours[0] <= upper <= 1.011 * lower
        assert "% wide" in row[1]
        assert row[2].startswith("computed in this browser")
    assert "computed" not in shuffling[2], "the engine has no shuffling"
    assert "computed" not in public[2], "the stored bracket is narrow"
    assert "contradict" not in text(browser, "compare")
    assert complaints(browser) == []
    assert all(address.startswith(page) for address in requested(browser))


def test_a_stopped_comparison_can_go_on(browser: webdriver.Chrome, page: str) -> None:
    visit(browser, f"{page}#problem=allocation-epsilon&sigma=1.7&steps=500&delta=1e-8")
    wait(browser, "#compare table")
    browser.execute_script(STOP_AT_ONCE)
    button = wait(browser, "#compare-start")
    assert "computed" not in text(browser, "compare").split("Poisson")[1]
    button.click()
    assert all("computed" in row[2] for row in compared(browser)[:2])
    assert complaints(browser) == []


@pytest.mark.thorough
def test_several_participations_keep_their_stored_bracket(browser: webdriver.Chrome, page: str) -> None:
    visit(browser, page + WIDE.replace("participations=1", "participations=2"))
    allocation, poisson, *_ = compared(browser)
    assert "computed" not in allocation[2]
    assert poisson[2].startswith("computed in this browser")
