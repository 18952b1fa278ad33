"""The page in use: by keyboard, on a phone, with hostile links; and its texts other than numbers."""

import io
import json
import re
import shlex
import time
import urllib.parse
import urllib.request
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from flows.cli.app import run
from flows.page.tabs import TABS
from flows.printing import rounded_down, rounded_up
from tests.flows.page.axe import findings
from tests.flows.page.browser import (
    await_curve,
    call,
    click,
    complaints,
    copied,
    read,
    requested,
    shown,
    text,
    visit,
    wait,
)
from tests.flows.page.stores import HOSTILE_NAME

pytestmark = [pytest.mark.sampled(4), pytest.mark.xdist_group("page")]

FIRST_ANSWER = 1000.0
"""Milliseconds from the start of the navigation to the first answer, on a quiet machine."""
READABLE = 4.5
"""The contrast of text that WCAG 2.2 requires at level AA."""
HOSTILE = "\"><img src=x onerror=window.hacked=1><script>window.hacked=1</script>'"

TEXTS_THAT_COLLIDE = """
    const box = (e) => e.getBoundingClientRect();
    const texts = [...document.querySelectorAll(`${arguments[0]} text`)];
    const all = box(document.querySelector(`${arguments[0]} svg`));
    const apart = (a, b) => a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
    const inside = (a) => a.left >= all.left - 1 && a.right <= all.right + 1 && a.top >= all.top - 1;
    return texts.filter((e) => !inside(box(e)) || texts.some((o) => o !== e && !apart(box(e), box(o))))
        .map((e) => e.textContent);
"""
"""Texts of the chart that are cut off, or lie over others."""
RUN = "#loader=balls-in-bins&n=60000&batch=256&epochs=10&noise=1.1&delta=1e-5"
ALLOCATION = "#problem=allocation-epsilon&sigma=2&steps=100&delta=1e-6"


@pytest.fixture(params=["light", "dark"])
def scheme(request: pytest.FixtureRequest, browser: webdriver.Chrome) -> Any:
    """Light or dark, as the system says."""
    features = [{"name": "prefers-color-scheme", "value": request.param}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    yield request.param
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_no_request_leaves_the_origin(browser: webdriver.Chrome, page: str, origin: str) -> None:
    browser.get("about:blank")
    requested(browser), complaints(browser)
    visit(browser, f"{page}#problem=poisson-epsilon")
    wait(browser, "#number")
    for tab in TABS:
        click(browser, f"#tab-{tab.name}")
        wait(browser, "#content")
    asked = requested(browser)
    assert len(asked) > 10
    assert [url for url in asked if not url.startswith(f"{origin}/")] == []
    assert complaints(browser) == []


@pytest.mark.soak
def test_the_first_answer_comes_within_a_second(browser: webdriver.Chrome, page: str) -> None:
    milliseconds = []
    for _ in range(3):
        visit(browser, f"{page}#problem=poisson-epsilon")
        wait(browser, "#number")
        milliseconds.append(
            float(browser.execute_script("return document.documentElement.dataset.firstAnswer"))
        )
    assert min(milliseconds) < FIRST_ANSWER


def test_the_policy_of_the_page_refuses_other_origins(browser: webdriver.Chrome, page: str) -> None:
    visit(browser, f"{page}#problem=poisson-epsilon")
    wait(browser, "#number")
    refused = call(browser, "return fetch('http://127.0.0.1:9/').then(() => false, () => true)")
    assert refused
    assert any("Content Security Policy" in message for message in complaints(browser))


@pytest.mark.parametrize("where", ["problem", "tab", "sigma", "adjacency", "unknown"])
def test_what_a_link_holds_is_only_ever_text(browser: webdriver.Chrome, page: str, where: str) -> None:
    quoted = urllib.parse.quote(HOSTILE)
    start = "" if where in {"problem", "tab"} else "problem=unamplified-epsilon&"
    visit(browser, f"{page}#{start}{where}={quoted}")
    wait(browser, "#content" if start else "#run-loader")
    if where in {"sigma", "adjacency"}:
        assert HOSTILE[:40] in text(browser, "bracket")
    if where == "problem":
        wait(browser, "#notice")
        assert HOSTILE[:40] in text(browser, "notice")
    assert browser.execute_script("return window.hacked") is None
    assert browser.find_elements(By.CSS_SELECTOR, "img, body script, [onerror]") == []


def test_what_is_typed_is_only_ever_text(browser: webdriver.Chrome, page: str) -> None:
    visit(browser, f"{page}#problem=unamplified-epsilon")
    wait(browser, "#number")
    field = browser.find_element(By.ID, "exact-sigma")
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(HOSTILE)
    assert text(browser, "bracket").startswith("Expected sigma in [0.001, 1000000], got")
    assert HOSTILE[:40] in text(browser, "bracket")
    assert field.get_attribute("aria-invalid") == "true"
    assert browser.execute_script("return window.hacked") is None
    time.sleep(0.3)  # until the address has it
    browser.refresh()
    assert HOSTILE[:40] in wait(browser, "#bracket .error").text
    assert browser.find_elements(By.CSS_SELECTOR, "img, body script") == []


def test_what_is_stored_is_only_ever_text(
    browser: webdriver.Chrome, origin: str, ties: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    visit(browser, f"{origin}/{ties.name}/#tab=labels")
    assert wait(browser, "#number").text == f"advantage ∈ [{rounded_down(0.1)}, {rounded_up(0.2)}]"
    assert HOSTILE_NAME in text(browser, "box")
    command = copied(browser, "Command line")
    (tmp_path / "store").symlink_to(ties)
    monkeypatch.chdir(tmp_path)
    with redirect_stdout(io.StringIO()) as answered:
        assert run([*shlex.split(command)[1:], "--json"]) == 0
    assert json.loads(answered.getvalue())["lower"] == 0.1
    assert HOSTILE_NAME[:4] in copied(browser, "LaTeX").replace("\\textless{}", "<")
    assert browser.execute_script("return window.hacked") is None
    assert browser.find_elements(By.CSS_SELECTOR, "img, body script") == []


def test_tab_reaches_everything_in_the_order_of_the_page(browser: webdriver.Chrome, page: str) -> None:
    visit(browser, page + ALLOCATION)
    wait(browser, "#number")
    browser.find_element(
        By.CLASS_NAME, "brand"
    ).click()  # some versions of Chromium begin at the field of the address
    reached = []
    for _ in range(60):
        ActionChains(browser).send_keys(Keys.TAB).perform()
        reached.append(
            browser.execute_script(
                "const e = document.activeElement; return e.id || e.value || e.textContent.trim()"
            )
        )
        if reached[-1].startswith("catalogue"):
            break
    fields = [
        f"{kind}-{name}"
        for name in ("sigma", "steps", "delta")
        for kind in ("exact", "slide")
        if browser.find_elements(By.ID, f"{kind}-{name}")
    ]
    wanted = [
        "tab-table",
        "problem",
        *fields,
        "exact-adjacency",
        "axis",
        "Python",
        "copy-text",
        "copy-button",
        "box",
    ]
    assert [each for each in reached if each in wanted] == wanted
    assert "tab-labels" not in reached  # the arrows lead there
    assert reached[-1].startswith("catalogue")


def test_the_skip_link_leads_to_the_answer_and_keeps_the_question(
    browser: webdriver.Chrome, page: str
) -> None:
    visit(browser, f"{page}#problem=label-advantage&mechanism=llp&prior=uniform&bag_size=3")
    shown = wait(browser, "#number").text
    browser.execute_script("document.getElementById('skip').focus()")  # the driver takes it for out of reach
    ActionChains(browser).send_keys(Keys.ENTER).perform()
    assert browser.switch_to.active_element.get_attribute("id") == "answer"
    assert text(browser, "number") == shown
    assert "#problem=label-advantage" in browser.current_url


def test_every_press_of_an_arrow_moves_a_slider_to_another_value(
    browser: webdriver.Chrome, page: str
) -> None:
    visit(browser, f"{page}#problem=unamplified-epsilon&sigma=1&delta=1e-6&steps=1&epochs=1")
    wait(browser, "#number")
    for field, values in [("epochs", ["2", "3"]), ("participations", ["2", "2"]), ("steps", ["2"])]:
        for value in values:
            browser.find_element(By.ID, f"slide-{field}").send_keys(Keys.ARROW_RIGHT)
            assert browser.find_element(By.ID, f"exact-{field}").get_property("value") == value


def test_what_is_no_number_for_python_is_none_here(browser: webdriver.Chrome, page: str) -> None:
    words = ["1e-400", "1e400", "0." + "0" * 400 + "1", "9" * 400, "-inf", "nan", "", "e5", "...", "--1"]
    words += ["1,5", "1.000.000", "1_0", "1 2", "0x1", "\u0661", "\uff11"]
    numbers = ["1e-300", " 12\n", "+1.", ".5E-3", "0e-999", "-0", "inf", "1e22"]
    body = "const { number } = await load('numbers.js'); return given.map((each) => String(number(each)));"
    visit(browser, f"{page}#problem=poisson-epsilon")
    assert set(call(browser, body, *words)) == {"NaN"}
    assert [float(each.lower().replace("infinity", "inf")) for each in call(browser, body, *numbers)] == list(
        map(float, numbers)
    )


def test_a_problem_that_does_not_load_shows_no_number_of_another(
    browser: webdriver.Chrome, page: str
) -> None:
    visit(browser, f"{page}#problem=poisson-epsilon")
    wait(browser, "#number")
    browser.execute_cdp_cmd("Network.enable", {})
    browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*/label-*"]})
    try:
        click(browser, "#tab-labels")
        assert wait(browser, "#notice").text
        assert not browser.find_element(By.ID, "number").is_displayed()
    finally:
        browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})
    click(browser, "#tab-table")
    wait(browser, "#number")
    assert not browser.find_element(By.ID, "notice").is_displayed()


def test_opened_as_a_file_it_says_that_it_needs_a_server(
    browser: webdriver.Chrome, folder: Path, store: Path
) -> None:
    visit(browser, (folder / "www" / store.name / "index.html").as_uri())
    assert "a file server" in wait(browser, "#notice").text
    complaints(browser)


def test_arrows_move_between_the_tabs(browser: webdriver.Chrome, page: str) -> None:
    visit(browser, f"{page}#problem=poisson-epsilon")
    wait(browser, "#number")
    browser.find_element(By.ID, "tab-table").send_keys(Keys.ARROW_LEFT)
    assert browser.switch_to.active_element.get_attribute("id") == "tab-membership"
    browser.switch_to.active_element.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert browser.switch_to.active_element.get_attribute("id") == "tab-run"
    assert browser.find_element(By.ID, "run-form").is_displayed()
    browser.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    assert browser.switch_to.active_element.get_attribute("id") == "tab-labels"
    wait(browser, "#number")
    assert browser.find_element(By.ID, "tab-labels").get_attribute("aria-selected") == "true"
    assert browser.find_element(By.ID, "panel").get_attribute("aria-labelledby") == "tab-labels"


def choose(browser: webdriver.Chrome) -> None:
    """Fill in the fields that a question must state, which the page leaves open."""
    for select in browser.find_elements(By.CSS_SELECTOR, "#form select"):
        if select.get_property("value") == "":
            select.find_element(By.CSS_SELECTOR, "option:not([value=''])").click()
    for field in browser.find_elements(By.CSS_SELECTOR, "#form input[type=text][aria-describedby]"):
        if field.get_property("value") == "":
            field.send_keys("0")


def names_of_controls(page: webdriver.Chrome) -> list[tuple[str | None, str]]:
    controls = shown(page, "input, select, button, summary, a, svg")
    return [(control.get_attribute("outerHTML"), control.accessible_name) for control in controls]


@pytest.mark.parametrize("tab", TABS, ids=lambda tab: tab.name)
def test_everything_has_a_name_and_fits_a_phone(
    browser: webdriver.Chrome, page: str, phone: dict[str, Any], tab: Any
) -> None:
    visit(browser, f"{page}#tab={tab.name}")
    wait(browser, "#content")
    choose(browser)
    names = read(browser, names_of_controls)
    assert len(names) > 12
    assert [control for control, name in names if not name.strip()] == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= phone["width"]
    assert browser.execute_script("return innerWidth") == phone["width"]
    wait(browser, "#chart svg")
    assert browser.execute_script(TEXTS_THAT_COLLIDE, "#chart") == []


@pytest.mark.parametrize("width", [320, 360, 1360])
def test_the_form_of_a_run_has_names_and_fits_every_screen(
    browser: webdriver.Chrome, page: str, phone: dict[str, Any], width: int
) -> None:
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone | {"width": width})
    visit(browser, page + RUN)
    await_curve(browser)
    names = read(browser, names_of_controls)
    assert len(names) > 20
    assert [control for control, name in names if not name.strip()] == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    for chart in ("#attack", "#run-curve"):
        assert browser.execute_script(TEXTS_THAT_COLLIDE, chart) == [], chart


@pytest.mark.parametrize(
    ("where", "shows"),
    [("#problem=allocation-epsilon&sigma=0.01&steps=100&delta=1e-6", "#number"), (RUN, "#run-curve output")],
)
def test_text_is_readable_in_light_and_dark(
    browser: webdriver.Chrome, page: str, scheme: str, where: str, shows: str
) -> None:
    visit(browser, page + where)
    wait(browser, shows)
    found = browser.execute_script(
        """
        const channel = (c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
        const parts = (color) => color.match(/[\\d.]+/g).map(Number);
        const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
        const paper = (element) => {
            for (let e = element; e; e = e.parentElement) {
                const color = parts(getComputedStyle(e).backgroundColor);
                if (color.length < 4 || color[3] === 1) return color;
            }
            return [255, 255, 255];
        };
        return [...document.querySelectorAll("body *")].filter((e) =>
            [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) && e.getClientRects().length
        ).map((e) => {
            const style = getComputedStyle(e);
            const ink = parts(e.closest("svg") ? style.fill : style.color);
            const [one, other] = [light(ink), light(paper(e))].sort((a, b) => b - a);
            return [e.outerHTML.slice(0, 80), (one + 0.05) / (other + 0.05)];
        });
        """
    )
    assert len(found) > 40
    assert [each for each in found if each[1] < READABLE] == []
    paper = browser.execute_script("return getComputedStyle(document.documentElement).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", paper)[:3])) < 150) == (scheme == "dark")


@pytest.mark.parametrize("width", [360, 1360])
def test_axe_finds_nothing_on_any_tab(
    browser: webdriver.Chrome, page: str, scheme: str, phone: dict[str, Any], width: int
) -> None:
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone | {"width": width})
    for where in (RUN, *(f"#tab={tab.name}" for tab in TABS)):
        visit(browser, page + where)
        await_curve(browser) if where == RUN else wait(browser, "#content")
        held, violated = findings(browser)
        assert held > 10
        assert violated == [], (where, scheme)


def test_a_slider_moves_the_exact_value_and_the_address_keeps_it(
    browser: webdriver.Chrome, page: str
) -> None:
    visit(browser, page + ALLOCATION)
    before = wait(browser, "#number").text
    slider = browser.find_element(By.ID, "slide-sigma")
    slider.send_keys(Keys.END)
    assert browser.find_element(By.ID, "exact-sigma").get_property("value") == "4"
    after = text(browser, "number")
    assert after != before
    time.sleep(0.3)
    address = browser.current_url
    assert "sigma=4" in address
    visit(browser, address)
    assert wait(browser, "#number").text == after
