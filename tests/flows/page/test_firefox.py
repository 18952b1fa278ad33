"""The page in Firefox: the engine answers as in Chromium, and the page shows the same brackets."""

import re
from collections.abc import Iterator

import pytest
from selenium import webdriver

from tests.flows.page.axe import findings
from tests.flows.page.browser import visit, wait
from tests.flows.page.drawn import asked
from tests.flows.page.engine import computed
from tests.flows.page.firefox import Firefox, firefox

pytestmark = [pytest.mark.thorough, pytest.mark.xdist_group("page")]

RUN = "#loader=poisson&n=60000&batch=256&epochs=10&noise=1.1&delta=1e-5"
WIDE = "#problem=allocation-epsilon&sigma=1.5&steps=500&delta=1e-7&participations=1&epochs=1"


@pytest.fixture(scope="module")
def fox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    """Debian's Firefox."""
    with firefox(tmp_path_factory.mktemp("firefox") / "profile") as opened:
        yield opened


def test_answers_of_the_engine_have_the_same_bits_in_two_browsers(
    fox: Firefox, at_page: webdriver.Chrome, page: str
) -> None:
    fox.visit(f"{page}#problem=unamplified-epsilon")
    fox.text("#number")
    questions = [one.content for one in asked(40, 6)]
    ours, theirs = computed(at_page, questions), computed(fox, questions)
    assert [each[:3] for each in theirs] == [each[:3] for each in ours]
    assert len({each[:2] for each in ours}) == len(questions)


def test_firefox_shows_a_stored_and_a_computed_bracket_and_complains_about_nothing(
    fox: Firefox, browser: webdriver.Chrome, page: str, origin: str
) -> None:
    fox.complaints.clear()
    fox.requested.clear()
    fox.visit(page + WIDE)
    visit(browser, page + WIDE)
    for selector in ("#number", "#tight"):
        shown = fox.text(selector)
        assert re.search(r"ε (∈ \[|≤ |≥ )[0-9.]+", shown), shown
        assert shown == wait(browser, selector).text
    assert any(url.endswith("/engine/engine.js") for url in fox.requested)
    assert [url for url in fox.requested if not url.startswith((origin, "about:", "data:"))] == []
    assert fox.complaints == []


def test_axe_finds_nothing_in_firefox(fox: Firefox, page: str) -> None:
    for where, selector in ((RUN, "#run-curve output"), (WIDE, "#tight")):
        fox.visit(page + where)
        fox.text(selector)
        held, violated = findings(fox)
        assert held > 10
        assert violated == [], where
