"""axe finds nothing, on any tab, in light and dark, on a wide screen and on a phone."""

from typing import Any

import pytest
from selenium import webdriver

from flows.page.tabs import TABS
from tests.flows.page.axe import findings
from tests.flows.page.browser import await_curve, visit, wait

pytestmark = [pytest.mark.thorough, pytest.mark.xdist_group("page")]

RUN = "#loader=balls-in-bins&n=60000&batch=256&epochs=10&noise=1.1&delta=1e-5"


def at(width: int) -> dict[str, Any]:
    """A screen of a width."""
    return {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1360])
def test_axe_finds_nothing_on_any_tab(browser: webdriver.Chrome, page: str, scheme: str, width: int) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", at(width))
    try:
        for where in (RUN, *(f"#tab={tab.name}" for tab in TABS)):
            visit(browser, page + where)
            await_curve(browser) if where == RUN else wait(browser, "#content")
            held, violated = findings(browser)
            assert held > 10
            assert violated == [], where
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
