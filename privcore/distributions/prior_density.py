"""Priors with a density: beta, uniform, logit-normal; integrals over panels of Gauss-Legendre nodes."""

import math
from abc import abstractmethod
from functools import cached_property

import numpy as np
import scipy

from privcore.distributions.notation import spelled
from privcore.distributions.prior import Array, Cells, Prior
from privcore.errors import DomainError
from privcore.numerics.compiled import compiled
from privcore.numerics.sums import dot

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_TABLE = 1e-6
"""Relative error, at the middles of its intervals, at which the table of quick values is fine enough."""
_LARGEST_TABLE = 2**17
_PROBED = 2**14
"""Size of a table from which its error foretells that of the largest table."""
_LEAST = math.log(1e-250)
"""Logarithms of smaller masses may have any relative error."""
_DISTANCES = 1e-8
"""Relative error at which a table of distances is fine enough."""


class Density(Prior):
    r"""Distribution with the density f of $z = \ln(\eta / (1 - \eta))$, analytic and without singularities.

    With $z_0 = \ln(g_0 / g_1) < 0$ the overturned mass of an output is
    $g_1 \int_{z_0}^0 \sigma(z) (1 - e^{z_0 - z}) f(z) dz$, an integral of a positive function; $z_0 > 0$ is
    its mirror image. Integrals over whole panels are computed once, and the panel of $z_0$ each time.
    """

    error = 1e-10

    @abstractmethod
    def log_density(self, z: Array) -> Array:
        """Return ln f(z)."""

    @property
    @abstractmethod
    def panel(self) -> float:
        """Width of a panel; over a panel, ln f changes by at most 16 if f is not negligible."""

    @property
    @abstractmethod
    def reach(self) -> tuple[float, float]:
        """Range of z outside which nothing contributes to an integral in double precision."""

    @cached_property
    def _sides(self) -> tuple["_Side", "_Side"]:
        low, high = self.reach
        return _Side(self, 1.0, max(0.0, -low)), _Side(self, -1.0, max(0.0, high))

    def overturned(self, one: Array, zero: Array) -> Array:
        one, zero = np.broadcast_arrays(np.asarray(one, dtype=float), np.asarray(zero, dtype=float))
        with np.errstate(divide="ignore", invalid="ignore"):
            distance = np.abs(np.log(one) - np.log(zero))
        total = np.zeros(one.shape)
        for side, more, less in zip(self._sides, (one, zero), (zero, one), strict=True):
            where = more > less
            total[where] = more[where] * side.integral(distance[where])
        return total

    def overturned_quickly(self, one: Array, zero: Array) -> Array:
        if self._table[1] <= _TABLE:
            return _look_up(one, zero, self._table[0])
        return _at_distances(one, zero, *(table for table, _ in self._distances))

    @property
    def quick_error(self) -> float:
        """Relative error of the table of ratios, or of the tables of distances if that is too coarse."""
        if self._table[1] <= _TABLE:
            return self._table[1]
        return max(error for _, error in self._distances)

    @cached_property
    def _distances(self) -> tuple[tuple[Array, float], tuple[Array, float]]:
        """Tables of both sides, for priors whose mass is so near 0 or 1 that an even grid of t misses it."""
        one, other = self._sides
        return one.table(), other.table()

    @cached_property
    def _table(self) -> tuple[Array, float]:
        r"""Values of $\Psi(t) / (1/2 - t)^2$ on an even grid, and the relative error of interpolation."""
        size = 2**10
        table = self._curvature(np.linspace(0.0, 1.0, size + 1))
        while True:
            middles = self._curvature((np.arange(size) + 0.5) / size)
            linear = 0.5 * (table[1:] + table[:-1])
            counts = np.maximum(linear, middles) > 1e-250
            wrong = (np.abs(linear - middles) / np.maximum(middles, 1e-300))[counts].max(initial=0.0)
            finer = np.empty(2 * size + 1)
            finer[::2], finer[1::2] = table, middles
            table, size = finer, 2 * size
            # The error is of second order, so the finer grid has about a quarter of it.
            hopeless = size >= _PROBED and wrong * (size / _LARGEST_TABLE) ** 2 > 4.0 * _TABLE
            if wrong <= _TABLE or size >= _LARGEST_TABLE or hopeless:
                return table, max(_TABLE, float(wrong))

    def _curvature(self, t: Array) -> Array:
        curvature = np.full(t.shape, 2.0 * float(np.exp(self.log_density(np.zeros(1)))[0]))
        away = np.abs(t - 0.5) > 1e-9
        curvature[away] = self.overturned(1.0 - t[away], t[away]) / (0.5 - t[away]) ** 2
        return curvature

    def mean_of(self, function: Array) -> float:
        """Return the mean of a function of eta, given its values at `nodes`."""
        return float(dot(function, self._weights))

    @cached_property
    def nodes(self) -> Array:
        """Values of z at which integrands are evaluated."""
        return np.concatenate([-self._sides[0].nodes.ravel(), self._sides[1].nodes.ravel()])

    @cached_property
    def _weights(self) -> Array:
        return np.concatenate([side.weights.ravel() for side in self._sides])


class _Side:
    """Integrals over z < 0, or over the mirror image of z > 0, as functions of the distance from 0.

    Attributes:
        nodes: Distances from 0, one row per panel, from the nearest panel to the farthest.
        weights: Weights of the nodes times the density.
    """

    def __init__(self, prior: Density, sign: float, length: float) -> None:
        self.prior, self.sign = prior, sign
        self.panels = max(1, int(np.ceil(length / prior.panel)))
        self.width = max(length, 1e-3) / self.panels
        starts = self.width * np.arange(self.panels)[:, None]
        self.nodes = starts + 0.5 * self.width * (1.0 + _NODES)
        self.weights = 0.5 * self.width * _WEIGHTS * self._density(self.nodes)
        # sigma(z) f and sigma(-z) f over the panels between 0 and each edge
        self.ones = np.concatenate(
            [[0.0], np.cumsum((scipy.special.expit(-self.nodes) * self.weights).sum(axis=1))]
        )
        self.zeros = np.concatenate(
            [[0.0], np.cumsum((scipy.special.expit(self.nodes) * self.weights).sum(axis=1))]
        )

    def _density(self, distance: Array) -> Array:
        return np.exp(self.prior.log_density(-self.sign * distance))

    def integral(self, distance: Array) -> Array:
        r"""Return $\int_0^d \sigma(-x) (1 - e^{x - d}) f(x) dx$ for distances d, infinity included."""
        end = np.minimum(distance, self.width * self.panels)
        # The panel of the end and the panel before it are integrated again; in the others nothing cancels.
        whole = np.maximum(0, np.minimum((end / self.width).astype(int), self.panels) - 1)
        fall = np.exp(-distance)
        total = self.ones[whole] - fall * self.zeros[whole]
        start = self.width * whole
        for piece in range(2):
            left = start + 0.5 * (end - start) * piece
            half = 0.25 * (end - start)
            x = left[..., None] + half[..., None] * (1.0 + _NODES)
            gain = -np.expm1(np.minimum(0.0, x - distance[..., None]))
            total += half * dot(scipy.special.expit(-x) * gain * self._density(x), _WEIGHTS)
        return np.asarray(total)

    def table(self) -> tuple[Array, float]:
        r"""Return a table of the integral on an even grid of distances, and the relative error between them.

        Its first entries are the length of the grid, and the integrals of $\sigma(-x) f$ and $\sigma(x) f$
        over all x, which give the integral beyond the grid; then it has the logarithms of the integral over
        $(1 - e^{-d})^2$.
        """
        length = self.width * self.panels
        size = 2**10
        while True:
            fine = self._logarithm(np.linspace(0.0, length, 2 * size + 1))
            even, middles = fine[::2], fine[1:-2:2]
            quadratic = 0.125 * (3.0 * even[:-2] + 6.0 * even[1:-1] - even[2:])
            counts = np.maximum(quadratic, middles) > _LEAST
            wrong = float(np.abs(np.expm1(quadratic - middles))[counts].max(initial=0.0))
            size *= 2
            if wrong <= _DISTANCES or size >= _LARGEST_TABLE:
                edges = np.array([length, self.ones[-1], self.zeros[-1]])
                return np.concatenate([edges, fine]), max(_DISTANCES, wrong)

    def _logarithm(self, distance: Array) -> Array:
        values = self.prior.log_density(np.zeros(distance.shape)) - math.log(4.0)  # the limit at 0
        away = distance > 0.0
        with np.errstate(divide="ignore"):
            values[away] = np.log(self.integral(distance[away])) - 2.0 * np.log(-np.expm1(-distance[away]))
        return np.maximum(values, 2.0 * _LEAST)


@compiled()
def _interpolate(one: Array, zero: Array, table: Array, out: Array) -> None:
    size = table.size - 1
    for i in range(one.size):
        total = one[i] + zero[i]
        if total > 0.0:
            x = zero[i] / total * size
            place = min(int(x), size - 1)
            curvature = table[place] + (x - place) * (table[place + 1] - table[place])
            difference = one[i] - zero[i]
            out[i] = difference * difference / (4.0 * total) * curvature
        else:
            out[i] = 0.0


def _look_up(one: Array, zero: Array, table: Array) -> Array:
    """Return the overturned masses by linear interpolation."""
    one, zero = np.broadcast_arrays(one, zero)
    out = np.empty(one.shape)
    _interpolate(
        np.ascontiguousarray(one).ravel(), np.ascontiguousarray(zero).ravel(), table, out.reshape(-1)
    )
    return out


@compiled()
def _interpolate_distances(one: Array, zero: Array, left: Array, right: Array, out: Array) -> None:
    for i in range(one.size):
        more, less, table = one[i], zero[i], left
        if more < less:
            more, less, table = less, more, right
        out[i] = 0.0
        if more == less:
            continue
        distance = math.log1p((more - less) / less) if less > 0.0 else math.inf
        if distance >= table[0]:
            out[i] = more * max(0.0, table[1] - math.exp(-distance) * table[2])
            continue
        x = distance / table[0] * (table.size - 4)
        place = min(int(x), table.size - 6)
        u, first, second, third = x - place, table[place + 3], table[place + 4], table[place + 5]
        value = first + u * (second - first) + 0.5 * u * (u - 1.0) * (third - 2.0 * second + first)
        gain = math.expm1(-distance)
        out[i] = more * gain * gain * math.exp(value)


def _at_distances(one: Array, zero: Array, left: Array, right: Array) -> Array:
    """Return the overturned masses by quadratic interpolation of logarithms."""
    one, zero = np.broadcast_arrays(one, zero)
    out = np.empty(one.shape)
    _interpolate_distances(
        np.ascontiguousarray(one).ravel(), np.ascontiguousarray(zero).ravel(), left, right, out.reshape(-1)
    )
    return out


_LEAST_PARAMETER, _MOST = 0.05, 1000.0


class Beta(Density):
    r"""Beta(a, b) distribution: $\ln f(z) = a \ln \sigma(z) + b \ln \sigma(-z) - \ln B(a, b)$."""

    def __init__(self, a: float, b: float) -> None:
        for x in (a, b):
            if not _LEAST_PARAMETER <= x <= _MOST:
                raise DomainError(
                    f"Expected a, b of beta(a,b) in [{_LEAST_PARAMETER:g}, {_MOST:g}], got {x:.12g}."
                )
        self.a, self.b = a, b

    @property
    def text(self) -> str:
        return "uniform" if self.a == self.b == 1.0 else f"beta({spelled(self.a)},{spelled(self.b)})"

    @property
    def mean(self) -> float:
        return self.a / (self.a + self.b)

    @property
    def label_variance(self) -> float:
        a, b = self.a, self.b
        return a * b / ((a + b) * (a + b + 1.0))

    @property
    def label_variance_square(self) -> float:
        a, b = self.a, self.b
        total = a + b
        return a * (a + 1.0) * b * (b + 1.0) / (total * (total + 1.0) * (total + 2.0) * (total + 3.0))

    def log_density(self, z: Array) -> Array:
        return np.asarray(
            self.a * scipy.special.log_expit(z)
            + self.b * scipy.special.log_expit(-z)
            - scipy.special.betaln(self.a, self.b)
        )

    @property
    def panel(self) -> float:
        return float(min(0.5, 4.0 / np.sqrt(self.a + self.b), 16.0 / max(self.a, self.b)))

    @property
    def reach(self) -> tuple[float, float]:
        # Besides the density, integrands have the factor eta on the left and 1 - eta on the right.
        return -60.0, 60.0

    def between(self, lower: float, upper: float) -> float:
        lower, upper = min(max(lower, 0.0), 1.0), min(max(upper, 0.0), 1.0)
        if lower >= upper:
            return 0.0
        if lower > self.mean:  # the smaller tail, so that nothing cancels
            return float(
                scipy.special.betaincc(self.a, self.b, lower) - scipy.special.betaincc(self.a, self.b, upper)
            )
        return float(
            scipy.special.betainc(self.a, self.b, upper) - scipy.special.betainc(self.a, self.b, lower)
        )

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        return rng.beta(self.a, self.b, shape)

    def cells(self, number: int) -> Cells:
        # Cells of equal probability under the normalised cube root of the density minimise the error.
        a, b = 1.0 + (self.a - 1.0) / 3.0, 1.0 + (self.b - 1.0) / 3.0
        edges = scipy.special.betaincinv(a, b, np.linspace(0.0, 1.0, number + 1))
        mass = self._differences(self.a, self.b, edges)
        first = self.mean * self._differences(self.a + 1.0, self.b, edges)
        keep = mass > 0.0
        mean = np.clip(first[keep] / mass[keep], edges[:-1][keep], edges[1:][keep])
        return Cells(mass=mass[keep], mean=mean, lower=edges[:-1][keep], upper=edges[1:][keep])

    @staticmethod
    def _differences(a: float, b: float, edges: Array) -> Array:
        """Return the probabilities of Beta(a, b) between neighbouring edges."""
        below, above = (
            np.diff(scipy.special.betainc(a, b, edges)),
            -np.diff(scipy.special.betaincc(a, b, edges)),
        )
        return np.asarray(np.where(edges[1:] <= a / (a + b), below, above))


class Uniform(Prior):
    r"""Uniform distribution; $\Psi(t) = (1/2 - t)^2 / 2$."""

    error = 1e-15

    @property
    def text(self) -> str:
        return "uniform"

    @property
    def mean(self) -> float:
        return 0.5

    @property
    def label_variance(self) -> float:
        return 1.0 / 6.0

    @property
    def label_variance_square(self) -> float:
        return 1.0 / 30.0

    def overturned(self, one: Array, zero: Array) -> Array:
        total = one + zero
        return np.divide((one - zero) ** 2, 8.0 * total, out=np.zeros_like(total), where=total > 0.0)

    def between(self, lower: float, upper: float) -> float:
        return max(0.0, min(upper, 1.0) - max(lower, 0.0))

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        return rng.random(shape)

    def cells(self, number: int) -> Cells:
        edges = np.linspace(0.0, 1.0, number + 1)
        return Cells(
            mass=np.diff(edges), mean=0.5 * (edges[1:] + edges[:-1]), lower=edges[:-1], upper=edges[1:]
        )


class LogitNormal(Density):
    """Distribution of sigma(m + s g) for standard Gaussian g: a logistic model with Gaussian features."""

    moment_error = 1e-12

    def __init__(self, m: float, s: float) -> None:
        if not -30.0 <= m <= 30.0:
            raise DomainError(f"Expected m of logit-normal(m,s) in [-30, 30], got {m:.12g}.")
        if not 0.05 <= s <= 10.0:
            raise DomainError(f"Expected s of logit-normal(m,s) in [0.05, 10], got {s:.12g}.")
        self.m, self.s = m, s

    @property
    def text(self) -> str:
        return f"logit-normal({spelled(self.m)},{spelled(self.s)})"

    @cached_property
    def mean(self) -> float:
        return self.mean_of(scipy.special.expit(self.nodes))

    @cached_property
    def label_variance(self) -> float:
        return self.mean_of(scipy.special.expit(self.nodes) * scipy.special.expit(-self.nodes))

    @cached_property
    def label_variance_square(self) -> float:
        return self.mean_of((scipy.special.expit(self.nodes) * scipy.special.expit(-self.nodes)) ** 2)

    def log_density(self, z: Array) -> Array:
        return np.asarray(-0.5 * ((z - self.m) / self.s) ** 2 - math.log(self.s * math.sqrt(2.0 * math.pi)))

    @property
    def panel(self) -> float:
        return min(0.5, 0.4 * self.s)

    @property
    def reach(self) -> tuple[float, float]:
        # At a distance of 39 s from m, the density is below 1e-320 times its largest value.
        return min(self.m - 39.0 * self.s, 0.0), max(self.m + 39.0 * self.s, 0.0)

    def between(self, lower: float, upper: float) -> float:
        if lower >= upper:
            return 0.0
        a, b = ((float(scipy.special.logit(min(max(x, 0.0), 1.0))) - self.m) / self.s for x in (lower, upper))
        return (
            float(scipy.special.ndtr(b) - scipy.special.ndtr(a))
            if a < 0.0
            else float(scipy.special.ndtr(-a) - scipy.special.ndtr(-b))
        )

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        return np.asarray(scipy.special.expit(self.m + self.s * rng.standard_normal(shape)))

    def cells(self, number: int) -> None:
        return None
