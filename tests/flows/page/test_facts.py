"""The questions in words about labels, audits and membership: their numbers are those of Python."""

import random
import re
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import privsweep as ps
from tests.flows.page.browser import call, complaints, read, text, visit, wait
from tests.flows.page.test_page import TEXTS_THAT_COLLIDE

pytestmark = [pytest.mark.sampled(2), pytest.mark.xdist_group("page")]

ACCURACY = "const { accuracy } = await load('facts/labels.js'); return given.map(([k, p]) => accuracy(k, p));"
RESPONSE = """
    const { accuracy, response } = await load("facts/labels.js");
    return given.map(([k, p]) => response(accuracy(k, p), p));
"""
REFUTED = "const { refuted } = await load('facts/audits.js'); return given.map(refuted);"
REPEATED = (
    "const { repeated } = await load('facts/membership.js'); return given.map(([k, n]) => repeated(k, n));"
)


def test_guesses_of_labels_in_bags_are_right_as_often_as_in_python(at_page: webdriver.Chrome) -> None:
    drawn = random.Random(11)
    asked = [(drawn.randint(2, 60), round(drawn.uniform(0.02, 0.98), 3)) for _ in range(12)]
    asked += [(2, 0.5), (1000, 0.5), (2000, 0.999)]
    for (k, p), found in zip(asked, call(at_page, ACCURACY, *asked), strict=True):
        gain = ps.ask("label-advantage", mechanism="llp", prior=f"point({p})", bag_size=k)
        blind = max(p, 1 - p)
        assert found["lower"] <= gain.upper + blind + 1e-15, (k, p)
        assert gain.lower + blind - 1e-15 <= found["upper"], (k, p)
        assert found["upper"] <= found["lower"] * (1 + 1e-10)


def test_randomized_response_with_the_shown_epsilon_reveals_as_much(at_page: webdriver.Chrome) -> None:
    asked = [(8, 0.5), (3, 0.4), (20, 0.5)]
    for (k, p), found in zip(asked, call(at_page, RESPONSE, *asked), strict=True):
        prior = f"point({p})"
        gain = ps.ask("label-advantage", mechanism="llp", prior=prior, bag_size=k)
        for end, factor in (("lower", 1 - 1e-9), ("upper", 1 + 1e-9)):
            same = ps.ask("label-advantage", mechanism="rr", prior=prior, label_epsilon=found[end] * factor)
            assert (same.lower <= gain.upper) if end == "lower" else (same.upper >= gain.lower)


def test_audits_refute_at_most_what_python_refutes(at_page: webdriver.Chrome) -> None:
    drawn = random.Random(5)
    asked: list[dict[str, Any]] = []
    for _ in range(12):
        canaries = drawn.randint(10, 2000)
        guesses = drawn.randint(5, canaries)
        correct = drawn.randint(guesses // 2, guesses)
        sizes = {"canaries": canaries, "guesses": guesses, "correct": correct}
        asked.append(sizes | {"delta": drawn.choice([0, 1e-9, 1e-5]), "confidence": 0.95})
    strong = 0
    for audit, found in zip(asked, call(at_page, REFUTED, *asked), strict=True):
        counts = {name: audit[name] for name in ("canaries", "guesses", "correct", "delta")}
        ours = ps.ask("audit-epsilon", design="independent", audit_confidence=0.95, **counts)
        assert found <= ours.lower * (1 + 1e-9), audit
        strong += found >= 0.95 * ours.lower
    assert strong >= 10


def test_no_attack_is_better_on_repeated_records_than_in_python(at_page: webdriver.Chrome) -> None:
    drawn = random.Random(3)
    asked = [(drawn.randint(2, 10 ** drawn.randint(1, 6)), drawn.randint(1, 10**5)) for _ in range(30)]
    asked += [(1000, 1000), (2, 10), (3, 3 * 10**6), (1, 5)]
    for (values, records), found in zip(asked, call(at_page, REPEATED, *asked), strict=True):
        ours = ps.ask("membership-advantage", law=f"uniform({values})", records=records)
        assert found["lower"] <= ours.upper, (values, records)
        assert ours.lower <= found["upper"], (values, records)
        assert found["upper"] <= found["lower"] * (1 + 1e-9) or values == 1


@pytest.mark.parametrize(
    ("tab", "given", "said", "command"),
    [
        ("labels", "bag=8&ones=0.5", "63.7 % of the labels", 'labels --bag-size 8 --prior "point(0.5)"'),
        ("auditing", "correct=75", "ε is more than 0.699", "audit --counts 1000 100 75 --design independent"),
        (
            "membership",
            "values=1000",
            "Advantage at most 0.368",
            'membership --law "uniform(1000)" --records',
        ),
    ],
)
@pytest.mark.parametrize("width", [320, 1360])
def test_a_link_leads_to_the_sentence_the_picture_and_the_command(
    browser: webdriver.Chrome,
    page: str,
    phone: dict[str, Any],
    width: int,
    tab: str,
    given: str,
    said: str,
    command: str,
) -> None:
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone | {"width": width})
    visit(browser, f"{page}#tab={tab}&{given}")
    wait(browser, "#fact-chart svg")
    assert text(browser, "fact-number").startswith(said)
    assert command in text(browser, "fact-command").replace("\n", " ")
    assert browser.title == f"{text(browser, 'fact-number')} · privsweep"
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script(TEXTS_THAT_COLLIDE, "#fact-chart") == []
    wait(browser, "#content")  # the stored answers follow
    assert complaints(browser) == []


@pytest.mark.parametrize(
    ("tab", "field", "typed", "said"),
    [
        ("labels", "bag", "8.5", "Expected labels in a bag in {1, ..., 100000}, got 8.5."),
        ("labels", "ones", "1", "Expected share of label 1 in [1e-6, 0.999999], got 1."),
        ("auditing", "correct", "101", "Expected at most as many correct guesses as guesses, 100, got 101."),
        ("auditing", "guesses", "2000", "Expected at most as many guesses as canaries, 1000, got 2000."),
        ("membership", "records", "many", "Expected training records in {1, ..., 10000000}, got many."),
    ],
)
def test_a_wrong_number_gets_one_sentence_and_the_address_keeps_a_right_one(
    browser: webdriver.Chrome, page: str, tab: str, field: str, typed: str, said: str
) -> None:
    visit(browser, f"{page}#tab={tab}")
    wait(browser, "#fact-chart svg")
    element = browser.find_element(By.ID, f"fact-{field}")
    before = str(element.get_property("value"))
    element.send_keys(Keys.CONTROL, "a")
    element.send_keys(typed)
    assert said in wait(browser, "#fact-says .error").text
    assert not browser.find_element(By.ID, "fact-chart").is_displayed()
    element.send_keys(Keys.CONTROL, "a")
    element.send_keys(before)
    wait(browser, "#fact-chart svg")
    assert read(browser, lambda at: re.search(rf"tab={tab}.*{field}={before}", at.current_url))
