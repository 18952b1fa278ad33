"""Rates of membership tests by the engine of the page, against the curves of Python and closed forms."""

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest
from flint import arb, ctx
from selenium import webdriver

from privcore import find, find_problem
from tests.flows.page.browser import call
from tests.flows.page.engine import width
from tests.privcore.numerics import balls

pytestmark = [pytest.mark.sampled(2), pytest.mark.xdist_group("page")]

TRADED = """
    const { tradeoff } = await load("engine/client.js");
    const found = [];
    for (const question of given) found.push(await tradeoff(question));
    return JSON.stringify(found);
"""
REFUSED = """
    const { tradeoff } = await load("engine/client.js");
    return tradeoff(...given).then(() => "computed", (error) => error.message);
"""
RATES = (1e-9, 1e-5, 1e-3, 0.02, 0.3, 0.9)


def traded(browser: webdriver.Chrome, *questions: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the answers to questions about rates; the browser is at a page."""
    found = json.loads(call(browser, TRADED, *questions))
    for question, one in zip(questions, found, strict=True):
        assert one["rates"] == list(question["rates"])
        assert all(0.0 < low <= high <= 1.0 for low, high in zip(one["lower"], one["upper"], strict=True))
    return list(found)


def _phases(rng: random.Random) -> str:
    def drawn(low: float, high: float) -> float:
        return float(f"{low * (high / low) ** rng.random():.3g}")

    def phase() -> str:
        sigma, steps, epochs = drawn(0.5, 5.0), round(drawn(1, 300)), round(drawn(1, 20))
        kind = rng.choice(("allocation", "poisson", "balls-in-bins", "none"))
        extra = {
            "poisson": f",sampling_probability={drawn(0.3, 3.0) / steps:.3g}" if steps > 3 else None,
            "balls-in-bins": f",redraw={rng.choice(('once', 'each-epoch'))}",
        }.get(kind, "")
        if extra is None or kind == "none":
            return f"none(sigma={10 * sigma},steps={steps})"
        return f"{kind}(sigma={sigma},steps={steps},epochs={epochs}{extra})"

    return "; ".join(phase() for _ in range(rng.choice((1, 1, 2))))


@pytest.mark.parametrize("seed", range(8))
def test_brackets_of_rates_intersect_those_of_python(at_page: webdriver.Chrome, seed: int) -> None:
    rng = random.Random(seed)
    phases, adjacency = _phases(rng), rng.choice(("add-remove", "add-remove", "remove", "add"))
    fields = {"phases": phases, "adjacency": adjacency}
    [found] = traded(at_page, {"problem": "run-epsilon", "fields": fields, "rates": RATES})
    curves = find("runs.curves")()
    for rate, low, high in zip(RATES, found["lower"], found["upper"], strict=True):
        problem = find_problem("run-tpr").from_fields({**fields, "false_positive_rate": rate})
        ours = curves.answer(problem, seed=0)
        assert low <= ours.upper, (phases, rate)
        assert ours.lower <= high, (phases, rate)
        assert width(low, high) <= max(0.0101, 1.5 * width(ours.lower, ours.upper)), (phases, rate)


def test_rates_without_amplification_are_those_of_two_normal_distributions(at_page: webdriver.Chrome) -> None:
    for mu in (1e-3, 1.0, 5.0):
        rates = [1e-60, *RATES, 1.0 - 1e-6]
        fields = {"sigma": 1.0 / mu}
        [found] = traded(at_page, {"problem": "unamplified-delta", "fields": fields, "rates": rates})
        with ctx.workprec(300):
            truths = [_gaussian(mu, rate) for rate in rates]
            for low, high, truth in zip(found["lower"], found["upper"], truths, strict=True):
                assert balls.below(low, truth)
                assert balls.above(high, truth)
                assert high <= low * (1.0 + 1e-8)


def _gaussian(mu: float, rate: float) -> arb:
    """Return the largest true positive rate by bisection in balls."""
    low, high = arb(-40), arb(40)
    for _ in range(250):
        middle = ((low + high) / 2).mid()
        low, high = (middle, high) if balls.normal(-middle) > rate else (low, middle)
    return balls.normal(1 / arb(1.0 / mu) - low.union(high))


def test_rates_rise_and_their_curve_is_concave(at_page: webdriver.Chrome) -> None:
    rates = [k / 61 for k in range(1, 61)]
    fields = {"sigma": 1.1, "steps": 234, "epochs": 10}
    [found] = traded(at_page, {"problem": "allocation-epsilon", "fields": fields, "rates": rates})
    low, high = found["lower"], found["upper"]
    for k in range(1, 59):
        assert low[k] <= high[k + 1], "the curve rises"
        assert high[k] >= 0.5 * (low[k - 1] + low[k + 1]), "the curve is concave"
    assert max(width(*ends) for ends in zip(low, high, strict=True)) <= 0.01


def test_rates_agree_with_delta_at_every_epsilon(at_page: webdriver.Chrome) -> None:
    """The best rate is at most kappa times the rate plus delta, for every kappa."""
    fields = {"sigma": 0.8, "steps": 50, "sampling_probability": 0.02, "adjacency": "remove"}
    [found] = traded(at_page, {"problem": "poisson-epsilon", "fields": fields, "rates": RATES})
    answer = find("poisson.certified")().answer
    for epsilon in (-1.0, 0.0, 0.3, 1.0, 3.0):
        problem = find_problem("poisson-delta").from_fields({**fields, "epsilon": epsilon})
        delta = answer(problem, seed=0).upper
        for rate, low in zip(RATES, found["lower"], strict=True):
            assert low <= 2.718281828459046**epsilon * rate + delta


def test_ratios_beyond_the_doubles_give_rates_from_closed_forms(at_page: webdriver.Chrome) -> None:
    fields = {"sigma": 0.05, "steps": 1000}
    [found] = traded(at_page, {"problem": "allocation-epsilon", "fields": fields, "rates": RATES})
    assert all(rate < low for rate, low in zip(RATES, found["lower"], strict=True))


@pytest.mark.parametrize(
    ("rates", "sentence"),
    [
        ([0.1, 0], "Expected false_positive_rate in (0, 1), got 0."),
        ([], "Expected 1 to 1000 rates, got 0."),
        (["x"], "Expected false_positive_rate in (0, 1), got x."),
    ],
)
def test_bad_rates_get_one_sentence(at_page: webdriver.Chrome, rates: Sequence[Any], sentence: str) -> None:
    question = {"problem": "allocation-epsilon", "fields": {"sigma": 1, "steps": 10}, "rates": rates}
    assert call(at_page, REFUSED, question) == sentence
