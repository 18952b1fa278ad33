"""Expected numbers of correct guesses: a cap for every mechanism, and attacks close to it."""

import math
from dataclasses import dataclass

import numpy as np
import scipy

from privcore.answer import Answer
from privcore.auditing.extremes import NODES, mean_right, shares
from privcore.auditing.optimal import expected_correct, thresholds
from privcore.auditing.planning_problems import AuditExpectedCorrect
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import EXPECTED_GUESSES
from privcore.papers import MAHLOUJIFAR

_STEP = 0.005
_Z = _STEP * np.arange(-7600.0, 7601.0)
"""Nodes of the trapezoidal rule, whose error is below 1e-15 for the smooth integrand."""


@dataclass(frozen=True, kw_only=True)
class AuditingExpected(Method[AuditExpectedCorrect]):
    r"""Enclose the largest expectation by a cap from Lemma 11 and by an attack.

    With $\gamma = c' / m$ at most $c' a$ guesses are correct in expectation, with a the largest root of
    $\Phi^{-1}(\gamma a) - \Phi^{-1}(\gamma (1 - a) / (k - 1)) = \mu$. For k = 2 the attack by likelihood
    ratios on independent Gaussian canaries attains the cap. If exactly c'
    guesses are made, the cap holds, too, and the attack is about the clearest scores, with the mean by order
    statistics. For k > 2 the attack is on the corners of a regular simplex with edges of length mu.
    """

    name = "auditing.expected"
    problems = (AuditExpectedCorrect,)
    direction = Direction.ENCLOSURE
    reference = f"{MAHLOUJIFAR}, Lemma 11 and Section 5"

    def cost(self, problem: AuditExpectedCorrect) -> Cost:
        return Cost(seconds=5e-3, bytes=1e6)

    def answer(self, problem: AuditExpectedCorrect, seed: int) -> Answer:
        m, guesses, mu, k = problem.canaries, problem.guesses, problem.mu, problem.alternatives
        if guesses == 0:
            return Answer.enclosure(0.0, 0.0, value=0.0, detail="no guess")
        cap = guesses * success_cap(mu, m, guesses, k)
        if k == 2:
            attained, attack = expected_correct(m, guesses, mu), "likelihood ratios"
            if problem.guess_number == "fixed" and mu > 0.0 and guesses < m:
                attained, attack = m * fixed_success(m, guesses, mu), "the clearest scores"
        else:
            attained, attack = guesses * simplex_success(mu, k), "nearest corner of a simplex"
        lower = attained * (1.0 - EXPECTED_GUESSES)
        upper = min(float(guesses), cap * (1.0 + EXPECTED_GUESSES))
        return Answer.enclosure(lower, max(lower, upper), value=attained, detail=f"attack by {attack}")


def success_cap(mu: float, canaries: int, guesses: int, alternatives: int) -> float:
    r"""Return an upper bound a of the expected share of correct guesses about a mu-GDP mechanism.

    $$\Phi^{-1}(\gamma a) - \Phi^{-1}\Bigl(\frac{\gamma (1 - a)}{k - 1}\Bigr) = \mu, \qquad \gamma = c' / m$$

    Args:
        mu: Gaussian differential privacy of changing one canary, >= 0.
        canaries: Number m of canaries.
        guesses: Number c' of guesses, from 1 to m.
        alternatives: Number k >= 2 of choices for every canary.

    Returns:
        Upper bound in [1 / k, 1], precise to 1e-12.

    Reference:
        arXiv:2410.22235v1, Lemma 11.

    Example:
        >>> round(success_cap(1.0, 1000, 15, 2), 6)
        0.952463
    """
    gamma, rest = guesses / canaries, (canaries - guesses) / canaries

    def distance(log_odds: float) -> float:
        wrong = math.log(gamma) + float(scipy.special.log_expit(-log_odds)) - math.log(alternatives - 1)
        right, other = gamma / (1.0 + math.exp(-log_odds)), rest + gamma / (1.0 + math.exp(log_odds))
        return float(
            (scipy.special.ndtri(right) if right < 0.5 else -scipy.special.ndtri(other))
            - scipy.special.ndtri_exp(wrong)
        )

    low, high = -math.log(alternatives - 1), 650.0
    while high - low > 1e-14 * max(1.0, abs(high)):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if distance(middle) < mu else (low, middle)
    return 1.0 / (1.0 + math.exp(-high))


def fixed_success(canaries: int, guesses: int, mu: float) -> float:
    r"""Return the probability that a Gaussian canary is among the c' clearest ones and guessed correctly.

    Beyond the distance $t - \mu / 2$ from the middle a guess is right with probability $Q(t - \mu)$ and wrong
    with probability $Q(t)$; as a function of their sum the first is concave.

    Args:
        canaries: Number m of independent canaries.
        guesses: Number c' of guesses, from 1 to m - 1.
        mu: Distance of the means with and without the canary, in standard deviations, > 0.

    Returns:
        Probability, rounded down to 1e-7 of itself.

    Example:
        >>> round(100 * fixed_success(100, 24, 1.0), 4)
        20.5307
    """
    farthest, nearest = thresholds(mu, np.array(shares(canaries, guesses)))
    t = np.linspace(farthest, nearest, NODES)
    wrong, right = scipy.special.ndtr(-t), scipy.special.ndtr(mu - t)
    return mean_right(canaries, guesses, wrong + right, right, 1.0)[0]


def simplex_success(mu: float, alternatives: int) -> float:
    r"""Return the probability that the nearest of k corners is correct, at distances mu and unit noise.

    $$\int \varphi(z) \, \Phi(z + \mu / \sqrt 2)^{k - 1} \, dz$$

    Args:
        mu: Distance of any two corners in standard deviations of the noise, >= 0.
        alternatives: Number k >= 2 of corners.

    Returns:
        Probability, precise to 1e-11.

    Example:
        >>> round(simplex_success(1 / 0.6, 10), 6)
        0.399175
    """
    exponent = (alternatives - 1) * scipy.special.log_ndtr(_Z + mu / math.sqrt(2.0)) - 0.5 * _Z * _Z
    with np.errstate(under="ignore"):
        density = np.exp(exponent) / math.sqrt(2.0 * math.pi)
    return min(1.0, _STEP * float(density.sum()))
