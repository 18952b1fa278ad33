"""Debian's Chromium, headless and cut off from everything but the loopback interface."""

import functools
import http.server
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pytest
from selenium import webdriver
from selenium.common.exceptions import ElementClickInterceptedException, StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from tests.busy import stretched

CHROMIUM, DRIVER = "chromium", "chromedriver"
Read = TypeVar("Read")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,900",
)


def require_chromium() -> tuple[str, str]:
    """The programs to run; without them a test is skipped, except where tests are to be complete."""
    found = shutil.which(CHROMIUM), shutil.which(DRIVER)
    if found[0] is None or found[1] is None:
        reason = "Debian's packages chromium and chromium-driver are not installed."
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found[0], found[1]


@contextmanager
def chromium(profile: Path) -> Iterator[webdriver.Chrome]:
    """A browser with a fresh profile that records its network requests."""
    program, driver = require_chromium()
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(driver))
    try:
        browser.set_script_timeout(60)
        yield browser
    finally:
        browser.quit()


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A file server that prints nothing."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def file_server(folder: Path) -> Iterator[str]:
    """The address of a plain file server for a folder, as anybody would start it."""
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def requested(browser: webdriver.Chrome) -> list[str]:
    """The addresses that were asked for since the last look."""
    messages = [json.loads(message)["message"] for message in _log(browser, "performance")]
    sent = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    return [url for url in sent if not url.startswith(("data:", "chrome:", "about:"))]


def complaints(browser: webdriver.Chrome) -> list[str]:
    """Return the messages of the browser's console: errors of scripts, violations of the security policy."""
    return _log(browser, "browser")


def _log(browser: webdriver.Chrome, kind: str) -> list[str]:
    entries = browser.get_log(kind)  # type: ignore[no-untyped-call]
    return [entry["message"] for entry in entries]


class Scripted(Protocol):
    """A browser at a page."""

    def execute_async_script(self, script: str, *args: Any) -> Any:
        """Return the value that the script gives to its last argument, a function."""


def call(browser: Scripted, body: str, *arguments: Any) -> Any:
    """Run an asynchronous function in the page and return its result; `load` imports a module of the page."""
    script = f"""
        const [done, given] = [arguments[arguments.length - 1], [...arguments].slice(0, -1)];
        const load = (name) => import(new URL(name, document.baseURI));
        (async (...given) => {{ {body} }})(...given).then(
            (found) => done({{ found }}), (error) => done({{ error: String(error.stack) }}));
    """
    reply = browser.execute_async_script(script, *arguments)
    assert "error" not in reply, reply["error"]
    return reply["found"]


def read(browser: webdriver.Chrome, reading: Callable[[webdriver.Chrome], Read]) -> Read:
    """Read the page by a function, again while nothing is found or the page moves an element meanwhile."""
    moved = [StaleElementReferenceException, ElementClickInterceptedException]
    patience = WebDriverWait(browser, stretched(20), poll_frequency=0.05, ignored_exceptions=moved)
    return patience.until(reading)


def wait(browser: webdriver.Chrome, selector: str) -> WebElement:
    """The element of a selector, once the page shows it."""
    return read(browser, lambda page: shown(page, selector))[0]


def shown(browser: webdriver.Chrome, selector: str) -> list[WebElement]:
    """Return the elements of a selector that the page shows."""
    return [each for each in browser.find_elements(By.CSS_SELECTOR, selector) if each.is_displayed()]


def click(browser: webdriver.Chrome, selector: str) -> None:
    """Click on the element of a selector, once the page shows it and has stopped moving it."""

    def clicked(page: webdriver.Chrome) -> bool:
        for element in shown(page, selector)[:1]:
            element.click()
            return True
        return False

    read(browser, clicked)


def visit(browser: webdriver.Chrome, address: str) -> None:
    """Load a page again, even if only the part after # differs."""
    browser.get("about:blank")
    browser.get(address)


def text(browser: webdriver.Chrome, name: str) -> str:
    """The text of the element of an id."""
    return str(browser.find_element(By.ID, name).text)


def await_curve(browser: webdriver.Chrome) -> None:
    """Wait for the end of the curve of a run, which needs a click where a bracket takes long."""

    def ended(page: webdriver.Chrome) -> bool:
        said = text(page, "curve-said")
        return bool(said) and not said.startswith("Computing")

    read(browser, ended)


def copied(browser: webdriver.Chrome, kind: str) -> str:
    """Return the text that the page offers to copy."""
    choice = f"#copy-kinds input[value='{kind}']"

    def chosen(page: webdriver.Chrome) -> bool:
        click(page, choice)  # an answer that arrives meanwhile moves the choice from under the pointer
        return page.find_element(By.CSS_SELECTOR, choice).is_selected()

    read(browser, chosen)
    return str(browser.find_element(By.ID, "copy-text").get_property("textContent"))
