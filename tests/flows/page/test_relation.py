"""The page names the neighbouring relation of an audit, which follows from its design."""

from pathlib import Path

import pytest
from selenium import webdriver

from flows.answers.show import NEIGHBOURS
from flows.page.build import build
from privcore import Problem
from storage import open_store
from tests.flows.page.browser import copied, text, visit, wait
from tests.flows.small_store import point, store_of

pytestmark = [pytest.mark.thorough, pytest.mark.xdist_group("page")]

COUNTS = {"canaries": 100, "guesses": 50, "correct": 40, "delta": 1e-5}


@pytest.fixture(scope="module")
def audits(folder: Path) -> dict[str, Problem]:
    """Stored audits of guesses between two and between five alternatives, by their number, and of pairs."""
    points = [
        point("audit-tail", "auditing.exact", **COUNTS, claimed_epsilon=1.0, alternatives=k) for k in (2, 5)
    ]
    points.append(point("audit-tail", "auditing.exact", **COUNTS, claimed_epsilon=1.0, design="pairs"))
    points.append(point("audit-epsilon", "auditing.tightest", **COUNTS))
    with open_store(store_of(folder / "audits", points)) as store:
        build(store, folder / "www" / "audits")
    return {"independent": points[0].problem, "candidates": points[1].problem, "pairs": points[2].problem}


@pytest.mark.parametrize("design", ["independent", "candidates", "pairs"])
def test_a_proved_answer_about_an_audit_names_the_relation(
    browser: webdriver.Chrome, origin: str, audits: dict[str, Problem], design: str
) -> None:
    fields = audits[design].as_fields()
    asked = "&".join(f"{name}={value}" for name, value in fields.items())
    visit(browser, f"{origin}/audits/#problem=audit-tail&{asked}")
    wait(browser, "#number")
    relation = NEIGHBOURS[audits[design].relation()]
    assert f"neighbours: {relation}" in text(browser, "bracket")
    for copy in ("LaTeX", "Citation"):
        assert relation in copied(browser, copy)


@pytest.mark.usefixtures("audits")
def test_an_answer_with_a_confidence_names_the_relation(browser: webdriver.Chrome, origin: str) -> None:
    asked = "&".join(f"{name}={value}" for name, value in (COUNTS | {"design": "independent"}).items())
    visit(browser, f"{origin}/audits/#problem=audit-epsilon&{asked}")
    wait(browser, "#bracket .kind")
    assert f"neighbours: {NEIGHBOURS['add-remove']}" in text(browser, "bracket")
