"""Search for the root of a falling function that is only known in brackets, at a cost for each."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from privcore.params import TOLERANCE

Look = Callable[[float, float], tuple[float, float]]
"""Function that brackets values: place and relative width to bracket; (0, inf) if that fails."""

_COARSE = 0.125
"""Tolerance of the first brackets; narrower ones are computed only near the end of the search."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One bracket in logarithms, those of its ends divided by the target."""

    at: float
    tolerance: float
    low: float
    high: float

    @property
    def x(self) -> float:
        """Logarithm of the place."""
        return math.log(self.at)

    @property
    def middle(self) -> float:
        """Estimate of log(value / target); not finite if an end is 0 or infinite."""
        return 0.5 * (self.low + self.high)

    @property
    def decided(self) -> bool:
        """Whether the target is outside the bracket."""
        return self.low > 0.0 or self.high <= 0.0


Score = Callable[[Trial], float]


@dataclass(kw_only=True)
class BracketSearch:
    """Search in x = log(place) for the root of a falling function that is only known in brackets.

    Every probe is next to the estimated root. Its margin decreases like the square of the distance between
    the known sides, and its bracket is just narrow enough to decide at this margin, so all but the last
    brackets are cheap. If brackets near the root stay too wide to decide, the search looks for the least
    place that is proved to suffice, and then for the largest place that is proved not to suffice.

    Attributes:
        look: Function that brackets values at places of the domain.
        target: Positive value to reach.
        precision: Relative distance of the two sides at which the search ends.
        domain: Least and largest place, positive.
        finest: Relative width of the narrowest bracket that may be computed.
        most: Largest number of brackets; a dozen is typical.
        trials: All brackets so far.
    """

    look: Look
    target: float
    precision: float
    domain: tuple[float, float]
    finest: float = TOLERANCE.lower
    most: int = 80
    trials: list[Trial] = field(default_factory=list)
    widest: float = _COARSE
    gap: float = math.inf
    missed: int = 0

    def run(self) -> tuple[Trial | None, Trial | None]:
        """Search until both sides are within the precision, or until further brackets would not help.

        Returns:
            The least place whose bracket is not above the target, or None, and the largest place whose
            bracket is above the target, or None.
        """
        step: tuple[float, float] | None = (self._rounded(0.0), _COARSE)
        while step is not None and len(self.trials) < self.most:
            self._try(*step)
            step = self._next()
        return self._enough(), self._short()

    def _enough(self) -> Trial | None:
        """Return the least place that is proved to suffice."""
        return min((t for t in self.trials if t.high <= 0.0), key=lambda t: t.x, default=None)

    def _short(self) -> Trial | None:
        """Return the largest place that is proved not to suffice."""
        return max((t for t in self.trials if t.low > 0.0), key=lambda t: t.x, default=None)

    def _try(self, at: float, tolerance: float) -> None:
        """Compute one bracket."""
        lower, upper = self.look(at, tolerance)
        trial = Trial(
            at=at,
            tolerance=tolerance,
            low=_log_ratio(lower, self.target),
            high=_log_ratio(upper, self.target),
        )
        self.trials.append(trial)
        if not trial.decided and not self._stuck(trial):
            self.widest = max(self.finest, 0.5 * tolerance)

    def _next(self) -> tuple[float, float] | None:
        """Return the next place and tolerance; None at the end."""
        enough, short = self._enough(), self._short()
        width = math.log1p(self.precision)
        if enough is None:
            return self._outwards(max(self.trials, key=lambda t: t.x), 1.0)
        if short is None:
            first = min(self.trials, key=lambda t: t.x)
            # The upper end is far above the target, but the lower end is not: further places would not help.
            further = None if first.high > math.log(4.0) else self._outwards(first, -1.0)
            return further or self._sufficient(enough, width)
        if enough.x - short.x <= width:
            return None
        if not any(self._stuck(t) for t in self.trials if short.x < t.x < enough.x):
            return self._between(short, enough, lambda t: t.middle, width)
        # Brackets stay too wide: search for one side, then for the other.
        return self._sufficient(enough, 0.5 * width) or self._insufficient(short, 0.5 * width)

    def _sufficient(self, enough: Trial, width: float) -> tuple[float, float] | None:
        """Return the next probe for the least sufficient place; None at the end."""
        less = [t for t in self.trials if t.x < enough.x]
        if not less:
            return None
        counting = [t for t in less if self._counts(t, width)]
        nearest = max(counting, key=lambda t: t.x) if counting else min(less, key=lambda t: t.x)
        if enough.x - nearest.x <= width:
            return None
        return self._between(nearest, enough, lambda t: t.high, width, 0.5 * width)

    def _insufficient(self, short: Trial, width: float) -> tuple[float, float] | None:
        """Return the next probe for the largest insufficient place; None at the end."""
        more = [t for t in self.trials if t.x > short.x and self._counts(t, width)]
        nearest = min(more, key=lambda t: t.x)
        if nearest.x - short.x <= width:
            return None
        return self._between(short, nearest, lambda t: t.low, width, 0.5 * width)

    def _counts(self, trial: Trial, width: float) -> bool:
        """Return whether, at this width, a narrower bracket at the same place would not help."""
        return trial.decided or trial.tolerance <= max(self.finest, 0.5 * width)

    def _stuck(self, trial: Trial) -> bool:
        """Return whether a bracket contains the target and a narrower bracket would not help."""
        wide = trial.high - trial.low > 3.0 * trial.tolerance
        return not trial.decided and (wide or trial.tolerance <= self.finest)

    def _outwards(self, end: Trial, side: float) -> tuple[float, float] | None:
        """Return the next probe beyond the outermost one; None at the end of the domain."""
        if end.at == self.domain[side > 0.0]:
            return None
        xs = [trial.x for trial in self.trials]
        # Epsilon falls about like 1/sigma for large sigma, and much faster for small sigma.
        most = max(math.log(4.0), 2.0 * (max(xs) - min(xs)), 12.0 * (side > 0.0))
        guess = 1.1 * abs(end.middle) + 0.1 if math.isfinite(end.middle) else math.log(4.0)
        return self._rounded(end.x + side * min(max(guess, math.log(1.3)), most)), self.widest

    def _between(
        self, left: Trial, right: Trial, score: Score, width: float, most: float = _COARSE
    ) -> tuple[float, float] | None:
        """Return the next probe between two places with scores of different signs; None at the end."""
        gap = right.x - left.x
        if gap < self.gap:
            self.missed = self.missed + 1 if gap > 0.75 * self.gap else 0
        self.gap = gap
        root, slope = self._root(left, right, score)
        margin = max(0.4 * width, 0.25 * gap * min(1.0, gap)) * 2.0**self.missed
        middle = 0.5 * (left.x + right.x)
        x = root + margin if right.x - root > root - left.x else root - margin
        if not left.x < x < right.x:
            x = middle
        decisive = 2.0 ** math.floor(math.log2(0.5 * slope * margin))
        tolerance = max(self.finest, min(self.widest, most, decisive))
        for place, fine in ((x, tolerance), (middle, tolerance), (middle, self.finest)):
            at = self._rounded(place)
            if not any(t.at == at and t.tolerance <= fine for t in self.trials):
                return at, fine
        return None

    def _root(self, left: Trial, right: Trial, score: Score) -> tuple[float, float]:
        """Return an estimate of the root of the score, and its rate of decrease there."""
        known = [t for t in self.trials if math.isfinite(score(t))]
        nearest = sorted({t.x: t for t in known}.values(), key=lambda t: abs(score(t)))[:2]
        middle = 0.5 * (left.x + right.x)
        if len(nearest) < 2 or score(nearest[0]) == score(nearest[1]):
            return middle, 1.0
        one, other = nearest
        slope = (score(one) - score(other)) / (other.x - one.x)
        if slope <= 0.0:
            return middle, 1.0
        root = one.x + score(one) / slope
        return (root if left.x < root < right.x else middle), min(max(slope, 0.25), 16.0)

    def _rounded(self, x: float) -> float:
        """Return a place of few digits near exp(x), inside the domain."""
        digits = math.ceil(-math.log10(self.precision)) + 2
        return min(max(float(f"{math.exp(x):.{digits}g}"), self.domain[0]), self.domain[1])


def _log_ratio(x: float, target: float) -> float:
    """Return log(x / target): -infinity for x = 0, and infinity for infinite x."""
    return -math.inf if x == 0.0 else math.inf if x == math.inf else math.log(x) - math.log(target)
