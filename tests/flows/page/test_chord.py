"""Chords of the privacy profile on the page: the same bits as in Python."""

import json
import random

import pytest
from selenium import webdriver

from privcore.numerics.profile_chord import epsilon_above, epsilon_below
from tests.flows.page.browser import call, visit, wait

pytestmark = pytest.mark.xdist_group("page")

COMPUTED = """
    const { epsilonAbove, epsilonBelow } = await load("table/lookup.js");
    return JSON.stringify(given.map(([delta, one, other, below]) =>
        below ? epsilonBelow(delta, one, other) : epsilonAbove(delta, one, other)));
"""


def test_chords_have_the_bits_of_python(browser: webdriver.Chrome, page: str) -> None:
    rng = random.Random(24)
    asked = []
    for _ in range(2000):
        one, two, three = sorted(10.0 ** -rng.uniform(0.1, rng.choice([2.0, 12.0])) for _ in range(3))
        least = 10.0 ** rng.uniform(-6, 2)
        most = least + 10.0 ** rng.uniform(-8, 1)
        asked += [
            [two, [one, most], [three, least], False],
            [one, [two, most], [three, least], True],
            [three, [two, least], [one, most], True],
        ]
    visit(browser, f"{page}#problem=poisson-epsilon")
    wait(browser, "#number")
    found = json.loads(call(browser, COMPUTED, *asked))
    expected = [
        (epsilon_below if below else epsilon_above)(delta, tuple(one), tuple(other))
        for delta, one, other, below in asked
    ]
    assert found == expected
    assert sum(bound > 0.0 for bound in expected) > 4500
