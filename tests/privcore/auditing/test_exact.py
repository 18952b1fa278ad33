"""The closed form of the p-value: against all private mechanisms, high precision, and a false theorem."""

import random
from fractions import Fraction
from itertools import combinations, product

import mpmath
import numpy as np
import pytest
import scipy
from scipy.stats import binom

from privcore.auditing.counts import revealed_tail
from privcore.auditing.exact import exact_tail
from tests.privcore.draws import answer

SOLVER = 1e-7
"""Error of the solver of linear programmes."""


def largest_of_all_mechanisms(m: int, guesses: int, c: int, epsilon: float, delta: float, k: int) -> float:
    """The largest probability of c correct guesses, by a linear programme over every mechanism and guess."""
    inputs = list(product(range(k), repeat=m))
    outputs = [
        dict(zip(who, what, strict=True))
        for who in combinations(range(m), guesses)
        for what in product(range(k), repeat=guesses)
    ]
    near = [(x, y) for x in inputs for y in inputs if sum(a != b for a, b in zip(x, y, strict=True)) == 1]
    place = {x: i * len(outputs) for i, x in enumerate(inputs)}
    size = len(inputs) * len(outputs)
    goal = np.zeros(size + len(near) * len(outputs))
    for x in inputs:
        for o, guessed in enumerate(outputs):
            correct = sum(x[who] == what for who, what in guessed.items())
            goal[place[x] + o] = -float(correct >= c) / len(inputs)
    rows, limits = [], []
    for p, (x, y) in enumerate(near):
        excess = size + p * len(outputs)
        for o in range(len(outputs)):
            row = np.zeros(goal.size)
            row[[place[x] + o, place[y] + o, excess + o]] = 1.0, -np.exp(epsilon), -1.0
            rows.append(row)
            limits.append(0.0)
        row = np.zeros(goal.size)
        row[excess : excess + len(outputs)] = 1.0
        rows.append(row)
        limits.append(delta)
    whole = np.zeros((len(inputs), goal.size))
    for i in range(len(inputs)):
        whole[i, i * len(outputs) : (i + 1) * len(outputs)] = 1.0
    solved = scipy.optimize.linprog(
        goal, A_ub=np.array(rows), b_ub=limits, A_eq=whole, b_eq=np.ones(len(inputs)), method="highs"
    )
    return -float(solved.fun)


@pytest.mark.parametrize(
    ("m", "guesses", "k"), [(2, 1, 2), (2, 2, 2), (3, 2, 2), (3, 3, 2), (2, 2, 3), (2, 1, 4)]
)
def test_no_mechanism_beats_the_closed_form_and_one_attains_it(m: int, guesses: int, k: int) -> None:
    draw = random.Random(f"{m} {guesses} {k}")
    for c in range(1, guesses + 1):
        epsilon, delta = draw.choice([0.0, 0.4, 1.5]), draw.choice([0.0, 0.01, 0.1, 0.4])
        lower, upper = exact_tail(m, guesses, c, epsilon, delta, k)
        assert lower - SOLVER <= largest_of_all_mechanisms(m, guesses, c, epsilon, delta, k) <= upper + SOLVER


def test_the_closed_form_encloses_its_value_at_any_size() -> None:
    draw = random.Random(3)
    with mpmath.workdps(60):
        for _ in range(150):
            n = draw.choice([1, 2, 3, 8, 30, 100, 400])
            m, c, k = n * draw.choice([1, 1, 2, 50]), draw.randint(1, n), draw.choice([2, 2, 3, 10**6])
            epsilon, delta = (
                draw.choice([0.0, 1e-9, 0.1, 1.0, 5.0, 500.0]),
                draw.choice([0.0, 1e-9, 1e-4, 1.0]),
            )
            odds = mpmath.exp(epsilon) / (k - 1)
            terms = [mpmath.binomial(n, i) * odds**i for i in range(n + 1)]
            above, below = sum(terms[c:]), sum(terms[:c])
            truth = above / (above + below) * (1 + m * mpmath.mpf(delta) / c * below / terms[c])
            lower, upper = exact_tail(m, n, c, epsilon, delta, k)
            assert lower <= min(1, truth) <= upper
            assert upper <= lower * (1.0 + 1e-9) + 1e-299


def test_the_largest_counts_and_epsilon_overflow_without_a_warning() -> None:
    low, high = exact_tail(10**9, 10**9, 1, 700.0, 0.5)
    assert 1.0 - 1e-14 < low < high == 1.0


def test_a_private_mechanism_exceeds_the_published_bound_near_one() -> None:
    """The mechanism publishes any bits other than the complement of the true ones, all equally likely."""
    m = 8
    at = Fraction(1, 2**m - 1)
    # Between neighbours, only the two complements differ, one in each direction.
    delta = at
    published = binom.sf(0, m, 0.5) + 2 * m * float(delta) * 0.5**m
    assert published < 0.9964, "though the mechanism always has a correct guess"
    assert revealed_tail(m, m, 1, 0.0, float(delta)) == 1.0
    assert exact_tail(m, m, 1, 0.0, float(delta))[0] > 1.0 - 1e-12


@pytest.mark.thorough
def test_the_published_bound_is_above_the_exact_probability_up_to_four_fifths() -> None:
    draw = random.Random(7)
    compared = 0
    while compared < 400:
        n = int(10 ** draw.uniform(0.0, 3.5))
        m, epsilon, delta = (
            int(n * draw.choice([1, 1, 1.3, 5, 100])),
            abs(draw.gauss(0, 1)),
            10 ** draw.uniform(-9, 0),
        )
        rate = 1.0 / (1.0 + np.exp(-epsilon))
        c = min(n, max(1, round(n * rate + draw.uniform(-1.0, 4.0) * (n * rate * (1.0 - rate)) ** 0.5)))
        exact = exact_tail(m, n, c, epsilon, delta)[0]
        if not 1e-250 < exact <= 0.8:
            continue
        below = binom.pmf(np.arange(c - 1, -1, -1), n, rate)
        share = (np.cumsum(below) / np.arange(1, c + 1)).max()
        assert exact <= (binom.sf(c - 1, n, rate) + 2.0 * m * delta * share) * (1.0 + 1e-9)
        compared += 1


@pytest.mark.parametrize(("guesses", "correct"), [(100, 90), (5000, 2700), (10**6, 501_000)])
def test_the_tightest_audit_refutes_up_to_the_exact_probability(guesses: int, correct: int) -> None:
    counts = {"canaries": 10 * guesses, "guesses": guesses, "correct": correct, "delta": 1e-9}
    epsilon = answer("audit-epsilon", "auditing.tightest", **counts).lower
    tails = [
        answer("audit-tail", "auditing.exact", claimed_epsilon=epsilon * off, **counts)
        for off in (1.0, 1.00001)
    ]
    assert tails[0].upper <= 0.05 < tails[1].lower
    assert answer("audit-epsilon", "auditing.combined", **counts).lower <= epsilon
