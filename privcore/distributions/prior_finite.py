"""Priors with finitely many values: a point, two points, or the values of a column of a file."""

import hashlib
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from privcore.distributions.columns import read_columns
from privcore.distributions.notation import referenced, spelled
from privcore.distributions.prior import Array, Cells, Prior
from privcore.errors import DomainError
from privcore.numerics.sums import dot

_FEW = 64
"""Number of values up to which sums over all values are as quick as a search."""
_LOSS = 5e-15
"""Largest relative change of w that subtracting it from 1 may cause: half of the error of the weights."""


class FinitePrior(Prior):
    r"""Values $\eta_b$ with weights $w_b$; $\Psi(t)$ sums $w_b |\eta_b - t|$ between t and 1/2.

    Attributes:
        values: The values, rising.
        weights: Their probabilities.
    """

    def __init__(
        self,
        text: str,
        values: Array,
        weights: Array,
        error: float = 1e-14,
        counts: NDArray[np.int64] | None = None,
    ) -> None:
        self._text = text
        self.values = values
        self.weights = weights
        self.error = self.moment_error = error
        self.counts = counts

    @classmethod
    def point(cls, p: float) -> Self:
        """Return the distribution of a constant; raise `DomainError` if it is not a probability."""
        _check(p)
        return cls(f"point({spelled(p)})", np.array([p]), np.array([1.0]))

    @classmethod
    def two_point(cls, a: float, b: float, w: float) -> Self:
        """Return the distribution of a value that is b with probability w, else a.

        The smaller value is named first, unless w is so small that 1 - w would lose it to rounding.
        """
        for x in (a, b, w):
            _check(x)
        if a > b and abs((1.0 - (1.0 - w)) - w) <= _LOSS * w:
            a, b, w = b, a, 1.0 - w
        if a == b or w in (0.0, 1.0):
            return cls.point(a if w == 0.0 else b)
        text = f"two-point({spelled(a)},{spelled(b)},{spelled(w)})"
        if a > b:
            return cls(text, np.array([b, a]), np.array([w, 1.0 - w]))
        return cls(text, np.array([a, b]), np.array([1.0 - w, w]))

    @property
    def text(self) -> str:
        return self._text

    @cached_property
    def mean(self) -> float:
        return float(dot(self.weights, self.values))

    @cached_property
    def label_variance(self) -> float:
        return float(dot(self.weights, self.values * (1.0 - self.values)))

    @cached_property
    def label_variance_square(self) -> float:
        return float(dot(self.weights, (self.values * (1.0 - self.values)) ** 2))

    @property
    def atoms(self) -> tuple[Array, Array]:
        return self.values, self.weights

    @property
    def ends(self) -> tuple[float, float]:
        zero, one = self.values == 0.0, self.values == 1.0
        return float(self.weights[zero].sum()), float(self.weights[one].sum())

    def overturned(self, one: Array, zero: Array) -> Array:
        if self.values.size <= _FEW:
            total = np.zeros(np.broadcast(one, zero).shape)
            for eta, weight in zip(self.values, self.weights, strict=True):
                total += weight * overturned_at(eta, one, zero)
            return total
        pairs = zip(np.ravel(one).tolist(), np.ravel(zero).tolist(), strict=True)
        sums = [float(dot(self.weights, overturned_at(self.values, g1, g0))) for g1, g0 in pairs]
        return np.array(sums).reshape(np.shape(one))

    def overturned_quickly(self, one: Array, zero: Array) -> Array:
        if self.values.size <= _FEW:
            return self.overturned(one, zero)
        total = one + zero
        t = np.divide(zero, total, out=np.full_like(total, 0.5), where=total > 0.0)
        mass, moment = self._sums
        place = np.searchsorted(self.values, t, side="right")
        # On the other side of 1/2 both sums are negative, so the product is positive.
        return np.asarray(np.maximum(0.0, one * moment[place] - zero * mass[place]))

    @property
    def quick_error(self) -> float:
        """Relative error of the weights and of sums over the values."""
        return self.error + self.values.size * 2.0**-52

    @cached_property
    def _sums(self) -> tuple[Array, Array]:
        """Sums of w (1 - eta) and of w eta over the values from each place to 1/2, then negative.

        They are accumulated from 1/2 outwards, so even the smallest sums have a small relative error.
        """
        middle = int(np.searchsorted(self.values, 0.5, side="right"))

        def outwards(terms: Array) -> Array:
            before, after = np.cumsum(terms[:middle][::-1])[::-1], -np.cumsum(terms[middle:])
            return np.concatenate([before, [0.0], after])

        return outwards(self.weights * (1.0 - self.values)), outwards(self.weights * self.values)

    def between(self, lower: float, upper: float) -> float:
        inside = (self.values > lower) & (self.values < upper)
        return float(self.weights[inside].sum())

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        edges = np.cumsum(self.weights)
        places = np.searchsorted(edges, rng.random(shape) * edges[-1], side="right")
        return np.asarray(self.values[np.minimum(places, self.values.size - 1)])

    def draw_rows(self, rng: np.random.Generator, bags: int, members: int) -> Array:
        """Return values of different rows of the file for each bag, uniform over all choices.

        Args:
            rng: Source of randomness.
            bags: Number of independent choices.
            members: Number of rows of each choice, at most that of the file.

        Returns:
            Shape (bags, members), in random order.
        """
        assert self.counts is not None
        ends = np.cumsum(self.counts)
        total = int(ends[-1])
        if total <= 4 * members:
            rows = rng.permuted(np.broadcast_to(np.arange(total), (bags, total)), axis=1)[:, :members]
        else:  # a row that was drawn before is drawn again
            rows = rng.integers(total, size=(bags, members))
            while (again := _repeated(rows)).any():
                rows[again] = rng.integers(total, size=int(again.sum()))
        return np.asarray(self.values[np.searchsorted(ends, rows, side="right")])

    def cells(self, number: int) -> Cells | None:
        if self.values.size > number:
            return None
        return Cells(mass=self.weights, mean=self.values, lower=self.values, upper=self.values)


def overturned_at(eta: float | Array, one: float | Array, zero: float | Array) -> Array:
    r"""Return $(\eta g_1 - (1 - \eta) g_0)_+$, or for $\eta > 1/2$ its mirror image."""
    difference = eta * one - (1.0 - eta) * zero
    return np.asarray(np.maximum(0.0, np.where(np.asarray(eta) <= 0.5, difference, -difference)))


def _repeated(rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return a mask of the entries that occur before them in their line."""
    order = np.argsort(rows, axis=1, kind="stable")
    placed = np.take_along_axis(rows, order, axis=1)
    repeated = np.zeros(rows.shape, dtype=np.bool_)
    np.put_along_axis(repeated, order[:, 1:], placed[:, 1:] == placed[:, :-1], axis=1)
    return repeated


def _check(p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise DomainError(f"Expected probabilities of a prior in [0, 1], got {p:.12g}.")


def fingerprint(path: Path, name: str) -> str:
    """Return the SHA-256 of the values of a column of probabilities.

    Raises:
        DomainError: The file cannot be read or lacks the column, a value is not a probability, or all values
            are 0 or 1: labels, which taken as probabilities would leave nothing to guess.
    """
    values = _values(path, name)
    if ((values == 0.0) | (values == 1.0)).all():
        raise DomainError(
            f"Expected probabilities of label 1 in the column {name} of {path}, got labels, since all values "
            f"are 0 or 1: use their mean, {values.mean():.6g}, or scores of a calibrated model; if every "
            f"label is known for certain, write certain({path},{name})."
        )
    return _sha256(values)


def certain_fingerprint(path: Path, name: str) -> str:
    """Return the SHA-256 of the values of a column, which may be labels; raise as `fingerprint`."""
    return _sha256(_values(path, name))


def column_prior(text: str, inside: str) -> FinitePrior:
    """Return the distribution that gives every row of a column the same probability.

    Args:
        text: Canonical spelling.
        inside: Text in its parentheses: path, name and hash.

    Raises:
        DomainError: As for `fingerprint`, or the values no longer have the hash.
    """
    values = referenced(inside, _values, _sha256)
    starts = np.flatnonzero(np.diff(values, prepend=-1.0))
    counts = np.diff(starts, append=values.size)
    return FinitePrior(text, values[starts], counts / values.size, error=1e-12, counts=counts)


def _sha256(values: Array) -> str:
    """Return the hash of sorted values, which does not depend on the format of the file."""
    return hashlib.sha256(values.astype("<f8").tobytes()).hexdigest()


def _values(path: Path, name: str) -> Array:
    """Return the sorted values of a column, each in [0, 1]."""
    (values,) = read_columns(path, [name], "probabilities")
    if not ((values >= 0.0) & (values <= 1.0)).all():
        row = int(np.argmax((values < 0.0) | (values > 1.0)))
        raise DomainError(
            f"Expected probabilities in the column {name} of {path}, got {values[row]} in row {row + 1}."
        )
    return np.sort(values)
