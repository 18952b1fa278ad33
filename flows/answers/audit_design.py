"""The design of an audit: how its canaries were included, as stated or as a file shows it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcore import DomainError
from privcore.auditing import check_half_included, check_included, check_one_included

Array = NDArray[np.float64]

_CHOICES = (
    "independent (each canary was in or out by its own fair coin), exactly-half (a uniformly random half of "
    "the canaries was in), pairs (one record of each pair was in, by a fair coin) or candidates (one of k "
    "records was in, with --alternatives k)"
)


@dataclass(frozen=True, kw_only=True)
class Design:
    """A design of an audit.

    Attributes:
        word: Its name on the command line.
        alternatives: Number k of alternatives for each canary.
        stated: Whether a user has stated it.
    """

    word: str
    alternatives: int = 2
    stated: bool = True

    @property
    def fields(self) -> dict[str, Any]:
        """Fields of a problem about an audit of this design; candidate records are drawn independently."""
        design = "independent" if self.word == "candidates" else self.word
        return {"alternatives": self.alternatives, "design": design}

    @property
    def candidates(self) -> int:
        """Number of records of each set, one of them in; 0 if canaries are in or out."""
        return self.alternatives if self.word in ("pairs", "candidates") else 0

    @property
    def text(self) -> str:
        """The assumption about the inclusion of canaries, in words."""
        return {
            "independent": "each canary was in or out by its own fair coin",
            "exactly-half": "a uniformly random half of the canaries was in",
            "pairs": "one record of each pair was in, by a fair coin",
            "candidates": f"one of {self.alternatives} records was in for each canary, all equally likely",
        }[self.word]

    def check(self, included: Array) -> None:
        """Raise `DomainError` if inclusion bits contradict the design."""
        checks: dict[str, Callable[[Array], None]] = {
            "independent": check_included,
            "exactly-half": check_half_included,
        }
        checks.get(self.word, partial(check_one_included, candidates=self.alternatives))(included)


INDEPENDENT = Design(word="independent", stated=False)


def design_of(word: str | None, alternatives: int | None) -> Design | None:
    """Return the design that options state, or None if they state none.

    Args:
        word: Name of the design, or None.
        alternatives: Number of alternatives, or None. More than two are candidate records.

    Raises:
        DomainError: The options name no design, or contradict one another.
    """
    if word is None:
        if alternatives is None or alternatives == 2:
            return None
        return Design(word="candidates", alternatives=alternatives)
    if word not in ("independent", "exactly-half", "pairs", "candidates"):
        raise DomainError(f"Expected --design {_CHOICES}, got {word[:60]}.")
    if word == "candidates":
        if alternatives is None:
            raise DomainError("Expected --alternatives with --design candidates, the number of records.")
        return Design(word="pairs" if alternatives == 2 else word, alternatives=alternatives)
    if alternatives not in (None, 2):
        raise DomainError(f"Expected --design candidates with --alternatives {alternatives}, got {word}.")
    return Design(word=word)


def design_in(included: Array) -> Design:
    """Return the design of independent coins for a file, unless its inclusion bits look like another one.

    Raises:
        DomainError: Exactly half of the canaries are included, which every design may explain.
    """
    m, inside = included.size, int(included.sum())
    if 2 * inside != m:
        return INDEPENDENT
    pairs = ", one of each two consecutive rows" if (included[::2] + included[1::2] == 1.0).all() else ""
    raise DomainError(
        f"Expected --design, since exactly half of the {m} canaries are included{pairs}: {_CHOICES}."
    )


def unstated() -> DomainError:
    """Return the error about counts without a design."""
    return DomainError(f"Expected --design with --counts: {_CHOICES}.")
