"""Guesses of inclusion from the scores of canaries, their correct number, and the rates of an attack.

All intervals hold with their confidence for every pair of distributions of the scores, if the scores are
independent: from separate runs, or from canaries that do not influence one another.
"""

import hashlib
import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from privcore.errors import DomainError
from privcore.numerics.clopper_pearson import rate_at_least, rate_at_most
from privcore.numerics.rounding import ERROR_RATES

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

_RARE = 1e-9
"""Two-sided p-value below which the share of included canaries is rejected as not from fair coins."""


@dataclass(frozen=True, kw_only=True)
class Guesses:
    """Indices of the canaries that are guessed to be in, and to be out; the others have no guess."""

    inside: Indices
    outside: Indices

    def correct(self, included: Array) -> int:
        """Return the number of correct guesses, given the inclusion bits of all canaries."""
        return int(included[self.inside].sum()) + self.outside.size - int(included[self.outside].sum())


def guess(scores: Array, guesses: int, *, one_sided: bool = False) -> Guesses:
    """Return guesses about the canaries with the highest and the lowest scores.

    Half of the guesses are "in", for the highest scores, and half are "out", for the lowest scores. Ties are
    broken by a permutation that is seeded with the SHA-256 of the scores: equal files give equal guesses, and
    guesses depend only on the scores, as the theorems require.

    Args:
        scores: Score of every canary with randomised inclusion, higher for canaries more likely to be in,
            without NaN.
        guesses: Number c' of guesses, fixed before the scores were known; even unless one-sided.
        one_sided: Guess that the canaries with the highest scores are in, and make no guesses of "out".

    Raises:
        DomainError: The number of guesses is odd or too large, or a score is NaN.

    Example:
        >>> made = guess(np.array([0.3, 2.0, -1.0, 0.1]), 2)
        >>> made.inside.tolist(), made.outside.tolist()
        ([1], [2])
    """
    _check_scores(scores, guesses)
    if guesses % 2 and not one_sided:
        raise DomainError(f"Expected an even number of guesses, half in and half out, got {guesses}.")
    scores = scores + 0.0  # turns -0.0 into 0.0
    order = np.lexsort((_generator(scores, "ties").permutation(scores.size), scores))
    out = 0 if one_sided else guesses // 2
    return Guesses(inside=order[scores.size - guesses + out :], outside=order[:out])


def guess_clearest(scores: Array, guesses: int, centre: float | None = None) -> Guesses:
    """Return guesses about the canaries whose scores are farthest from a centre.

    Scores above the centre are guesses of "in", scores below it guesses of "out". If scores with and without
    a canary are normal with the same variance, and the centre is the middle of their means, no other rule has
    more correct guesses.

    Args:
        scores: As for `guess`.
        guesses: Number c' of guesses, fixed before the scores were known.
        centre: Centre, fixed before the inclusion bits were known; None means the median of the scores.

    Raises:
        DomainError: The number of guesses is too large, or a score is NaN.

    Example:
        >>> made = guess_clearest(np.array([0.3, 2.0, 1.5, -0.1]), 2, centre=0.0)
        >>> made.inside.tolist(), made.outside.tolist()
        ([2, 1], [])
    """
    _check_scores(scores, guesses)
    scores = scores + 0.0
    middle = float(np.partition(scores, scores.size // 2)[scores.size // 2]) if centre is None else centre
    distances = np.where(scores == middle, 0.0, scores - np.where(scores == middle, 0.0, middle))
    ties = _generator(scores, "ties")
    chosen = np.lexsort((ties.permutation(scores.size), np.abs(distances)))[scores.size - guesses :]
    coins = ties.integers(0, 2, chosen.size)  # for scores at the centre
    inside = (distances[chosen] > 0.0) | ((distances[chosen] == 0.0) & (coins == 1))
    return Guesses(inside=chosen[inside], outside=chosen[~inside])


def guess_candidates(scores: Array, guesses: int, candidates: int) -> Guesses:
    """Return guesses which record of a set is in, for the sets with the clearest scores.

    The guess is the record with the highest score. Clearest are the sets with the largest difference between
    the two highest scores. Ties are broken as in `guess`.

    Args:
        scores: As for `guess`; each set has consecutive rows.
        guesses: Number c' of sets with a guess, fixed before the scores were known.
        candidates: Number k >= 2 of records of each set.

    Returns:
        Guesses of "in", one for each of these sets.

    Raises:
        DomainError: There are rows without a whole set, too few sets, or a score is NaN.

    Example:
        >>> guess_candidates(np.array([0.1, 0.2, 5.0, 1.0, 2.0, 4.0]), 2, 2).inside.tolist()
        [5, 2]
    """
    whole_sets(scores, candidates)
    _check_scores(scores, 0)
    sets = scores.size // candidates
    if guesses > sets:
        raise DomainError(f"Expected guesses <= sets of records, got guesses={guesses}, sets={sets}.")
    scores = scores + 0.0
    ties = _generator(scores, "ties")
    keys = ties.permutation(scores.size).reshape(sets, candidates)
    order = np.lexsort((keys, scores.reshape(sets, candidates)), axis=1)
    rows = candidates * np.arange(sets)[:, None] + order
    best, second = scores[rows[:, -1]], scores[rows[:, -2]]
    gaps = np.where(best == second, 0.0, best - np.where(best == second, 0.0, second))
    chosen = np.lexsort((ties.permutation(sets), gaps))[sets - guesses :]
    return Guesses(inside=rows[chosen, -1], outside=np.empty(0, dtype=np.int64))


def whole_sets(column: Array, candidates: int) -> Array:
    """Return a column with one row for each set of records, or raise `DomainError` if a set is incomplete."""
    if column.size % candidates:
        raise DomainError(
            f"Expected sets of {candidates} consecutive rows, got {column.size} rows, not a multiple."
        )
    return np.asarray(column.reshape(-1, candidates))


def check_one_included(included: Array, candidates: int) -> None:
    """Raise `DomainError` if not exactly one record of each set, in consecutive rows, is included."""
    _check_bits(included)
    inside = whole_sets(included, candidates).sum(axis=1)
    if (inside != 1.0).any():
        first = int(np.argmax(inside != 1.0))
        raise DomainError(
            f"Expected one included record in each set of {candidates} consecutive rows, got "
            f"{int(inside[first])} in rows {first * candidates + 1} to {(first + 1) * candidates}."
        )


def check_half_included(included: Array) -> None:
    """Raise `DomainError` if the included canaries are not half of all, rounded down or up."""
    _check_bits(included)
    m, inside = included.size, int(included.sum())
    if inside not in (m // 2, (m + 1) // 2):
        raise DomainError(f"Expected exactly half of the canaries to be included, got {inside} of {m}.")


def check_included(included: Array) -> None:
    """Raise `DomainError` if inclusion bits are not 0 or 1, or plainly do not come from fair coins.

    The theorems need canaries that are included independently with probability 1/2 each. With other
    probabilities many guesses are correct without any leak.
    """
    _check_bits(included)
    m, inside = included.size, int(included.sum())
    more = max(inside, m - inside)
    if 2.0 * float(scipy.special.betainc(more, m - more + 1.0, 0.5)) < _RARE:
        raise DomainError(
            f"Expected canaries that are included with probability 1/2 each, got {inside} of {m} included."
        )


def _check_bits(included: Array) -> None:
    """Raise `DomainError` if inclusion bits are not 0 or 1."""
    wrong = (included != 0.0) & (included != 1.0)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DomainError(f"Expected inclusion bits 0 or 1, got {included[row]:g} in row {row + 1}.")


def _check_scores(scores: Array, guesses: int) -> None:
    """Raise `DomainError` if a score is NaN, or if there are more guesses than scores."""
    if np.isnan(scores).any():
        raise DomainError(
            f"Expected scores without NaN, got NaN in row {int(np.argmax(np.isnan(scores))) + 1}."
        )
    if guesses > scores.size:
        raise DomainError(f"Expected guesses <= canaries, got guesses={guesses}, canaries={scores.size}.")


def correct_if_shuffled(
    scores: Array, included: Array, guesses: Guesses, repetitions: int, candidates: int = 0
) -> Indices:
    """Return the numbers of correct guesses after repeated shuffles of the inclusion bits.

    Shuffled bits are independent of the scores, so an audit at confidence q should refute privacy in a share
    of at most about 1 - q of the repetitions.

    Args:
        scores: The scores; their SHA-256 is the seed of the permutations.
        included: Inclusion bits, 0 or 1.
        guesses: The guesses.
        repetitions: Number of permutations.
        candidates: Number of records of each set, within which bits are shuffled; 0 without sets.

    Returns:
        Numbers of correct guesses, shape (repetitions,).
    """
    rng = _generator(scores, "shuffles")

    def shuffled() -> Array:
        if not candidates:
            return rng.permutation(included)
        return np.asarray(rng.permuted(whole_sets(included, candidates), axis=1).ravel())

    return np.array([guesses.correct(shuffled()) for _ in range(repetitions)], dtype=np.int64)


def _generator(scores: Array, purpose: str) -> np.random.Generator:
    """Return a generator seeded by the scores and the purpose, independent for each purpose."""
    seed = hashlib.sha256(purpose.encode() + np.ascontiguousarray(scores, dtype="<f8").tobytes()).digest()
    return np.random.default_rng(int.from_bytes(seed, "little"))


_STEPS = 60


def true_positive_rate(
    inside: Array, outside: Array, false_positive_rate: float, confidence: float
) -> tuple[float, float]:
    """Return a confidence interval of the largest true positive rate at a false positive rate.

    Order statistics of the scores that are out give a threshold whose false positive rate is surely small
    enough, and a rate that is surely too large. Given the scores that are out, the number of
    scores that are in beyond a threshold is binomial.

    Args:
        inside: Scores of included canaries, higher for canaries more likely to be in.
        outside: Scores of canaries that are not included.
        false_positive_rate: Largest allowed false positive rate, in (0, 1).
        confidence: Probability that the interval has the rate, in (0, 1).

    Returns:
        Ends, rounded outward. Each of four bounds has a quarter of the error.

    Reference:
        David and Nagaraja (2003), Order Statistics, Section 7.1; Clopper and Pearson (1934), Biometrika 26.

    Example:
        >>> scores = np.arange(1000.0)
        >>> lower, upper = true_positive_rate(scores + 500.0, scores, 0.1, 0.95)
        >>> 0.5 < lower < 0.6 < upper < 0.7
        True
    """
    error = 0.25 * (1.0 - confidence) * (1.0 - ERROR_RATES)
    n, ranked = outside.size, np.sort(outside)[::-1]
    surely, at_most = _ranks(n, false_positive_rate, error)
    lower, upper = 0.0, 1.0
    if surely > 0:  # "in" for scores above the threshold
        lower = rate_at_least(inside.size, int((inside > ranked[surely - 1]).sum()), error)
    if at_most <= n:  # no rule with a rate that is small enough says "in" below the threshold
        upper = rate_at_most(inside.size, int((inside >= ranked[at_most - 1]).sum()), error)
    return lower, upper


def _ranks(n: int, rate: float, error: float) -> tuple[int, int]:
    """Return ranks of scores that are out, from the highest: of a small enough rate, and of a too large one.

    The share of a distribution beyond its k-th highest of n draws is below the rate with probability
    P(Bin(n, rate) >= k), and above it with probability P(Bin(n, rate) < k); ties make the first share of
    strictly higher scores smaller, and the second share, of scores at least as high, larger. A rank of 0, or
    of n + 1, means that no score qualifies.
    """
    k = np.arange(1, n + 1)
    below = scipy.special.bdtr(k - 1.0, n, rate) * (1.0 + ERROR_RATES)  # P(Bin < k)
    above = scipy.special.bdtrc(k - 1.0, n, rate) * (1.0 + ERROR_RATES)  # P(Bin >= k)
    return int(np.sum(below <= error)), int(np.sum(above > error)) + 1


def area_under_curve(inside: Array, outside: Array) -> float:
    """Return the share of pairs whose score that is in is higher, with half of the ties.

    Example:
        >>> area_under_curve(np.array([1.0, 3.0]), np.array([0.0, 1.0]))
        0.875
    """
    ranked = np.sort(outside)
    below = np.searchsorted(ranked, inside, side="left").astype(float)
    at_most = np.searchsorted(ranked, inside, side="right")
    return float(np.sum(0.5 * (below + at_most))) / (inside.size * outside.size)


def area_interval(area: float, pairs: int, confidence: float) -> tuple[float, float]:
    r"""Return a confidence interval of the area under the ROC curve.

    The share over all pairs is a mean of shares over min(m, n) independent pairs, so its moment generating
    function is at most that of a binomial mean, and with the Kullback-Leibler divergence of coins
    $$\Pr[\hat A \ge x] \le e^{-n\,\mathrm{kl}(x, A)} \text{ for } x > A.$$

    Args:
        area: The share over all pairs.
        pairs: Smaller number of the scores that are in and out.
        confidence: Probability that the interval has the area, in (0, 1).

    Returns:
        Ends, rounded outward.

    Reference:
        Hoeffding (1963), Probability inequalities for sums of bounded random variables, Section 5.

    Example:
        >>> [round(end, 4) for end in area_interval(0.75, 1000, 0.95)]
        [0.7116, 0.7859]
    """
    most = math.log(2.0 / (1.0 - confidence)) / pairs * (1.0 + ERROR_RATES) + ERROR_RATES / pairs
    ends = []
    for end in (0.0, 1.0):
        close, far = area, end
        for _ in range(_STEPS):  # `far` stays rejected
            middle = 0.5 * (close + far)
            close, far = (middle, far) if _divergence(area, middle) <= most else (close, middle)
        ends.append(far)
    return max(0.0, ends[0] - ERROR_RATES), min(1.0, ends[1] + ERROR_RATES)


def _divergence(p: float, q: float) -> float:
    """Return the Kullback-Leibler divergence of two coins; infinite if q excludes an outcome of p."""
    return float(scipy.special.rel_entr(p, q) + scipy.special.rel_entr(1.0 - p, 1.0 - q))


def first_half(size: int) -> NDArray[np.bool_]:
    """Return a random half of the canaries, from their number alone.

    The split does not depend on the scores, so a threshold that is chosen on one half is independent of the
    scores of the other half, in any order of the canaries.

    Example:
        >>> int(first_half(6).sum())
        3
    """
    return np.random.default_rng(size).permutation(size) < size // 2


def best_threshold(inside: Array, outside: Array) -> float:
    """Return a threshold, among the scores, at which log(TPR / FPR) is largest with a smoothed FPR.

    Scores above the threshold are "in". Any choice is valid for other scores; this one aims at a large
    refuted epsilon.

    Example:
        >>> best_threshold(np.array([1.0, 2.0, 3.0, 4.0]), np.array([-1.0, 0.0, 1.0, 0.5]))
        1.0
    """
    candidates = np.unique(np.concatenate([inside, outside]))
    above = [
        values.size - np.searchsorted(np.sort(values), candidates, side="right")
        for values in (inside, outside)
    ]
    found, wrong = above[0] / inside.size, above[1] / outside.size
    # one standard deviation towards the safe side, since rare events have few counts
    least = found - np.sqrt(found * (1.0 - found) / inside.size)
    most = wrong + np.sqrt((wrong * (1.0 - wrong) + 1.0 / outside.size) / outside.size)
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.log(np.maximum(least, 0.0) / most)
    return float(candidates[int(np.argmax(np.where(np.isnan(gain), -np.inf, gain)))])
