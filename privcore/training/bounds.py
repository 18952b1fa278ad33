"""Ratios that bound a training run from above and from below, and their composition."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product as combinations_of
from itertools import zip_longest
from typing import Any

from privcore.likelihood_ratio.ratios import Ratio, product, repeated

MOST_COMBINATIONS = 4
"""Largest number of products of the ratios of different phases that are tried for one end."""
SLOW = 1000
"""Number of combinations from which a ratio is slow: it is tried where the others leave a wide bracket."""
MANY = 16
"""Number of phases from which only the first ratios of all phases are multiplied."""


@dataclass(frozen=True)
class Above:
    """A ratio that dominates every pair within a total variation distance.

    Attributes:
        ratio: The ratio.
        moved: Each of P and Q lies within this total variation distance of a pair that the ratio dominates.
        meant: Epsilon for which this approximation was chosen, if it depends on epsilon; it is not tried
            where another bound is below half of it.
    """

    ratio: Ratio
    moved: float = 0.0
    meant: float = 0.0


@dataclass(frozen=True)
class Bounds:
    """Ratios that bound a part of a run.

    Attributes:
        above: Each dominates the part; the best one counts.
        below: Each is the ratio of a data set, or of a post-processing of its outputs.
    """

    above: tuple[Above, ...]
    below: tuple[Ratio, ...]

    @classmethod
    def exact(cls, ratio: Ratio) -> "Bounds":
        """Return the bounds of a part with a worst pair for all thresholds."""
        return cls(above=(Above(ratio),), below=(ratio,))

    def repeated(self, times: int) -> "Bounds":
        """Return the bounds of independent repetitions."""
        above = (
            replace(each, ratio=repeated(each.ratio, times), moved=min(1.0, times * each.moved))
            for each in self.above
        )
        return Bounds(tuple(above), tuple(repeated(ratio, times) for ratio in self.below))

    @property
    def stages(self) -> tuple["Bounds", ...]:
        """The bounds in the order in which they are tried: all quick ratios, then pairs of slow ones."""
        quick = Bounds(
            tuple(each for each in self.above if each.ratio.combinations < SLOW),
            tuple(ratio for ratio in self.below if ratio.combinations < SLOW),
        )
        above = [(each,) for each in self.above if each not in quick.above]
        below = [(ratio,) for ratio in self.below if ratio not in quick.below]
        pairs = zip_longest(above, below, fillvalue=())
        return (*((quick,) if quick.above or quick.below else ()), *(Bounds(*pair) for pair in pairs))

    @property
    def tight(self) -> bool:
        """Whether one ratio is both the worst pair and the ratio of a data set."""
        return len(self.above) == 1 and self.above[0].moved == 0.0 and self.below == (self.above[0].ratio,)


def composed(parts: Sequence[Bounds]) -> Bounds:
    """Return the bounds of independent parts; the ratios of all parts are multiplied.

    If parts have several ratios, the first products are formed of the first ratios, then of the second ones,
    and so on, and then of all others, up to `MOST_COMBINATIONS`.
    """
    if len(parts) == 1:
        return parts[0]
    above = [
        Above(
            product(tuple(each.ratio for each in one)),
            moved=sum(each.moved for each in one),
            meant=max(each.meant for each in one),
        )
        for one in _chosen([part.above for part in parts])
    ]
    below = [product(one) for one in _chosen([part.below for part in parts])]
    return Bounds(above=tuple(dict.fromkeys(above)), below=tuple(dict.fromkeys(below)))


def _chosen(options: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return products of the options: of the k-th ones for every k, then of others."""
    if len(options) > MANY:
        return [tuple(each[0] for each in options)]
    most = max(len(each) for each in options)
    chosen = [tuple(each[min(k, len(each) - 1)] for each in options) for k in range(most)]
    for other in combinations_of(*options):
        if len(chosen) >= MOST_COMBINATIONS:
            break
        if other not in chosen:
            chosen.append(other)
    return chosen[: max(MOST_COMBINATIONS, most)]
