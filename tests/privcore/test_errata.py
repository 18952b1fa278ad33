"""The counterexamples on docs/errata.md, computed without the methods of the theorems that they refute.

One file, since each function is a row of one page.
"""

import math
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, norm, poisson

from privcore import evaluate, find, find_problem
from privcore.membership.discrete.deviation import largest_constant, least_constant
from privcore.point import Point
from tests.flows.support.claims import Claims, agree

CLAIMS = Claims("errata.md")
REPRODUCTIONS = ("allocation", "auditing", "labels", "membership")


# ------------------------------------------------------------------------------- random allocation

Ratios = Sequence[tuple[float, float]]
"""Likelihood ratios of a step with the example against one without, and their probabilities without it."""


def response(epsilon: float, share: float = 1.0) -> Ratios:
    """Randomized response that includes the example with a probability."""
    yes = 1.0 / (1.0 + math.exp(epsilon))
    ratios = math.exp(epsilon), math.exp(-epsilon)
    return [
        (1.0 - share + share * r, probability) for r, probability in zip(ratios, (yes, 1 - yes), strict=True)
    ]


def deltas(
    step: Ratios, steps: int, epsilon: float, joint: Callable[[Sequence[float]], float]
) -> tuple[float, float]:
    """Deltas of remove and add by all outcomes of all steps; the order of steps does not matter."""
    (high, p), (low, q) = step
    remove = add = 0.0
    for k in range(steps + 1):
        ratio = joint([high] * k + [low] * (steps - k))
        probability = math.comb(steps, k) * p**k * q ** (steps - k)
        remove += probability * max(0.0, ratio - math.exp(epsilon))
        add += probability * max(0.0, 1.0 - math.exp(epsilon) * ratio)
    return remove, add


def mean(ratios: Sequence[float]) -> float:
    """Likelihood ratio of allocation to one of the steps."""
    return math.fsum(ratios) / len(ratios)


def laplace(epsilon: float) -> tuple[float, float]:
    """Deltas of both directions for two steps with Laplace noise of scale 1, by the midpoint rule."""
    cells = 2000
    x = (np.arange(cells) + 0.5) / cells
    ratios = np.concatenate([np.exp(2.0 * x - 1.0), [math.exp(-1.0), math.exp(1.0)]])
    weights = np.concatenate([np.exp(-x) / (2.0 * cells), [0.5, 0.5 * math.exp(-1.0)]])
    both = 0.5 * (ratios[:, None] + ratios[None, :])
    remove = weights @ np.maximum(0.0, both - math.exp(epsilon)) @ weights
    add = weights @ np.maximum(0.0, 1.0 - math.exp(epsilon) * both) @ weights
    return float(remove), float(add)


def remove_is_not_larger() -> list[float]:
    """Deltas of remove and add at epsilon 0.3: response; Laplace; bounds of Theorem 4.6 for response."""
    steps, epsilon, rate = 10, 0.3, 0.1
    factor = 1.0 / (1.0 - (1.0 - rate) ** steps)
    narrowed = math.log(1.0 + (math.exp(epsilon) - 1.0) / factor)
    widened = -math.log(1.0 - (1.0 - math.exp(-epsilon)) / factor)
    sampled = response(1.0, rate)
    bounds = (
        factor * deltas(sampled, steps, narrowed, math.prod)[0],
        (1.0 + math.exp(epsilon) * (factor - 1.0)) * deltas(sampled, steps, widened, math.prod)[1],
    )
    return [*deltas(response(1.0), steps, epsilon, mean), *laplace(epsilon), *bounds]


def gaussian_delta(distance: float, epsilon: float) -> float:
    """Delta of two unit Gaussians at a distance."""
    half, ratio = 0.5 * distance, epsilon / distance
    return float(norm.cdf(half - ratio) - math.exp(epsilon) * norm.cdf(-half - ratio))


def solved(delta: Callable[[float], float], target: float) -> float:
    """Epsilon from 0 on at which a falling delta reaches a target, by bisection."""
    low, high = 0.0, 100.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if delta(middle) > target else (low, middle)
    return high


def renyi(order: int, steps: int) -> float:
    """Log of the moment of this order of the mean of likelihood ratios, noise 1, by powers of a series."""
    step = [math.exp(0.5 * p * (p - 1) - p * math.log(steps) - math.lgamma(p + 1)) for p in range(order + 1)]
    power = [1.0]
    for n in range(1, order + 1):
        power.append(sum((k * steps - (n - k)) * step[k] * power[n - k] for k in range(1, n + 1)) / n)
    return math.lgamma(order + 1) + math.log(power[order])


def converted(steps: int, delta: float, epochs: int) -> float:
    """Epsilon of the direction remove by Theorem 4.8 and Lemma 2.4, noise 1, orders up to 44."""

    def at(order: int) -> float:
        divergence = epochs * renyi(order, steps) / (order - 1)
        slack = (math.log((order - 1) / delta) - order * math.log(order / (order - 1))) - 2 * math.log(
            order - 1
        )
        return divergence + slack / (order - 1)

    return min(at(order) for order in range(2, 45))


def shifted(steps: int, delta: float, epochs: int) -> float:
    """Epsilon of the direction add by Corollary 4.10, noise 1."""
    distance = math.sqrt(epochs / steps)
    shift = 0.5 * epochs * (1.0 - 1.0 / steps)
    return shift + solved(lambda epsilon: gaussian_delta(distance, epsilon), delta)


def many_steps() -> list[float]:
    """Epsilon of remove by Theorem 4.8 and of add by 4.9, for a billion steps."""
    return [converted(10**9, 1e-5, 1), shifted(10**9, 1e-5, 1)]


def many_epochs() -> list[float]:
    """The same for 1001 epochs of 10,000 steps; add by the least of all bounds of the paper."""
    fields = {"sigma": 1, "steps": 10**4, "epochs": 1001, "delta": 1e-8, "adjacency": "add"}
    question = find_problem("allocation-epsilon").from_fields(fields)
    least = evaluate(Point(problem=question, method=find("allocation.combined")())).upper
    return [converted(10**4, 1e-8, 1001), shifted(10**4, 1e-8, 1001), least]


def two_gaussian_steps(transform: Callable[[np.ndarray], np.ndarray]) -> float:
    """Mean of a function of the likelihood ratio of allocation to two steps with noise 1, by quadrature."""
    x = np.linspace(-9.0, 12.0, 3001)
    weights = norm.pdf(x) * (x[1] - x[0])
    ratios = np.exp(x - 0.5)
    return float(weights @ transform(0.5 * (ratios[:, None] + ratios[None, :])) @ weights)


def sign_of_the_shift() -> list[float]:
    """Theorem 4.9 as printed, the truth, and with the other sign: noise 1, two steps, epsilon 1/2."""
    truth = two_gaussian_steps(lambda ratio: np.maximum(0.0, 1.0 - math.exp(0.5) * ratio))
    log_constant = -0.5 * 0.5 * 0.5  # of P^(1/2) Q^(1/2), for means 0 and 1
    printed, right = (gaussian_delta(math.sqrt(0.5), 0.5 + s * 2.0 * log_constant) for s in (-1.0, 1.0))
    return [printed, truth, right]


def renyi_of_order_three() -> list[float]:
    """Truth for two steps with noise 1; Lemma E.1 and Theorem 4.8 as printed; with their mistakes mended."""
    truth = 0.5 * math.log(two_gaussian_steps(lambda ratio: ratio**3))
    divergence = {1: 0.5, 2: 1.0, 3: 1.5}
    partitions = {(3,): 2 * 1, (2, 1): 2 * 3}  # number of places times multinomial coefficient

    def total(exponent: Callable[[int], float]) -> float:
        terms = (n * math.exp(sum(exponent(p) * divergence[p] for p in ps)) for ps, n in partitions.items())
        return sum(terms) / 2**3

    mended = total(lambda p: p - 1.0)
    return [truth, 0.5 * total(lambda p: 2.0), -1.5 * mended, 0.5 * math.log(mended)]


def factor_of_tau() -> list[float]:
    """tau of Theorem 4.2 at epsilon' = 1; the factor that steps (6) to (8) give with Claim B.10."""
    tau = 1.0 / (math.e * (math.e - 1.0))
    beyond, one_sided = norm.sf(2.0 - 0.5), gaussian_delta(1.0, 1.0) / (1.0 - math.exp(-1.0))
    assert beyond <= one_sided, "the claim without the 2"
    return [tau, math.exp(-2.0) * 2.0 / (1.0 - math.exp(-1.0))]


def hyperbolic_cosine() -> list[float]:
    """Cosine at 0.1, three halves of it, and the sine; the sine is below three halves up to 1."""
    assert all(math.sinh(x) <= 1.5 * x for x in np.linspace(0.0, 1.0, 1001))
    return [math.cosh(0.1), 1.5 * 0.1, math.sinh(0.1)]


# ------------------------------------------------------------------------------- label inference


def proposition(b: float, size: int) -> tuple[float, float]:
    """Both sides of Proposition A.6."""
    cosines = np.cos(2.0 * math.pi * np.arange(size + 2) / (size + 2))
    left = float(np.mean((1.0 - cosines) * (1.0 - b + b * cosines) ** size))
    return left, (1 - b) ** size + math.pi / (4 * size * b) ** 1.5 + math.pi / (math.e * b * size**2)


def cosine_sum() -> list[float]:
    """Both sides for b = 0.99 and k = 10; up to b = 1/2 the left side is at most 0.51 of the right one."""
    sides = [proposition(b, size) for b in np.linspace(0.005, 0.5, 100) for size in range(1, 200)]
    assert max(left / right for left, right in sides) < 0.51
    return [*proposition(0.99, 10)]


def translated(mu: float, variance: float, values: np.ndarray) -> np.ndarray:
    """Probabilities of the translated Poisson distribution, by the definition with mu - sigma^2."""
    shift = math.floor(mu - variance)
    return np.asarray(poisson.pmf(values - shift, variance + (mu - variance - shift)))


def translation() -> list[float]:
    """Mean of TP(3, 1) as printed and by the definition with the other sign."""
    values = np.arange(-10, 100)
    right = float(values @ translated(3.0, 1.0, values))
    return [math.floor(3 + 1) + 1.0 + (3 - 1) % 1, right]


def unequal_variances() -> list[float]:
    """P(X1 = -1) for TP(0, 1) and P(X2 = 0) for TP(1, 4); equal variances agree."""
    assert translated(1.0, 1.0, np.array([0])) == translated(0.0, 1.0, np.array([-1]))
    return [float(translated(0.0, 1.0, np.array([-1]))[0]), float(translated(1.0, 4.0, np.array([0]))[0])]


def total_variation() -> list[float]:
    """Sum of differences and distance of 8 fair labels from TP; both sides of Lemma A.10 for 20 labels."""
    values = np.arange(-20, 80)
    sums = float(np.abs(binom.pmf(values, 8, 0.5) - translated(4.0, 2.0, values)).sum())
    events = [float(np.clip(binom.pmf(values, 8, 0.5) - translated(4.0, 2.0, values), 0.0, None).sum())]
    left = float(np.abs(np.diff(binom.pmf(np.arange(-1, 21), 19, 0.5))).sum())
    assert left == pytest.approx(2.0 * binom.pmf(9, 19, 0.5))
    return [sums, *events, left, 9.0 / math.sqrt(19 / 4)]


def rates_of_the_best_test() -> list[float]:
    """TPR - FPR and advantage of the best test, randomized response with epsilon 1: eta = 1/2, eta = 0.3."""
    keep = math.e / (1.0 + math.e)
    found = []
    for eta in (0.5, 0.3):
        positive = {1: eta * keep, 0: eta * (1 - keep)}
        negative = {1: (1 - eta) * (1 - keep), 0: (1 - eta) * keep}
        says = {y: positive[y] > negative[y] for y in (0, 1)}
        difference = sum(positive[y] / eta - negative[y] / (1 - eta) for y in says if says[y])
        right = sum(max(positive[y], negative[y]) for y in says)
        found += [difference, right - max(eta, 1 - eta)]
    return found


def posterior_odds() -> list[float]:
    """Odds of label 0 at eta = 0.9, bag of one, epsilon 0.1, release 1/2; ends of (20); mended ends."""
    eta, epsilon = 0.9, 0.1
    density = [0.5 * epsilon * math.exp(-epsilon * abs(0.5 - label)) for label in (0, 1)]
    odds = density[0] * (1 - eta) / (density[1] * eta)
    ends = [math.exp(s * epsilon) * x for x in (eta / (1 - eta), (1 - eta) / eta) for s in (-1.0, 1.0)]
    return [odds, *ends]


# ------------------------------------------------------------------------------- audits in one run


def expansion() -> list[float]:
    """alpha_1 for c' = 3 and equal p_0, ..., p_3, and its expansion without the term z = c'."""
    last, size = 3, 3
    p = [Fraction(1, 4)] * 4
    alpha = [sum(Fraction(i, size) * p[i] for i in range(c, last + 1)) for c in range(last + 1)]
    beta = [sum(Fraction(last - i, size) * p[i] for i in range(c, last + 1)) for c in range(last + 1)]

    def expanded(i: int) -> Fraction:
        terms = (
            (Fraction(z, last - z) - Fraction(z - 1, last - z + 1)) * beta[z] for z in range(i + 1, last)
        )
        return Fraction(i, last - i) * beta[i] + sum(terms)

    assert all(alpha[i] == expanded(i) + alpha[last] for i in range(last)), "the mended identity"
    return [float(alpha[1]), float(expanded(1))]


# ------------------------------------------------------------------------------- membership inference

C_LEAST = math.exp(1.5 * math.log(2.0) - 4.0 / 3.0) / math.sqrt(2.0 * math.pi)
C_LARGEST = math.exp(3.5 * math.log(7.0) - 2.0 * math.log(3.0) - 6.5 * math.log(2.0) - 1.0 / 36.0)
C_LARGEST /= math.sqrt(2.0 * math.pi)


def deviation(p: Sequence[float], n: int) -> float:
    """Half the sum of the mean absolute deviations of frequencies: the advantage, from the definition."""
    counts = np.arange(n + 1)
    return 0.5 * math.fsum(float(binom.pmf(counts, n, q) @ np.abs(counts / n - q)) for q in p)


def of_frequent(p: Sequence[float], n: int) -> tuple[float, float]:
    """The advantage less the sum over rare values; the diversity of the others over the root of n."""
    rare = math.fsum(q * (1 - q) ** n for q in p if q < 1 / n)
    return deviation(p, n) - rare, math.fsum(math.sqrt(q * (1 - q)) for q in p if q >= 1 / n) / math.sqrt(n)


def largest_atom() -> list[float]:
    """Lemma 21 for (0.9, 0.1) with 5 records, and its upper end; (1 - 1e-6, 1e-6) with 100, lower end."""
    (first, size), (second, other) = of_frequent((0.9, 0.1), 5), of_frequent((1 - 1e-6, 1e-6), 100)
    rng = np.random.default_rng(0)
    for _ in range(300):
        n, p = (
            int(rng.integers(5, 60)),
            rng.dirichlet(np.full(int(rng.integers(2, 12)), rng.choice([0.2, 2.0]))),
        )
        if p.max() < 1 - 1 / n:
            middle, scale = of_frequent(p.tolist(), n)
            assert C_LEAST * scale - 1e-12 <= middle <= C_LARGEST * scale + 1e-12, (n, p)
    assert first > C_LARGEST * size, "also with all digits of the constant"
    for law, n in (("atoms(0.9,0.1)", 5), ("atoms(0.999999,0.000001)", 100)):
        question = find_problem("membership-advantage").from_fields({"law": law, "records": n})
        bracket = evaluate(Point(problem=question, method=find("membership.deviation")()))
        atoms = [float(x) for x in law[6:-1].split(",")]
        assert bracket.lower * (1 - 1e-9) <= deviation(atoms, n) <= bracket.upper * (1 + 1e-9)
    return [first, 0.44 * size, second, 0.29 * other]


def psi(m: int, p: float, n: int) -> float:
    """psi of Lemma 29 over the root of n p (1 - p)."""
    return n * float(binom.pmf(m, n - 1, p)) * p * (1 - p) / math.sqrt(n * p * (1 - p))


def first_exponent() -> list[float]:
    """The number of (50) for m = 50, n = 100, and its printed bound."""
    return [math.exp(1 / 1200 - 1 / (12 * 52) - 1 / (12 * 50)), math.exp(-1 / 36)]


def second_exponent() -> list[float]:
    """log d for m = 3, n = 5, n p = 3.5, and its printed bound; largest psi for n >= 5, and c'."""
    m, n, part = 3, 5, 0.5
    log_d = (m + 0.5) * math.log((m + part) / (m + 1)) + (n - m - 0.5) * math.log(
        (n - m - part) / (n - m - 1)
    )
    # For fixed m and n, psi is largest at p = (m + 1/2) / n; from n = 17 on, a sharp constant is below c'.
    largest = max(psi(m, (m + 0.5) / n, n) for n in range(5, 17) for m in range(1, n - 1))
    assert largest_constant(17) < C_LARGEST
    return [log_d, 3.5 * math.log(7) - 2 * math.log(3) - 6.5 * math.log(2), largest, C_LARGEST]


def negative() -> list[float]:
    """The number said to be positive, for n = 5 and in the limit; c, and a sharp constant for n = 5."""
    at_five, limit = (-1.5 * math.log(2.0) + 1.0 - x for x in (1 / 36, 0.0))
    return [at_five, limit, C_LEAST, least_constant(5)]


def exchanged() -> list[float]:
    """Left and right side of (53) for one record, 1 with probability 0.3, that is released; gamma = 2."""
    p, gamma = np.array([0.7, 0.3]), 2.0
    fresh, member = np.outer(p, p), np.diag(p)
    sides = (np.maximum(0.0, gamma * a - b).sum() / gamma for a, b in ((fresh, member), (member, fresh)))
    return [float(side) for side in sides]


def given_the_records() -> list[float]:
    """Largest accuracy of an attack on a fair coin, given one record, over all attacks."""
    record = 0

    def accuracy(attack: Sequence[int]) -> float:
        return 0.5 * attack[record] + 0.5 * sum(0.5 for value in (0, 1) if not attack[value])

    return [max(accuracy(attack) for attack in product((0, 1), repeat=2))]


TESTS: dict[str, Callable[[], list[float]]] = {
    "remove-is-not-larger": remove_is_not_larger,
    "many-steps": many_steps,
    "many-epochs": many_epochs,
    "sign-of-the-shift": sign_of_the_shift,
    "renyi-of-order-three": renyi_of_order_three,
    "factor-of-tau": factor_of_tau,
    "hyperbolic-cosine": hyperbolic_cosine,
    "cosine-sum": cosine_sum,
    "translation": translation,
    "unequal-variances": unequal_variances,
    "total-variation": total_variation,
    "rates-of-the-best-test": rates_of_the_best_test,
    "posterior-odds": posterior_odds,
    "expansion": expansion,
    "largest-atom": largest_atom,
    "first-exponent": first_exponent,
    "second-exponent": second_exponent,
    "negative": negative,
    "exchanged": exchanged,
    "given-the-records": given_the_records,
}


@pytest.mark.parametrize("name", TESTS)
def test_a_counterexample_has_the_numbers_of_its_row(name: str) -> None:
    assert agree(TESTS[name](), CLAIMS.printed_of(name)), TESTS[name]()


def test_every_row_names_its_test_and_has_a_counterexample() -> None:
    CLAIMS.check_rows(TESTS)


@pytest.mark.parametrize("paper", REPRODUCTIONS)
def test_every_error_among_the_claims_of_a_paper_is_linked(paper: str) -> None:
    page = f"reproduction-{paper}.md"
    linked = {int(number) for number in re.findall(rf"\| \[(\d+)\]\({page}#", CLAIMS.text)}
    wrong = re.compile(r"\*\*(Wrong|Mistake|Misprint|Fails for|Condition)")
    assert {int(row.number) for row in Claims(page).rows if wrong.match(row.verdict)} <= linked
