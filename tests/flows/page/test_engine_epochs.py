"""Shuffled epochs by the engine of the page: closed cases, known values, adversaries, and Python."""

import json
import math
import random
from typing import Any

import pytest
from selenium import webdriver

from privcore import find, find_problem
from tests.flows.page.browser import call
from tests.flows.page.engine import computed

pytestmark = [pytest.mark.sampled(2), pytest.mark.xdist_group("page")]

PROFILES = """
    const { profileAbove } = await load("engine/epochs/shuffled.js");
    return given.map(([epoch, remove, kappa]) => profileAbove(epoch, remove, 1e-13)(kappa));
"""
SUMS = """
    const { signed } = await load("engine/epochs/signed.js");
    const { excessOfSum, planOf } = await load("engine/epochs/sums.js");
    return given.map(([values, masses, times, level]) => {
      const number = () => signed(Float64Array.from(values), Float64Array.from(masses), 0);
      const cells = { fineness: 0.01, tail: 1e-12, low: 1e6, least: 0.01 };
      return excessOfSum(number, level, planOf(number, times, level, cells));
    });
"""
CHORDS = """
    const { fromChords } = await load("engine/epochs/chords.js");
    const { hingeOf, profile } = await load("engine/profile.js");
    const [over, under, thresholds] = given;
    const found = profile(fromChords(over, under), true);
    return thresholds.map((at) => [hingeOf(found, at, true, true), hingeOf(found, at, false, true)]);
"""
TRADED = """
    const { tradeoff } = await load("engine/client.js");
    return JSON.stringify(await tradeoff(given[0]));
"""
OPPOSED = """
    const { opposed } = await load("engine/epochs/opposed.js");
    const { hingeOf, profile } = await load("engine/profile.js");
    return given.map(([shifts, steps, used, kappa]) => {
      const found = profile(opposed(shifts, steps, used, { tail: 1e-13, fineness: 0.05 }), false);
      return [hingeOf(found, kappa, true, false), hingeOf(found, 1 / kappa, false, false)];
    });
"""


def _normal(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def _gaussian(mu: float, kappa: float) -> float:
    e = math.log(kappa)
    return _normal(mu / 2 - e / mu) - kappa * _normal(-mu / 2 - e / mu)


def test_sums_of_two_signed_values_are_binomial(at_page: webdriver.Chrome) -> None:
    cases = [(4, 0.0), (5, 1.0), (64, 10.0), (233, 40.0)]
    given = [[[-1.0, 1.0], [0.5, 0.5], times, level] for times, level in cases]
    for (times, level), found in zip(cases, call(at_page, SUMS, *given), strict=True):
        truth = math.fsum(
            math.comb(times, k) * 0.5**times * max(0.0, 2 * k - times - level) for k in range(times + 1)
        )
        assert truth <= found <= 1.03 * truth, (times, level)


KNOWN = [
    ("zero-out", 1.0, 2, 2 / 3, 0.3, True, 0.17913, 0.17768),
    ("zero-out", 1.0, 2, 2 / 3, 0.3, False, 0.14798, 0.13022),
    ("zero-out", 2.0, 2, 2 / 3, 0.5, True, 0.39882, 0.39878),
    ("zero-out", 1.0, 3, 3 / 4, 0.3, True, 0.19298, 0.19027),
    ("replace-one", 1.5, 2, 2 / 3, 1.0, True, 0.48734, 0.47494),
    ("zero-out", 0.5, 234, 1.0, 0.1, True, 0.00165215, 0.0),
    ("zero-out", 0.5, 234, 1.0, 0.1, False, 0.000925578, 0.0),
    ("zero-out", 1.0, 50, 1.0, 1.0, True, 0.0314517, 0.0),
    ("zero-out", 1 / 1.1, 234, 1.0, 3.0, True, 9.556e-06, 0.0),
]
"""Relation, s, steps, share that is used, epsilon, direction, the formula, and an adversary (docs/notes)."""


def test_profiles_of_shuffled_epochs_are_those_of_the_formula_and_above_adversaries(
    at_page: webdriver.Chrome,
) -> None:
    given = [
        [{"relation": relation, "s": s, "steps": steps, "used": used}, remove, math.exp(epsilon)]
        for relation, s, steps, used, epsilon, remove, _, _ in KNOWN
    ]
    for (*case, formula, attained), found in zip(KNOWN, call(at_page, PROFILES, *given), strict=True):
        assert attained <= found, case
        assert formula * (1.0 - 6e-3) <= found <= 1.015 * formula, case


def test_chords_of_a_profile_dominate_it(at_page: webdriver.Chrome) -> None:
    mu = 1.3
    over = [{"x": math.exp(e), "y": _gaussian(mu, math.exp(e)) * (1 + 1e-12)} for e in (0, 0.3, 0.8, 2, 4, 7)]
    under = [{"x": 1 / each["x"], "y": each["y"] / each["x"] * (1 + 1e-12)} for each in over]
    thresholds = [math.exp(k / 7 - 5) for k in range(70)]
    for at, (removed, added) in zip(thresholds, call(at_page, CHORDS, over, under, thresholds), strict=True):
        assert removed >= _gaussian(mu, at) * (1 - 1e-9)
        assert added >= _gaussian(mu, 1 / at) * (1 - 1e-9)
        assert removed <= _gaussian(mu, at) + 0.05


def test_the_opposed_pair_of_one_step_is_gaussian(at_page: webdriver.Chrome) -> None:
    cases = [([2 * s, s], 1, 1.0, kappa) for s in (0.3, 1.0, 3.0) for kappa in (1.0, 2.0, 10.0)]
    for (shifts, _, _, kappa), ends in zip(cases, call(at_page, OPPOSED, *cases), strict=True):
        truth = _gaussian(shifts[1], kappa)
        for found in ends:
            assert truth * 0.98 - 1e-7 <= found <= truth * (1 + 1e-9)


def test_the_opposed_pair_of_two_steps_is_that_of_a_plane(at_page: webdriver.Chrome) -> None:
    """By a sum over a grid of the two outputs, which errs by much less than the cells."""
    s, used, kappa = 1.0, 2 / 3, 1.35
    step = 0.02
    axis = [k * step for k in range(-350, 500)]
    density = [math.exp(-0.5 * z * z) * step / math.sqrt(2 * math.pi) for z in axis]
    far = [math.exp(2 * s * z - 2 * s * s) for z in axis]
    near = [math.exp(s * z - s * s / 2) for z in axis]
    removed = added = 0.0
    for p, a, b in zip(density, far, near, strict=True):
        for q, c, d in zip(density, far, near, strict=True):
            u, v = used * (a + c) / 2 + 1 - used, used * (b + d) / 2 + 1 - used
            removed += p * q * max(0.0, u - kappa * v)
            added += p * q * max(0.0, v - kappa * u)
    [found] = call(at_page, OPPOSED, [[2 * s, s], 2, used, kappa])
    for truth, low in zip((removed, added), found, strict=True):
        assert 0.985 * truth <= low <= truth * (1 + 1e-4)


def _drawn(rng: random.Random) -> dict[str, Any]:
    def scaled(low: float, high: float) -> float:
        return float(f"{low * (high / low) ** rng.random():.3g}")

    fields: dict[str, Any] = {
        "sigma": scaled(0.6, 2.0),
        "steps": round(scaled(2, 2000)),
        "epochs": round(scaled(1, 20)),
        "redraw": rng.choice(("each-epoch", "each-epoch", "once")),
    }
    if rng.random() < 0.8:
        fields["dropped"] = scaled(1e-4, 0.2)
    return fields


@pytest.mark.parametrize("seed", range(10))
def test_brackets_of_shuffled_runs_intersect_those_of_python(at_page: webdriver.Chrome, seed: int) -> None:
    rng = random.Random(seed)
    fields = _drawn(rng)
    adjacency = rng.choice(
        ("zero-out", "replace-one", "add-remove") if "dropped" in fields else ("zero-out",)
    )
    phases = f"shuffling({','.join(f'{name}={value}' for name, value in fields.items())})"
    problem = find_problem("run-epsilon").from_fields(
        {"phases": phases, "adjacency": adjacency, "delta": 10.0 ** -rng.randint(4, 8)}
    )
    ours = find("runs.certified")().answer(problem, seed=0)
    content = {"problem": "run-epsilon", "fields": problem.as_fields()}
    [(lower, upper, detail, _)] = computed(at_page, [content])
    said = (phases, adjacency, lower, upper, ours.lower, ours.upper, detail)
    assert lower <= ours.upper, said
    assert ours.lower <= upper, said
    assert lower >= 0.95 * ours.lower, said
    assert upper <= 1.3 * ours.upper, said


def test_examples_that_are_replaced_in_one_step_have_a_narrow_bracket(at_page: webdriver.Chrome) -> None:
    """The pair is the worst one, so that both ends are those of the same number."""
    fields = {
        "phases": "allocation(sigma=1.1,steps=234,epochs=10)",
        "adjacency": "replace-one",
        "delta": 1e-5,
    }
    [(lower, upper, *_)] = computed(at_page, [{"problem": "run-epsilon", "fields": fields}])
    assert 1.51 < lower <= 1.553
    assert 1.540 <= upper < 1.57


def test_delta_and_rates_of_a_shuffled_run_have_both_ends(at_page: webdriver.Chrome) -> None:
    fields = {"phases": "shuffling(sigma=1.1,steps=234,epochs=10,redraw=each-epoch,dropped=0.0016)"}
    fields["adjacency"] = "zero-out"
    [(lower, upper, *_)] = computed(
        at_page, [{"problem": "run-delta", "fields": {**fields, "epsilon": 5.35}}]
    )
    assert 0.0 < lower <= 1.1e-5
    assert lower < upper < 2.0 * lower
    question = {"problem": "run-epsilon", "fields": fields, "rates": [1e-4, 1e-2]}
    found = json.loads(call(at_page, TRADED, question))
    for rate, low, high in zip(question["rates"], found["lower"], found["upper"], strict=True):
        assert rate < low <= high < 2.0 * low


STEPS = [
    ("fixed-size", "zero-out", "batches.certified", 1.2),
    ("fixed-size", "replace-one", "batches.certified", 1.02),
    ("fixed-size", "add-remove", "batches.certified", 1.02),
    ("poisson", "replace-one", "poisson.certified", 1.02),
]
"""Samplers of single steps and relations, the methods of Python, and the largest ratio of the upper ends.

For zero-out and a fixed size the engine has one pair for all steps, and Python a few pairs in stages.
"""


@pytest.mark.parametrize(("scheme", "adjacency", "method", "most"), STEPS)
def test_steps_of_fixed_size_and_replaced_examples_agree_with_python(
    at_page: webdriver.Chrome, scheme: str, adjacency: str, method: str, most: float
) -> None:
    rng = random.Random(f"{scheme} {adjacency}")
    for _ in range(4):
        fields: dict[str, Any] = {
            "sigma": float(f"{rng.uniform(0.6, 3.0):.3g}"),
            "steps": rng.randint(1, 3000),
            "sampling_probability": float(f"{10 ** rng.uniform(-4, -1):.3g}"),
            "adjacency": adjacency,
            "delta": 10.0 ** -rng.randint(4, 8),
        }
        problem = find_problem(f"{scheme}-epsilon").from_fields(fields)
        ours = find(method)().answer(problem, seed=0)
        [(lower, upper, *_)] = computed(at_page, [{"problem": problem.name, "fields": problem.as_fields()}])
        said = (fields, lower, upper, ours.lower, ours.upper)
        assert lower <= ours.upper, said
        assert ours.lower <= upper, said
        assert lower >= 0.98 * ours.lower - 1e-4, said
        assert upper <= most * ours.upper + 1e-4, said


def test_a_single_step_of_fixed_size_has_a_closed_form(at_page: webdriver.Chrome) -> None:
    """If an example is replaced, the mean of (1 - q + q Y - kappa)+ with a lognormal Y."""
    q, sigma = 0.2, 1.3
    for epsilon in (0.01, 0.3, 1.0):
        kappa = math.exp(epsilon)
        truth = q * _gaussian(2.0 / sigma, (kappa - 1.0 + q) / q)
        fields = {"sigma": sigma, "steps": 1, "sampling_probability": q, "epsilon": epsilon}
        content = {"problem": "fixed-size-delta", "fields": {**fields, "adjacency": "replace-one"}}
        [(lower, upper, *_)] = computed(at_page, [content])
        assert lower <= truth * (1.0 + 1e-9)
        assert truth * (1.0 - 1e-9) <= upper <= 1.01 * lower
