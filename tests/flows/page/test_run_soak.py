"""200 drawn training runs in the form: every place of the page shows the bracket of the command."""

import random
import re
import urllib.parse

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

import privsweep as ps
from flows.printing import exactly, rounded_down, rounded_up
from tests.flows.page.browser import call, click, complaints, read, text, visit, wait
from tests.flows.page.test_run import LOADERS, brief, digits, headline

pytestmark = [pytest.mark.soak, pytest.mark.xdist_group("page")]

COMPUTED = ("poisson", "none", "allocation", "balls-in-bins", "shuffling-drop-last")
PARTS, EACH = 20, 10
APART = {"shuffling-drop-last": 1.1}
"""Largest quotient of the ends of the page and of the command, where it is not `USUAL`: the page sums
shuffled batches one by one and not in blocks."""
USUAL = 1.002


def drawn(rng: random.Random) -> dict[str, str]:
    """Fields of the form as people fill it in."""
    n = round(10 ** rng.uniform(3, 6))
    batch = max(1, round(n * 10 ** rng.uniform(-3, -1)))
    return {
        "loader": rng.choice(COMPUTED),
        "n": str(n if n % batch else n + 1),
        "batch": str(batch),
        "epochs": str(round(10 ** rng.uniform(0, 1.7))),
        "noise": f"{10 ** rng.uniform(-0.2, 0.7):.3g}",
        "delta": f"{10 ** rng.uniform(-8, -4):.1g}",
    }


def told(browser: webdriver.Chrome, selector: str) -> str:
    """The text of an element, once it is there."""
    return str(read(browser, lambda page: page.find_element(By.CSS_SELECTOR, selector).text))


@pytest.mark.parametrize("part", range(PARTS))
def test_headline_bar_title_curve_digits_and_copies_have_the_ends_of_the_command(
    browser: webdriver.Chrome, page: str, part: int
) -> None:
    rng = random.Random(part)
    for fields in (drawn(rng) for _ in range(EACH)):
        visit(browser, f"{page}#{urllib.parse.urlencode(fields)}")
        big = headline(browser)
        wait(browser, "#run-curve svg")
        lower, upper = digits(browser)
        said = brief(lower, upper)
        numbers = re.findall(r"[\d.]+(?:e-?\d+)?", said)
        assert re.findall(r"[\d.]+(?:e-?\d+)?", big) == numbers, fields
        assert told(browser, f"#brackets li[data-loader={fields['loader']}] b") == said, fields
        assert browser.title.endswith(f": ε {said} · privsweep"), fields
        assert f"ε {said}" in told(browser, "#run-curve output"), fields

        click(browser, "button[data-copy=Citation]")
        copied = str(read(browser, lambda at: at.find_element(By.ID, "run-copied").text))
        assert f"[{rounded_down(lower)}, {rounded_up(upper)}]" in copied, fields
        click(browser, "button[data-copy=Link]")
        link = read(browser, lambda at: (found := text(at, "run-copied")).startswith("http") and found)
        kept = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(str(link)).fragment))
        assert {name: kept[name] for name in fields} == fields

        run = {name: value for name, value in fields.items() if name != "loader"}
        (options,) = [
            each["options"] for each in call(browser, LOADERS, run) if each["key"] == fields["loader"]
        ]
        ours = ps.epsilon(**options)
        assert lower <= ours.upper, fields
        assert ours.lower <= upper, fields
        apart = APART.get(fields["loader"], USUAL)
        assert upper <= apart * ours.upper, (fields, exactly(upper), ours)
        assert ours.lower <= apart * lower, (fields, exactly(lower), ours)
    assert complaints(browser) == []
