"""The numbers in docs/reproduction-auditing.md against the output of its queries on a new store."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.special import betaincc, ndtr, ndtri

from flows.figures import papers
from flows.spec.grid import expand
from flows.spec.sweep import load
from privcore import Point, evaluate, find, find_problem
from privcore.auditing.counts import epsilon_of
from privcore.auditing.expected import simplex_success, success_cap
from privcore.auditing.optimal import few_errors
from privcore.auditing.recursion import gaussian_limit
from tests.flows.support.claims import Claims, agree

CLAIMS = Claims("reproduction-auditing.md")
SWEEPS = papers.SWEEPS["auditing"]


# ------------------------------------------------------------------------------- numbers without a sweep


def least_private(condition: Callable[[float], bool]) -> float:
    """Least number in [0, 1] from which a condition holds."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if condition(middle) else (middle, high)
    return high


def lower_bound() -> list[float]:
    """Companion of Lemma 11, as printed, as corrected, and the truth: perfect privacy; random responses."""
    k, e = 3, math.e

    def response(a: float) -> float:  # the trade-off function of randomized response at epsilon 1
        return max(0.0, 1.0 - e * a, 1.0 - (e - 1.0) / (e + k - 1.0) - a, (1.0 - a) / e)

    def bounds(trade_off: Callable[[float], float], q: float) -> list[float]:
        def left(a: float) -> float:
            return (k - 1) * trade_off(a) + q - a

        return [least_private(lambda a: left(a) <= 1.0), least_private(lambda a: left(a) <= k - 1.0)]

    # an attack on random responses that never guesses the response is right with 1 / (e + k - 1)
    return [*bounds(lambda a: 1.0 - a, 0.5), 0.5 / k, *bounds(response, 1.0), 1.0 / (e + k - 1.0)]


def expansion() -> list[float]:
    """Last r of the recursion, and its expansion in the proof of Lemma 15, as printed and as corrected."""
    m, guesses, correct, tau, mu = 100, 10, 8, 0.05, 1.0
    alpha, beta = tau * correct / m, tau * (guesses - correct) / m
    rho = [i / (guesses - i) for i in range(guesses)]
    r, h = alpha, [0.0] * correct + [beta]
    for i in reversed(range(correct)):
        h[i] = float(ndtr(ndtri(r) - mu))
        r += rho[i] * (h[i] - h[i + 1])
    printed = alpha - rho[correct] * beta
    printed += sum((rho[z + 1] - rho[z]) * h[z] for z in range(correct))
    right = alpha - rho[correct - 1] * beta + rho[0] * h[0]
    right += sum((rho[z] - rho[z - 1]) * h[z] for z in range(1, correct))
    return [r, printed, right]


def logarithm() -> list[float]:
    """Definition 7 for 1-GDP at delta 1e-5, as printed, and its logarithm."""
    x = np.exp(np.linspace(-30.0, -1.0, 200_001))
    largest = float(np.max((ndtr(ndtri(x) + 1.0) - 1e-5) / x))
    return [largest, math.log(largest)]


def limit() -> list[float]:
    """The refuted mu for mu = 1 and endless canaries, with guesses about a share of 1, 1/10, ..., 1e-6."""
    m = 10**15
    found = []
    for j in range(7):
        guesses = m // 10**j
        found.append(gaussian_limit(m, guesses, round(guesses * success_cap(1.0, m, guesses, 2)), 2, 0.05))
    return found


def epsilon(canaries: int, guesses: int, correct: int, alternatives: int = 2) -> float:
    """Epsilon of counts by the Gaussian family, at delta 1e-5 and confidence 0.95."""
    counts = {"canaries": canaries, "guesses": guesses, "correct": correct, "alternatives": alternatives}
    problem = find_problem("audit-epsilon").from_fields({**counts, "delta": 1e-5})
    return float(evaluate(Point(problem=problem, method=find("auditing.gaussian")())).value or 0.0)


def random_outcomes() -> list[float]:
    """Mean, 5th and 95th percentile of the epsilon that 1500 guesses give, and how often it is too large."""
    m, guesses, mu = 100_000, 1500, 1.0
    errors = np.arange(5, 116)
    law = np.array([few_errors(m, guesses, int(u), mu) for u in errors])
    law[-1] = 1.0
    found = np.array([epsilon(m, guesses, guesses - int(u)) for u in errors])
    mean = float(found @ np.diff(law, prepend=0.0))
    low, high = found[np.searchsorted(law, 0.95)], found[np.searchsorted(law, 0.05)]
    return [mean, float(low), float(high), float(law[found > epsilon_of(mu, 1e-5)].max(initial=0.0))]


def mixed_games() -> list[float]:
    """Canaries at distance sqrt 2 / 0.6, audited as if it were 1 / 0.6; 10,000 of them, and then 100."""
    mu = math.sqrt(2.0) / 0.6
    many = [epsilon(10_000, 10_000, round(10_000 * simplex_success(mu, k)), k) for k in (50, 1000, 5000)]
    return many + [epsilon(100, 100, round(100 * simplex_success(mu, k)), k) for k in (3, 50)]


def dependent_canaries() -> list[float]:
    """Both sides of the condition for privacy; probability of 860 correct guesses, and under independence."""
    share, accuracy, mu, m, correct = 0.2, math.exp(2.0) / (1.0 + math.exp(2.0)), 1.051, 1000, 860
    right, wrong = share * accuracy, share * (1.0 - accuracy)
    allowed = float(ndtr(ndtri(wrong) + mu))
    often = share * float(betaincc(m - correct + 1.0, correct, 1.0 - accuracy))
    often += (1.0 - share) * few_errors(m, m, m - correct, 0.0)
    return [right, allowed, often, few_errors(m, m, m - correct, mu)]


def one_sided() -> list[float]:
    """Expected correct guesses if all 1500 guess inclusion, and if both sides are guessed."""
    m, guesses, mu = 100_000, 1500, 1.0
    low, high = 0.0, 10.0
    for _ in range(80):
        t = 0.5 * (low + high)
        low, high = (t, high) if 0.5 * (ndtr(-t) + ndtr(mu - t)) > guesses / m else (low, t)
    return [0.5 * m * float(ndtr(mu - high)), guesses * success_cap(mu, m, guesses, 2)]


TESTS: dict[str, Callable[[], list[float]]] = {
    "lower-bound": lower_bound,
    "expansion": expansion,
    "logarithm": logarithm,
    "limit": limit,
    "random-outcomes": random_outcomes,
    "mixed-games": mixed_games,
    "dependent-canaries": dependent_canaries,
    "one-sided": one_sided,
}


@pytest.mark.parametrize("name", TESTS)
def test_a_number_without_a_query_is_what_its_test_computes(name: str) -> None:
    assert agree(TESTS[name](), CLAIMS.printed_of(name))


# ------------------------------------------------------------------------------- the table


def test_the_rows_are_numbered_and_each_has_a_verdict_and_a_command() -> None:
    CLAIMS.check_rows(TESTS)


def test_every_query_has_its_row_in_the_table_and_prints_numbers() -> None:
    CLAIMS.check_queries(at_least=55)


def test_the_sweeps_of_the_table_exist() -> None:
    assert [load(name).name for name in SWEEPS] == list(SWEEPS)


@pytest.mark.parametrize("name", SWEEPS)
def test_every_method_of_a_sweep_applies_to_its_points(name: str) -> None:
    for point in expand(load(name).grids):
        assert point.method.applies(point.problem) is None, point.canonical


@pytest.mark.parametrize(
    ("name", "expected", "method", "shared"),
    [
        ("audits-alternatives", "audit-expected-correct", "auditing.gaussian", ("canaries", "alternatives")),
        ("audits-training-free", "audit-dpsgd-correct", "auditing.gaussian", ("canaries", "guesses")),
        ("audits-training-free", "audit-dpsgd-correct", "auditing.dpsgd", ("canaries", "guesses")),
    ],
)
def test_the_counts_of_a_sweep_are_the_expected_ones(
    name: str, expected: str, method: str, shared: tuple[str, str]
) -> None:
    """The numbers of correct guesses in these sweeps are those of the points of the same sweep, rounded."""
    counted, computed = set(), set()
    for point in expand(load(name).grids):
        fields = point.problem.as_fields()
        key = tuple(fields.get(field) for field in shared)
        if point.problem.name == expected:
            computed.add((*key, round(evaluate(point).value or 0.0)))
        elif point.method.name == method:
            counted.add((*key, fields["correct"]))
    assert counted == computed
    assert len(counted) >= 17


@pytest.mark.soak
def test_the_queries_print_the_numbers_of_the_table(tmp_path: Path) -> None:
    CLAIMS.check_numbers(SWEEPS, tmp_path / "store")
