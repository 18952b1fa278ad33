"""The best of several runs: both ends enclose enumerations and quadratures, and known limits hold."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import optimize, stats

from privcore import Answer, DomainError, find_problem
from privcore.likelihood_ratio.distribution import RatioDistribution
from privcore.likelihood_ratio.questions import BEST_OF
from privcore.training.tuning.repeats import repeats
from privcore.training.tuning.selection import BestOf
from tests.privcore.draws import answer, answered

LAWS = (
    "fixed(1)",
    "fixed(2)",
    "fixed(7)",
    "binomial(8,0.5)",
    "poisson(3)",
    "geometric(4)",
    "negative-binomial(0,0.01)",
    "negative-binomial(-0.5,0.001)",
    "negative-binomial(2,0.1)",
)
POISSON = "poisson(sigma=1,sampling_probability=0.01,steps=1000)"


def epsilon(phases: str, law: str, delta: float = 1e-5, adjacency: str = "add-remove") -> Answer:
    """Return the bracket of epsilon of the best run."""
    fields = {"phases": phases, "repeats": law, "delta": delta, "adjacency": adjacency}
    return answered("tuned-epsilon", "tuned.certified", **fields)


def generating(law: str, x: Any) -> Any:
    """Return E x^K, for a number of mpmath with all of its digits."""
    name, _, rest = law.partition("(")
    kind = type(x)
    values = [kind(word) for word in rest.rstrip(")").split(",")]
    exp, log = (math.exp, math.log) if kind is float else (mpmath.exp, mpmath.log)
    if name == "fixed":
        return x ** values[0]
    if name == "binomial":
        return (1 - values[1] + values[1] * x) ** values[0]
    if name == "poisson":
        return exp(values[0] * (x - 1))
    shape, stop = values if name == "negative-binomial" else (kind(1), 1 / values[0])
    rest_of = 1 - (1 - stop) * x
    if shape == 0:
        return log(rest_of) / log(stop)
    return (rest_of**-shape - 1) / (stop**-shape - 1)


@pytest.mark.parametrize("law", LAWS)
def test_slopes_differences_and_means_are_those_of_the_generating_function(law: str) -> None:
    found = repeats(law)
    with mpmath.workdps(40):
        for x, d in ((1.0, 1e-9), (0.9999, 0.5), (0.3, 0.3), (1e-3, 1e-9), (1.0, 1.0)):
            wide, part = mpmath.mpf(x), mpmath.mpf(d)
            slope = mpmath.diff(lambda at: generating(law, at), wide)
            between = generating(law, wide) - generating(law, wide - part)
            assert found.slope(np.array([x]))[0] == pytest.approx(float(slope), rel=1e-11)
            got = found.between(np.array([x]), np.array([d]))[0]
            assert abs(got - float(between)) <= (found.error + 1e-15) * float(between)
        assert found.mean == pytest.approx(float(mpmath.diff(lambda at: generating(law, at), 1)), rel=1e-11)
        assert found.none == pytest.approx(float(generating(law, mpmath.mpf(0))), rel=1e-12, abs=1e-300)


# ------------------------------------------------------------------------------------- enumeration


PAIRS = [
    ((0.7, 0.3), (0.2, 0.8)),
    ((0.6, 0.3, 0.1), (0.05, 0.35, 0.6)),
    ((0.02, 0.9, 0.08), (0.001, 0.3, 0.699)),
]
"""Distributions on a few outcomes; each outcome is cut in halves, which may have different scores."""


def best_of(masses: Sequence[float], order: Sequence[int], law: str) -> list[float]:
    """Return the distribution of the best of K outcomes; the last one of the order is the best."""
    found, below = [0.0] * len(masses), 0.0
    for outcome in order:
        upto = min(1.0, below + masses[outcome])
        found[outcome] = float(generating(law, upto) - generating(law, below))
        below = upto
    return found


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize(("p", "q"), PAIRS)
def test_no_order_of_the_outcomes_exceeds_the_upper_end(
    law: str, direction: str, p: tuple[float, ...], q: tuple[float, ...]
) -> None:
    halves = [[each / 2 for each in masses for _ in range(2)] for masses in (p, q)]
    first, second = halves if direction == "remove" else halves[::-1]
    released = [
        (best_of(first, order, law), best_of(second, order, law))
        for order in itertools.permutations(range(len(first)))
    ]
    distribution = RatioDistribution(
        x=np.divide(p, q)[::-1], p=np.array(q)[::-1], mass_error=1e-15, value_error=1e-15
    )
    for at in (0.0, 0.4, 1.5):
        worst = max(
            sum(max(a - math.exp(at) * b, 0.0) for a, b in zip(*both, strict=True)) for both in released
        )
        question = BestOf(asks=BEST_OF["delta"], at=at, adjacency=direction, repeats=repeats(law), size=1e-3)
        upper, lower = question.upper(distribution), question.lower(distribution)
        assert 0.5 * worst - 1e-9 <= lower <= upper
        assert worst <= upper * (1.0 + 1e-9)


# -------------------------------------------------------------------------------------- quadrature


NODES, WEIGHTS = np.polynomial.legendre.leggauss(200)


def released(mean: float, law: str, x: float, a: float) -> float:
    """Return the probability that the best run is in a set, with outputs N(mean, 1), by quadrature.

    Under N(0, 1), outputs in the set and those that are worse have the probabilities a and x - a.
    """
    cut, last = stats.norm.isf(a), stats.norm.isf(x)
    worse = stats.norm.sf(last - mean) - stats.norm.sf(cut - mean)

    z = cut + 0.5 * (mean + 9.0 - cut) * (NODES + 1.0)
    at = np.minimum(1.0, worse + stats.norm.sf(z - mean))  # the larger an output of the set, the worse
    return float(0.5 * (mean + 9.0 - cut) * WEIGHTS @ (repeats(law).slope(at) * stats.norm.pdf(z - mean)))


@pytest.mark.parametrize("law", ["fixed(10)", "poisson(10)", "geometric(10)", "negative-binomial(0,0.01)"])
def test_a_score_by_quadrature_is_not_above_the_bracket_and_close_to_its_lower_end(law: str) -> None:
    delta, best = 1e-5, 0.0
    found = epsilon("none(sigma=1,steps=1)", law, delta, "remove")
    for x in (1.0, 0.999, 0.99, 0.95, 0.8, 0.5, 0.2, 0.1):
        for a in np.geomspace(1e-8, 2e-3, 30):
            won, lost = released(1.0, law, x, float(a)), released(0.0, law, x, float(a))
            if won > delta:
                best = max(best, math.log((won - delta) / lost))
    assert best <= found.upper
    assert 0.97 * found.lower <= best <= found.lower * (1.0 + 1e-3)


# ------------------------------------------------------------------------------------------ limits


def test_one_run_has_the_epsilon_of_the_run() -> None:
    one = answered(
        "poisson-epsilon", "poisson.certified", sigma=1, sampling_probability=0.01, steps=1000, delta=1e-5
    )
    best = epsilon(POISSON, "fixed(1)")
    assert best.lower <= one.upper
    assert one.lower <= best.upper <= best.lower * 1.004


@pytest.mark.parametrize(
    ("law", "widest"),
    [
        ("geometric(10)", 1.01),
        ("negative-binomial(0,0.01)", 1.01),
        ("poisson(10)", 1.02),
        ("fixed(10)", 1.12),
    ],
)
def test_the_ends_are_close(law: str, widest: float) -> None:
    found = epsilon("none(sigma=1,steps=1)", law)
    assert found.lower < found.upper <= widest * found.lower


def test_the_bound_by_the_largest_quotient_is_larger_as_the_page_says() -> None:
    def delta(at: float) -> float:
        return float(stats.norm.cdf(0.5 - at) - math.exp(at) * stats.norm.cdf(-0.5 - at))

    stop, mean = 0.1, 10.0
    one = optimize.brentq(lambda at: (1.0 - stop) * delta(at) - stop * math.expm1(at), 0.0, 9.0)
    known = 2.0 * one + optimize.brentq(lambda at: mean * delta(at) - 1e-5, 0.0, 20.0)
    assert known == pytest.approx(6.618, abs=5e-4)
    assert epsilon("none(sigma=1,steps=1)", "geometric(10)").upper == pytest.approx(6.4245, abs=1e-3)


def test_more_runs_cost_more_and_a_fixed_number_more_than_a_random_one() -> None:
    few, many, fixed = (epsilon(POISSON, law) for law in ("geometric(3)", "geometric(30)", "fixed(30)"))
    one = answered("run-epsilon", "runs.certified", phases=POISSON, delta=1e-5, adjacency="add-remove")
    assert one.upper < few.lower < few.upper < many.lower < many.upper < fixed.lower


def test_two_fixed_runs_cost_at_most_their_composition() -> None:
    together = answered(
        "run-epsilon", "runs.certified", phases=f"{POISSON}; {POISSON}", delta=1e-5, adjacency="add-remove"
    )
    assert epsilon(POISSON, "fixed(2)").upper <= together.upper * 1.001


def test_delta_at_the_ends_of_epsilon_is_on_the_other_side() -> None:
    found = epsilon(POISSON, "geometric(10)")
    fields = {"phases": POISSON, "repeats": "geometric(10)", "adjacency": "add-remove"}
    below, above = (
        answered("tuned-delta", "tuned.certified", **fields, epsilon=end)
        for end in (found.lower, found.upper)
    )
    assert below.upper >= 1e-5 * (1.0 - 1e-9)
    assert above.lower <= 1e-5


@pytest.mark.parametrize("at", [-100.0, 650.0, 720.0, 10_000.0])
def test_delta_at_the_ends_of_its_domain_has_both_ends(at: float) -> None:
    fields = {"phases": "none(sigma=1,steps=1)", "repeats": "poisson(5)", "adjacency": "add-remove"}
    found = answered("tuned-delta", "tuned.certified", **fields, epsilon=at)
    assert 0.0 <= found.lower <= found.upper
    assert found.upper <= 1e-30 if at > 0.0 else found.lower > 0.999


def test_cut_batches_are_moved_by_the_mean_number_of_runs() -> None:
    cut = "truncated-poisson(sigma=1,sampling_probability=0.05,examples=1000,largest_batch=90,steps=10)"
    whole = "poisson(sigma=1,sampling_probability=0.05,steps=10)"
    assert epsilon(cut, "geometric(10)").upper == pytest.approx(
        epsilon(whole, "geometric(10)").upper, rel=0.02
    )


@pytest.mark.parametrize(("sigma", "theorem"), [(1000, 0.0041), (100, 0.0475), (10, 0.5405)])
def test_the_upper_end_is_that_of_the_theorem_where_epsilon_is_small(sigma: int, theorem: float) -> None:
    assert (
        epsilon(f"none(sigma={sigma},steps=1)", "geometric(10)", adjacency="remove").upper <= 1.02 * theorem
    )


def test_runs_that_hardly_differ_have_epsilon_0() -> None:
    hidden = "poisson(sigma=50,sampling_probability=1e-6,steps=1)"
    assert epsilon(hidden, "geometric(10)").upper == 0.0


def test_ratios_beyond_doubles_have_the_lower_end_of_one_run_and_the_upper_end_of_all() -> None:
    one = answered("unamplified-epsilon", "unamplified.exact", sigma=0.05, delta=1e-5)
    found = epsilon("none(sigma=0.05,steps=1)", "geometric(10)")
    twice = answered("unamplified-epsilon", "unamplified.exact", sigma=0.05, delta=1e-6)
    assert found.lower == pytest.approx(one.lower, rel=1e-9)
    assert twice.upper < found.upper < 3.0 * twice.upper
    other = epsilon("none(sigma=0.05,steps=1)", "poisson(10)")
    assert twice.upper < other.upper <= 1.001 * twice.upper + 10.0
    fixed = epsilon("none(sigma=0.05,steps=1)", "fixed(20)")
    assert one.lower * (1.0 - 1e-9) <= fixed.lower < fixed.upper < 20.0 * one.upper


# --------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ten", "Expected repeats in {fixed"),
        ("fixed(2.5)", "Expected a whole number of runs"),
        ("geometric(1)", "Expected a mean number of runs in (1"),
        ("poisson(0)", "Expected a mean number of runs"),
        ("binomial(3,0)", "Expected a probability of a run"),
        ("negative-binomial(-1,0.5)", "Expected a shape in"),
        ("geometric(2,3)", "Expected repeats in"),
    ],
)
def test_impossible_numbers_of_runs_get_one_sentence(text: str, said: str) -> None:
    with pytest.raises(DomainError) as refused:
        find_problem("tuned-epsilon").from_fields(
            {"phases": POISSON, "repeats": text, "delta": 1e-5, "adjacency": "add-remove"}
        )
    assert str(refused.value).startswith(said)


def test_several_replaced_examples_are_refused_as_for_one_run() -> None:
    fields = {"phases": POISSON.replace(")", ",group=2)"), "repeats": "fixed(3)", "delta": 1e-5}
    found = answer("tuned-epsilon", "tuned.certified", **fields, adjacency="replace-one")
    assert "No theorem about replacing several examples" in found.detail
