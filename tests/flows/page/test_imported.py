"""The page marks brackets that rest on imported rows, as lookups do."""

from pathlib import Path

import pytest
from selenium import webdriver

from flows.page.build import build
from privcore import Answer
from storage import open_store
from tests.flows.page.browser import copied, text, visit, wait
from tests.storage.made_up import epsilon, imported, put, row

pytestmark = [pytest.mark.thorough, pytest.mark.xdist_group("page")]

NARROW = Answer.enclosure(4.377, 4.378)
"""As narrow as a computed bracket, so the page shows it and computes none."""
DELTA = "#problem=unamplified-epsilon&delta=1e-5"


@pytest.fixture(scope="module")
def version(folder: Path) -> str:
    """The version of the table from which the row at sigma 1 was imported; that at sigma 2 was computed."""
    table = imported(folder / "mine", row(epsilon(sigma=1.0), NARROW))
    put(folder / "mine", row(epsilon(sigma=2.0), Answer.enclosure(1.95, 1.96)))
    with open_store(folder / "mine") as store:
        build(store, folder / "www" / "imported")
    return table.version


def test_a_bracket_from_an_imported_row_names_the_table_and_is_not_called_proved(
    browser: webdriver.Chrome, origin: str, version: str
) -> None:
    visit(browser, f"{origin}/imported/{DELTA}&sigma=1")
    wait(browser, "#number")
    assert f"imported from the table {version}, and not recomputed here" in text(browser, "bracket")
    assert "proved" not in text(browser, "bracket")
    assert f"from the table {version}, computed by its author" in text(browser, "origin")
    assert f"the author of the lookup table {version}" in copied(browser, "Privacy statement")
    assert version in copied(browser, "Citation")


def test_a_chart_with_imported_rows_calls_nothing_proved(
    browser: webdriver.Chrome, origin: str, version: str
) -> None:
    visit(browser, f"{origin}/imported/{DELTA}&sigma=1")
    wait(browser, "#chart figcaption")
    caption = text(browser, "chart")
    assert f"Some were imported from the table {version}, and not recomputed here." in caption
    assert "proved" not in caption


def test_a_bracket_of_the_store_is_called_proved(
    browser: webdriver.Chrome, origin: str, version: str
) -> None:
    visit(browser, f"{origin}/imported/{DELTA}&sigma=2")
    wait(browser, "#number")
    assert "proved, with certainty" in text(browser, "bracket")
    assert "imported" not in text(browser, "origin")
    assert "Computed by: privsweep" in copied(browser, "Privacy statement")


def test_a_contradiction_names_the_table_of_an_imported_end_and_calls_nothing_proved(
    browser: webdriver.Chrome, origin: str, folder: Path
) -> None:
    version = imported(folder / "crossed", row(epsilon(sigma=1.5), Answer.enclosure(1.0, 1.1))).version
    put(folder / "crossed", row(epsilon(sigma=2.0), Answer.enclosure(2.0, 2.1)))
    with open_store(folder / "crossed") as store:
        build(store, folder / "www" / "crossed")
    visit(browser, f"{origin}/crossed/{DELTA}&sigma=1.5")
    wait(browser, "#bracket .error, #bracket p")
    shown = text(browser, "bracket")
    assert f"unamplified.exact (imported from the table {version}) at most 1.1" in shown
    assert "has at least 2, but" in shown
    assert "proved" not in shown
