"""The page names the assumption of an answer that takes a column of a file as a distribution."""

from pathlib import Path
from urllib.parse import quote

import pytest
from selenium import webdriver

from flows.page.build import build
from privcore import Problem
from storage import open_store
from tests.flows.page.browser import copied, text, visit, wait
from tests.flows.small_store import point, store_of

pytestmark = [pytest.mark.thorough, pytest.mark.xdist_group("page")]

RELEASE = {"mechanism": "llp", "bag_size": 3}


@pytest.fixture(scope="module")
def of_file(folder: Path) -> Problem:
    """The advantage at a column of probabilities, stored next to that at the same prior, written out."""
    file = folder / "probabilities.csv"
    file.write_text("eta\n0.1\n0.5\n")
    priors = (f"column({file},eta)", "two-point(0.1,0.5,0.5)")
    points = [point("label-advantage", "labels.composition", **RELEASE, prior=prior) for prior in priors]
    with open_store(store_of(folder / "of-file", points)) as store:
        build(store, folder / "www" / "of-file")
    return points[0].problem


def address(prior: str) -> str:
    fields = "&".join(f"{name}={value}" for name, value in RELEASE.items())
    return f"of-file/#problem=label-advantage&{fields}&prior={quote(prior)}"


def test_an_answer_about_a_column_names_its_assumption(
    browser: webdriver.Chrome, origin: str, of_file: Problem
) -> None:
    visit(browser, f"{origin}/{address(str(of_file.as_fields()['prior']))}")
    wait(browser, "#number")
    assert "proved for the values of the file alone" in text(browser, "bracket")
    assert f"assumed: {of_file.assumption()}" in text(browser, "bracket")
    for copy in ("LaTeX", "Citation"):
        assert "do not exist" in copied(browser, copy)


@pytest.mark.usefixtures("of_file")
def test_an_answer_about_a_prior_that_is_written_out_assumes_nothing(
    browser: webdriver.Chrome, origin: str
) -> None:
    visit(browser, f"{origin}/{address('two-point(0.1,0.5,0.5)')}")
    wait(browser, "#number")
    assert "proved, with certainty" in text(browser, "bracket")
    assert "assumed" not in text(browser, "bracket")
