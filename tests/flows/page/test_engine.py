"""The engine of the page against the certified methods: two programs from one document check each other."""

import math
import random

import pytest
from flint import arb, ctx
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.expected_conditions import text_to_be_present_in_element
from selenium.webdriver.support.wait import WebDriverWait

from privcore import find_problem
from tests.flows.page.browser import call, click, complaints, text, visit, wait
from tests.flows.page.drawn import asked, bracket
from tests.flows.page.engine import computed, covered_rows, stored, width
from tests.privcore.numerics import balls

pytestmark = [pytest.mark.sampled(3), pytest.mark.xdist_group("page")]

TOLERANCE = 0.01
REFUSED = """
    const { compute } = await load("engine/client.js");
    return compute(...given).then(() => "computed", (error) => error.message);
"""
STOPPED = """
    const { compute, stop } = await load("engine/client.js");
    let reports = 0;
    const long = compute(given[0], () => { reports += 1; if (reports === 2) stop(); });
    const said = await long.then(() => "computed", (error) => error.message);
    const { lower, upper } = await compute(given[1]);
    return [said, reports, lower, upper];
"""


BEYOND = "the likelihood ratio exceeds the range of doubles"


def compared(browser: webdriver.Chrome, seed: int) -> int:
    """Assert that the brackets of ten questions intersect; return the number of those that are as narrow.

    The page has no sums of losses: where ratios exceed the range of doubles, its detail says so.
    """
    questions, narrow = asked(seed, 10), 0
    found = computed(browser, [one.content for one in questions])
    for one, (lower, upper, detail, _) in zip(questions, found, strict=True):
        said = (one, lower, upper, detail)
        assert 0.0 <= lower <= upper, said
        assert lower <= one.upper, said
        assert one.lower <= upper, said
        ours, theirs = width(one.lower, one.upper), width(lower, upper)
        narrow += theirs <= max(1.5 * ours, 1.0001 * TOLERANCE) or BEYOND in detail
    return narrow


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(4))
def test_brackets_of_both_programs_intersect(at_page: webdriver.Chrome, seed: int) -> None:
    assert compared(at_page, seed) == 10
    assert complaints(at_page) == []


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(4))
def test_an_upper_end_of_the_page_is_that_of_every_other_door_within_a_fifth_of_a_percent(
    at_page: webdriver.Chrome, seed: int
) -> None:
    questions = [one for one in asked(seed + 50, 12) if one.problem.asks == "epsilon" and one.lower > 1e-6]
    narrow = [one for one in questions if width(one.lower, one.upper) <= 1e-3]
    found = computed(at_page, [{**one.content, "tolerance": 0.001} for one in narrow])
    assert len(narrow) >= 5
    for one, (lower, upper, detail, _) in zip(narrow, found, strict=True):
        assert upper == pytest.approx(one.upper, rel=2e-3), (one, lower, upper, detail)


def test_a_noise_multiplier_suffices_and_a_smaller_one_does_not(at_page: webdriver.Chrome) -> None:
    for problem, fields, target in (
        ("allocation-epsilon", {"steps": 1000, "delta": 1e-10}, 1.0),
        ("poisson-epsilon", {"steps": 234, "sampling_probability": 0.004, "epochs": 3, "delta": 1e-5}, 2.0),
        ("unamplified-epsilon", {"delta": 1e-5}, 0.5),
    ):
        content = {"problem": problem, "fields": fields, "target": target}
        [(lower, upper, _, _)] = computed(at_page, [content])
        assert lower < upper < 1.011 * lower
        kind = find_problem(problem)
        assert bracket(kind.from_fields({**fields, "sigma": upper}))[0] <= target, "not refuted"
        assert bracket(kind.from_fields({**fields, "sigma": lower}))[1] >= target, "not refuted"


def test_ratios_beyond_the_doubles_have_a_closed_form(at_page: webdriver.Chrome) -> None:
    fields = {"sigma": 0.05, "steps": 1000, "delta": 1e-5}
    [(lower, upper, detail, _)] = computed(at_page, [{"problem": "allocation-epsilon", "fields": fields}])
    assert 0.0 < lower < 5.0
    assert 280.0 < upper < 290.0
    assert detail.startswith("the likelihood ratio exceeds the range of doubles")


def test_questions_outside_of_the_engine_get_one_sentence(at_page: webdriver.Chrome) -> None:
    for problem, changed, sentence in (
        ("allocation-epsilon", {"sigma": -1}, "Expected sigma in [0.001, 1000000], got -1."),
        ("allocation-epsilon", {"participations": 2}, "The engine of the page covers one participation,"),
        ("allocation-epsilon", {"participations": 11}, "Expected participations at most steps=10, got 11."),
        (
            "allocation-epsilon",
            {"steps": 1.5},
            "Expected steps, a whole number, in [1,",
        ),
        ("allocation-epsilon", {"adjacency": "replace-one"}, "Expected an adjacency that the engine"),
        ("allocation-epsilon", {"delta": 1}, "Expected delta in (0, 1), got 1."),
        ("balls-in-bins-epsilon", {}, "Expected redraw once or each-epoch, got nothing."),
        ("labels-epsilon", {}, "The engine of the page does not know the problem labels-epsilon."),
        ("run-epsilon", {"phases": "labels(steps=3)"}, "Expected phases of allocation, balls-in-bins,"),
        ("shuffling-epsilon", {"adjacency": "zero-out"}, "Expected redraw once or each-epoch, got nothing."),
        (
            "run-epsilon",
            {"phases": "shuffling(sigma=1,steps=3,redraw=once)"},
            "Expected adjacency zero-out or",
        ),
        (
            "run-epsilon",
            {"phases": "none(sigma=2,step=3)"},
            "Expected a field of none: sigma, steps,",
        ),
    ):
        content = {"problem": problem, "fields": {"sigma": 1, "steps": 10, "delta": 1e-5, **changed}}
        assert call(at_page, REFUSED, content).startswith(sentence), problem


def test_a_computation_can_be_stopped_and_the_next_one_starts(at_page: webdriver.Chrome) -> None:
    slow = {"sigma": 1, "steps": 9_999_999, "delta": 1e-9}
    quick = {"sigma": 1, "steps": 1, "delta": 1e-5}
    said, reports, lower, upper = call(
        at_page,
        STOPPED,
        {"problem": "allocation-epsilon", "fields": slow, "tolerance": 1e-4},
        {"problem": "unamplified-epsilon", "fields": quick},
    )
    assert (said, reports) == ("The computation was stopped.", 2)
    assert lower <= 4.377178095681 <= upper


WIDE = "#problem=allocation-epsilon&sigma=1.5&steps=500&delta=1e-7&participations=1&epochs=1"


def test_a_wide_stored_bracket_is_replaced_by_a_computed_one(browser: webdriver.Chrome, page: str) -> None:
    visit(browser, page + WIDE)
    shown = wait(browser, "#tight").text
    lower, upper = (float(end) for end in shown.removeprefix("ε ∈ [").removesuffix("]").split(", "))
    one = find_problem("allocation-epsilon").from_fields({"sigma": 1.5, "steps": 500, "delta": 1e-7})
    ours = bracket(one)
    assert lower <= ours[1]
    assert ours[0] <= upper <= 1.011 * lower
    assert "computed in this browser" in text(browser, "engine")
    size = "return getComputedStyle(document.getElementById(arguments[0])).fontSize;"
    assert browser.execute_script(size, "tight") != browser.execute_script(size, "number")
    assert complaints(browser) == []


def test_a_narrow_stored_bracket_is_checked_on_request(browser: webdriver.Chrome, page: str) -> None:
    visit(browser, f"{page}#problem=unamplified-epsilon&sigma=1&delta=1e-5")
    click(browser, "#tighten")
    assert wait(browser, "#tight").text.startswith("ε ∈ [4.3771")
    assert "contradicts" not in text(browser, "engine")


def test_an_error_in_the_form_removes_a_computed_bracket(browser: webdriver.Chrome, page: str) -> None:
    visit(browser, page + WIDE)
    wait(browser, "#tight")
    field = browser.find_element(By.ID, "exact-sigma")
    field.clear()
    field.send_keys("x")
    assert browser.find_elements(By.ID, "tight") == []
    assert "Expected sigma" in text(browser, "bracket")
    for name in ("chart-section", "copy-section"):
        assert not browser.find_element(By.ID, name).is_displayed(), "nothing is left to show there"


def test_participations_that_the_engine_lacks_are_named(browser: webdriver.Chrome, page: str) -> None:
    visit(browser, page + WIDE.replace("participations=1", "participations=2"))
    assert wait(browser, "#not-computed").text.startswith("The engine of the page covers one participation,")
    assert not browser.find_element(By.ID, "noise-section").is_displayed()
    assert browser.find_elements(By.ID, "curve-start") == []


def test_brackets_of_every_tolerance_intersect(at_page: webdriver.Chrome) -> None:
    for one in asked(77, 6):
        contents = [{**one.content, "tolerance": tolerance} for tolerance in (0.3, 0.1, 0.03, 0.01)]
        found = computed(at_page, contents)
        assert max(lower for lower, *_ in found) <= min(upper for _, upper, *_ in found), one


def test_a_single_step_of_poisson_sampling_has_a_closed_form(at_page: webdriver.Chrome) -> None:
    """The profile of 1 - q + q X in the direction remove is q times that of X at another epsilon."""
    for sigma, rate, epsilon in ((1.0, 0.1, 0.7), (3.0, 0.5, 0.1), (0.5, 0.01, 2.0), (10.0, 0.9, 0.02)):
        kappa = (math.exp(epsilon) - 1.0 + rate) / rate
        delta = rate * exact_delta(sigma, math.log(kappa))
        fields = {"sigma": sigma, "sampling_probability": rate, "steps": 1, "adjacency": "remove"}
        profile = {"problem": "poisson-delta", "fields": {**fields, "epsilon": epsilon}, "tolerance": 0.001}
        inverse = {"problem": "poisson-epsilon", "fields": {**fields, "delta": delta}, "tolerance": 0.001}
        (low, high, *_), (least, most, *_) = computed(at_page, [profile, inverse])
        assert low <= delta * (1.0 + 1e-9)
        assert delta * (1.0 - 1e-9) <= high <= 1.0011 * low
        assert least <= epsilon * (1.0 + 1e-9)
        assert epsilon * (1.0 - 1e-9) <= most <= 1.0011 * least


def exact_delta(sigma: float, epsilon: float) -> float:
    with ctx.workprec(200):
        s, e = 1 / arb(sigma), arb(epsilon)
        return float(balls.normal(s / 2 - e / s) - e.exp() * balls.normal(-s / 2 - e / s))


@pytest.mark.thorough
def test_the_page_finds_the_noise_for_an_epsilon(browser: webdriver.Chrome, page: str) -> None:
    visit(browser, page + WIDE)
    wait(browser, "#tight")
    field = browser.find_element(By.ID, "noise-epsilon")
    field.clear()
    field.send_keys("0.5")
    click(browser, "#noise-find")
    lower, upper = wait(browser, "#noise-bracket").text.removeprefix("σ ∈ [").removesuffix("]").split(", ")
    asked_at = {"steps": 500, "delta": 1e-7}
    kind = find_problem("allocation-epsilon")
    assert bracket(kind.from_fields({**asked_at, "sigma": float(upper)}))[0] <= 0.5
    assert bracket(kind.from_fields({**asked_at, "sigma": float(lower)}))[1] >= 0.5
    field.send_keys("x")
    click(browser, "#noise-find")
    assert text(browser, "noise-found") == "Expected an epsilon in (0, 10000]."
    visit(browser, f"{page}#problem=label-advantage")
    wait(browser, "#number")
    assert not browser.find_element(By.ID, "noise-section").is_displayed()
    assert complaints(browser) == []


def test_the_chart_shows_brackets_computed_along_its_axis(browser: webdriver.Chrome, page: str) -> None:
    visit(browser, page + WIDE)
    wait(browser, "#tight")
    click(browser, "#curve-start")
    WebDriverWait(browser, 20).until(text_to_be_present_in_element((By.ID, "curve"), "Thick bars"))
    assert len(browser.find_elements(By.CSS_SELECTOR, "#chart .computed")) == 13
    field = browser.find_element(By.ID, "exact-sigma")
    field.clear()
    field.send_keys("3")
    wait(browser, "#curve-start")
    assert browser.find_elements(By.CSS_SELECTOR, "#chart .computed") == []
    assert complaints(browser) == []


def test_rows_of_the_shipped_table_intersect_computed_brackets(at_page: webdriver.Chrome) -> None:
    rows = covered_rows()
    chosen = stored(rows.take(random.Random(8).sample(range(len(rows)), 40)))
    found = computed(at_page, [one.content for one in chosen])
    for one, (lower, upper, *_) in zip(chosen, found, strict=True):
        assert lower <= one.upper, one
        assert one.lower <= upper, one
