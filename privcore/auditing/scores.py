"""From the scores of canaries to guesses of their inclusion, and how many of these are correct."""

import hashlib
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from privcore.errors import DomainError

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

_RARE = 1e-9
"""A share of included canaries that is less probable than this did not come from fair coins."""


@dataclass(frozen=True, kw_only=True)
class Guesses:
    """Which canaries are guessed to be in, and which to be out; about the others there is no guess."""

    inside: Indices
    outside: Indices

    def correct(self, included: Array) -> int:
        """Return how many guesses are correct, for the inclusion bits of all canaries."""
        return int(included[self.inside].sum()) + self.outside.size - int(included[self.outside].sum())


def guess(scores: Array, guesses: int, *, one_sided: bool = False) -> Guesses:
    """Return guesses about the canaries with the highest and the lowest scores.

    The half with the highest scores is guessed to be in, that with the lowest to be out. Ties are broken by a
    permutation that is seeded with the SHA-256 of the scores: equal files get equal guesses, and guesses
    depend on nothing but the scores, which is what the theorems ask for.

    Args:
        scores: Score of every canary that was randomised, higher for those more likely in, without NaN.
        guesses: Number c' of guesses, fixed before the scores were seen; even unless one-sided.
        one_sided: Guess the highest scores to be in, and nothing to be out.

    Raises:
        DomainError: The number of guesses is odd or too large, or a score is NaN.

    Example:
        >>> made = guess(np.array([0.3, 2.0, -1.0, 0.1]), 2)
        >>> made.inside.tolist(), made.outside.tolist()
        ([1], [2])
    """
    if np.isnan(scores).any():
        raise DomainError(
            f"Expected scores without NaN, got NaN in row {int(np.argmax(np.isnan(scores))) + 1}."
        )
    if guesses > scores.size:
        raise DomainError(f"Expected guesses <= canaries, got guesses={guesses}, canaries={scores.size}.")
    if guesses % 2 and not one_sided:
        raise DomainError(f"Expected an even number of guesses, half in and half out, got {guesses}.")
    scores = scores + 0.0  # no two zeros
    order = np.lexsort((_generator(scores, "ties").permutation(scores.size), scores))
    out = 0 if one_sided else guesses // 2
    return Guesses(inside=order[scores.size - guesses + out :], outside=order[:out])


def check_included(included: Array) -> None:
    """Raise `DomainError` where inclusion bits are not 0 and 1, or plainly not those of fair coins.

    The theorems are about canaries that are in with probability 1/2 each, independently. With other
    probabilities guesses are correct without any leak.
    """
    wrong = (included != 0.0) & (included != 1.0)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DomainError(f"Expected inclusion bits 0 or 1, got {included[row]:g} in row {row + 1}.")
    m, inside = included.size, int(included.sum())
    more = max(inside, m - inside)
    if 2.0 * float(scipy.special.betainc(more, m - more + 1.0, 0.5)) < _RARE:
        raise DomainError(
            f"Expected canaries that are included with probability 1/2 each, got {inside} of {m} included."
        )


def correct_if_shuffled(scores: Array, included: Array, guesses: Guesses, repetitions: int) -> Indices:
    """Return how many of these guesses are correct after the inclusion bits are shuffled, many times.

    Shuffled bits know nothing of the scores: an audit at confidence q should refute privacy in no more than
    about a share of 1 - q of the repetitions.

    Args:
        scores: The scores, which seed the permutations with their SHA-256.
        included: Inclusion bits, 0 or 1.
        guesses: The guesses.
        repetitions: Number of permutations.

    Returns:
        Correct guesses, shape (repetitions,).
    """
    rng = _generator(scores, "shuffles")
    return np.array([guesses.correct(rng.permutation(included)) for _ in range(repetitions)], dtype=np.int64)


def _generator(scores: Array, purpose: str) -> np.random.Generator:
    """Return random numbers that are a function of the scores, independent for every purpose."""
    seed = hashlib.sha256(purpose.encode() + np.ascontiguousarray(scores, dtype="<f8").tobytes()).digest()
    return np.random.default_rng(int.from_bytes(seed, "little"))
