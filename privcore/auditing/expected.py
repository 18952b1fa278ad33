"""Expected numbers of correct guesses: caps for every mechanism, attacks close to them, and DP-SGD."""

import math
from collections.abc import Callable

import numpy as np
import scipy

from privcore.answer import Answer
from privcore.auditing.optimal import expected_correct, thresholds
from privcore.auditing.problems import AuditDpsgdCorrect, AuditExpectedCorrect
from privcore.method import Cost, Direction, Method
from privcore.numerics.binomial import Array, window
from privcore.numerics.rounding import EXPECTED_GUESSES, SUMMED_SCORES
from privcore.numerics.sums import dot
from privcore.papers import MAHLOUJIFAR

NODES = 1500
"""Number of thresholds; the bounds differ by about the inverse square of it."""
_TAIL = 1e-15


def shares(canaries: int, chosen: int) -> tuple[float, float]:
    """Return two shares between which that of the canaries beyond a canary's own threshold almost always is.

    Args:
        canaries: Number m of canaries.
        chosen: Number h of canaries with the most extreme scores, with 0 < h < m.
    """
    a, b = float(chosen), float(canaries - chosen)
    least, rest = scipy.special.betaincinv(a, b, _TAIL), scipy.special.betaincinv(b, a, _TAIL)
    return max(float(least), 1e-300), 1.0 - float(rest)


def mean_right(
    canaries: int, chosen: int, share: Array, right: Array, steepest: float
) -> tuple[float, float]:
    r"""Return bounds of the probability that a canary is among the most extreme ones and guessed correctly.

    A canary is among the h most extreme of m if its score is beyond the h-th most extreme score of the other
    m - 1. The share U of scores beyond that one is $\mathrm{Beta}(h, m - h)$, and the canary is right beyond
    it with a probability r(U). Since r is concave, it is above its chords, and in each cell below the chords
    of the neighbouring cells, extended.

    Args:
        canaries: Number m of independent canaries.
        chosen: Number h of canaries with a guess, with 0 < h < m.
        share: Shares of scores beyond thresholds, rising.
        right: Probabilities r of a right guess beyond the same thresholds; concave in the share.
        steepest: Bound of the slope of r, so that r(u) is at most this multiple of u.

    Returns:
        Bounds without the roundings of the shares and the probabilities.

    Reference:
        David and Nagaraja (2003), Order Statistics, Sections 2.1 and 2.5.

    Example:
        >>> u = np.linspace(1e-9, 1.0, 1500)
        >>> [round(end, 9) for end in mean_right(2, 1, u, u * (1.5 - 0.5 * u), 1.5)]
        [0.583333296, 0.583333519]
    """
    a, b = float(chosen), float(canaries - chosen)
    kept = np.concatenate([[True], np.diff(share) > 0.0])
    u, r = share[kept], right[kept]
    below = scipy.special.betainc(a, b, u)
    moment = chosen / canaries * scipy.special.betainc(a + 1.0, b, u)  # mean of U where it is below u
    mass, first = np.diff(below), np.diff(moment)
    slopes = np.clip(np.diff(r) / np.diff(u), 0.0, steepest)
    beyond = float(scipy.special.betaincc(a, b, u[-1]))
    lower = float(dot(mass, r[:-1])) + float(dot(slopes, first - u[:-1] * mass)) + float(r[-1]) * beyond
    before, after = np.append(steepest, slopes[:-1]), np.append(slopes[1:], 0.0)
    cells = np.minimum(
        r[:-1] * mass + before * (first - u[:-1] * mass), r[1:] * mass - after * (u[1:] * mass - first)
    )
    outside = moment[0] + chosen / canaries * float(scipy.special.betaincc(a + 1.0, b, u[-1]))
    return lower, float(cells.sum()) + steepest * float(outside)


_STEP = 0.005
_Z = _STEP * np.arange(-7600.0, 7601.0)
"""Nodes of the trapezoidal rule, whose error is below 1e-15 for the smooth integrand."""


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


_NEGLIGIBLE = 1e-25
"""Smaller probabilities of participations are left out; their sum stays below the slack."""


class AuditingSummed(Method[AuditDpsgdCorrect]):
    r"""Find both thresholds, and add the probabilities of correct guesses beyond them.

    The score is $\mathcal N(0, T \sigma^2)$ without the canary; with the canary, $\mathrm{Bin}(T, q)$ is
    added. The upper threshold t has $\bar F_0(t) + \bar F_1(t) = c' / m$ and the lower one s has
    $F_0(s) + F_1(s) = c' / m$; the expectation is $\frac m2 (\bar F_1(t) + F_0(s))$. If exactly
    c' guesses are made, the thresholds are order statistics of the scores, over which the probabilities are
    averaged.
    """

    name = "auditing.summed"
    problems = (AuditDpsgdCorrect,)
    direction = Direction.ENCLOSURE
    reference = f"{MAHLOUJIFAR}, Section 4, canaries of one coordinate"

    def cost(self, problem: AuditDpsgdCorrect) -> Cost:
        q = problem.sampling_probability
        spread = math.sqrt(problem.steps * q * (1.0 - q))
        sums = NODES if problem.guess_number == "fixed" else 100.0
        return Cost(seconds=5e-3 + sums * (2e-5 + 4e-7 * spread), bytes=1e6 + 5000.0 * spread)

    def answer(self, problem: AuditDpsgdCorrect, seed: int) -> Answer:
        if problem.guesses == 0:
            return Answer.enclosure(0.0, 0.0, value=0.0, detail="no guess")
        scores = Scores(problem.sigma, problem.sampling_probability, problem.steps)
        if problem.guess_number == "fixed":
            low, high = scores.fixed(problem.canaries, problem.guesses)
        else:
            low, high = scores.correct(problem.guesses / problem.canaries)
        lower = problem.canaries * low * (1.0 - SUMMED_SCORES)
        upper = min(float(problem.guesses), problem.canaries * high * (1.0 + SUMMED_SCORES))
        value = min(max(0.5 * problem.canaries * (low + high), lower), upper)
        return Answer.enclosure(lower, upper, value=value, detail="distribution of the summed scores")


class Scores:
    """Distributions of a score with and without its canary."""

    def __init__(self, sigma: float, rate: float, steps: int) -> None:
        """Compute the probabilities of all participations that are not negligible."""
        participations = window(steps, rate)
        kept = participations.law > _NEGLIGIBLE
        self.law, self.times = participations.law[kept], participations.counts[kept]
        self.deviation = sigma * math.sqrt(steps)

    def correct(self, rate: float) -> tuple[float, float]:
        r"""Return bounds of the probability that a canary is beyond a threshold and guessed correctly.

        Args:
            rate: Share $c' / m$ of canaries with a guess, in (0, 1].

        Example:
            >>> low, high = Scores(15.507, 4096 / 50_000, 2500).correct(0.1)
            >>> round(5000 * low, 2), round(5000 * high, 2)
            (316.85, 316.85)
        """
        first, last = self._range()
        inside, outside = _crossing(
            lambda x: self.above(x) + float(scipy.special.ndtr(-x / self.deviation)), rate, first, last
        )
        below, beyond = _crossing(
            lambda x: -self.below(x) - float(scipy.special.ndtr(x / self.deviation)), -rate, first, last
        )
        least = 0.5 * (self.above(outside) + float(scipy.special.ndtr(below / self.deviation)))
        return least, 0.5 * (self.above(inside) + float(scipy.special.ndtr(beyond / self.deviation)))

    def fixed(self, canaries: int, guesses: int) -> tuple[float, float]:
        """Return bounds of the probability that a canary is among the extreme ones and guessed correctly.

        The likelihood ratio of a score grows with the score, so the probability of a right guess beyond a
        threshold is concave in the share of scores beyond it.

        Args:
            canaries: Number m of canaries.
            guesses: Number c' of guesses, half of them in; one more if it is odd.

        Example:
            >>> low, high = Scores(2.0, 0.3, 20).fixed(60, 20)
            >>> round(60 * low, 4), round(60 * high, 4)
            (14.6241, 14.6241)
        """
        ends = np.zeros(2)
        for chosen, side in ((guesses - guesses // 2, 1.0), (guesses // 2, -1.0)):
            if chosen == canaries:
                ends += 0.5
            elif chosen > 0:
                ends += 0.5 * np.array(self._extreme(canaries, chosen, side))
        return float(ends[0]), float(ends[1])

    def _extreme(self, canaries: int, chosen: int, side: float) -> tuple[float, float]:
        """Return the bounds for guesses of in (side 1) or of out (side -1), given that this is right."""
        tail = self.above if side > 0.0 else self.below
        first, last = self._range()

        def beyond(x: float) -> float:
            return 0.5 * (tail(x) + float(scipy.special.ndtr(-side * x / self.deviation)))

        small, large = shares(canaries, chosen)
        if side > 0.0:
            start, end = (_crossing(beyond, share, first, last)[0] for share in (small, large))
        else:
            start, end = (_crossing(lambda x: -beyond(x), -u, first, last)[0] for u in (small, large))
        x = np.linspace(start, end, NODES)
        of_all = self._normal(-side * x / self.deviation)
        inside = np.array([tail(each) for each in x.tolist()])
        right = inside if side > 0.0 else of_all
        return mean_right(canaries, chosen, 0.5 * (inside + of_all), right, 2.0)

    def _range(self) -> tuple[float, float]:
        """Return scores below and above which there are none, to machine precision."""
        far = 40.0 * self.deviation
        return min(float(self.times[0]) - far, -far), float(self.times[-1]) + far

    def above(self, x: float) -> float:
        """Return the probability that a score with its canary is above x."""
        return float(dot(self.law, self._normal((self.times - x) / self.deviation)))

    def below(self, x: float) -> float:
        """Return the probability that a score with its canary is below x."""
        return float(dot(self.law, self._normal((x - self.times) / self.deviation)))

    @staticmethod
    def _normal(z: Array) -> Array:
        with np.errstate(under="ignore"):
            return np.asarray(scipy.special.ndtr(z))


def _crossing(falls: Callable[[float], float], level: float, low: float, high: float) -> tuple[float, float]:
    """Return two neighbouring numbers between which a falling function crosses a level."""
    while True:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            return low, high
        low, high = (middle, high) if falls(middle) > level else (low, middle)
