"""One browser and one file server for all tests of the page; every store has its own page."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver

from flows.page.build import build
from storage import open_store
from tests.flows.page.browser import chromium, file_server, visit, wait
from tests.flows.page.stores import made_up, sample


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the stores, with the pages below `www`."""
    return tmp_path_factory.mktemp("page")


@pytest.fixture(scope="session")
def store(folder: Path) -> Path:
    """A store with some hundred answers on every tab."""
    root = sample(folder / "sample")
    with open_store(root) as opened:
        build(opened, folder / "www" / "sample")
    return root


@pytest.fixture(scope="session")
def ties(folder: Path) -> Path:
    """A store with made-up answers, many of them equal."""
    root = made_up(folder / "ties")
    with open_store(root) as opened:
        build(opened, folder / "www" / "ties")
    return root


@pytest.fixture(scope="session")
def origin(folder: Path) -> Iterator[str]:
    """The address of the file server."""
    (folder / "www").mkdir(exist_ok=True)
    with file_server(folder / "www") as address:
        yield address


@pytest.fixture(scope="session")
def browser(folder: Path) -> Iterator[webdriver.Chrome]:
    """Debian's Chromium."""
    with chromium(folder / "profile") as opened:
        yield opened


@pytest.fixture
def page(store: Path, origin: str) -> str:
    """The address of the page over the store with answers on every tab."""
    return f"{origin}/{store.name}/"


@pytest.fixture
def at_page(browser: webdriver.Chrome, page: str) -> webdriver.Chrome:
    """The browser, at a page whose modules can be loaded."""
    visit(browser, f"{page}#problem=unamplified-epsilon")
    wait(browser, "#number")
    return browser


@pytest.fixture
def phone(browser: webdriver.Chrome) -> Any:
    """A screen of 390 by 844."""
    metrics = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    yield metrics
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
