"""Record distributions with infinitely many atoms, geometric and Zipf, or with a part without atoms."""

import math

import numpy as np

from privcore.distributions.notation import spelled
from privcore.distributions.record import Array, Atoms, RecordDistribution
from privcore.numerics.rounding import RECORD_ATOMS

_BERNOULLI = tuple(
    b / math.factorial(2 * i)
    for i, b in enumerate((1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6), start=1)
)


def hurwitz(s: float, a: Array) -> Array:
    r"""Return $\zeta(s, a) = \sum_{k \ge 0} (a + k)^{-s}$.

    The first terms are summed. The rest, from A on, is $A^{1-s} / (s - 1) + A^{-s} / 2$ plus corrections with
    the Bernoulli numbers. The terms are completely monotone functions of k, so the error is below the first
    omitted correction, which for $A \ge 2 s + 10$ is below 1e-16 times the whole.

    Args:
        s: Exponent, > 0; for s <= 1 the sum is infinite.
        a: First base, > 0.

    Returns:
        Values with a relative error of at most 2e-15 if all terms are normal doubles; infinity for s <= 1.

    Example:
        >>> hurwitz(2.0, np.array([1.0])).round(12).tolist(), round(math.pi**2 / 6.0, 12)
        ([1.644934066848], 1.644934066848)
    """
    a = np.asarray(a, dtype=np.float64)
    if s <= 1.0:
        return np.full_like(a, math.inf)
    with np.errstate(under="ignore"):
        first = max(0, math.ceil(2.0 * s + 10.0 - float(a.min())))
        total = np.zeros_like(a)
        for k in range(first):
            total += (a + k) ** -s
        base = a + first
        power = base**-s
        total += power * (base / (s - 1.0) + 0.5)
        factor = s / base
        for i, b in enumerate(_BERNOULLI):
            total += power * (b * factor)
            factor = factor * ((s + 2 * i + 1) * (s + 2 * i + 2) / base**2)
    return np.asarray(total)


class Infinite(RecordDistribution):
    """Base of the distributions with infinitely many atoms, all of different probability."""

    @property
    def finite(self) -> bool:
        return False

    def atoms(self, start: int, stop: int) -> Atoms:
        p, q = self.at(np.arange(start + 1.0, stop + 1.0))
        return Atoms(p, q, np.broadcast_to(1.0, p.shape))


class Geometric(Infinite):
    r"""Distribution $p_k = (1 - r) r^{k-1}$; $\sum_{k > T} p_k^a = (1 - r)^a r^{a T} / (1 - r^a)$."""

    error = 1e-14

    def __init__(self, r: float) -> None:
        self.r = r

    @property
    def text(self) -> str:
        return f"geometric({spelled(self.r)})"

    def reach(self, least: float) -> float:
        places = 1.0 + (math.log(least) - math.log1p(-self.r)) / math.log(self.r)
        return float(max(0, math.ceil(places + 1e-6)))

    def at(self, places: Array) -> tuple[Array, Array]:
        with np.errstate(under="ignore"):
            p = (1.0 - self.r) * self.r ** (places - 1.0)
        return p, np.where(places == 1.0, self.r, 1.0 - p)

    def tail(self, power: float, after: Array) -> Array:
        with np.errstate(under="ignore"):
            whole = (1.0 - self.r) ** power / -math.expm1(power * math.log(self.r))
            return np.asarray(whole * (self.r**after) ** power)


class Zipf(Infinite):
    r"""Distribution $p_k = k^{-s} / \zeta(s)$, s > 1."""

    error = 1e-14

    def __init__(self, s: float) -> None:
        self.s = s
        self.total = float(hurwitz(s, np.ones(1))[0])
        self.other = float(hurwitz(s, np.full(1, 2.0))[0]) / self.total

    @property
    def text(self) -> str:
        return f"zipf({spelled(self.s)})"

    def reach(self, least: float) -> float:
        places = (least * self.total) ** (-1.0 / self.s)
        return float(math.ceil(places * (1.0 + RECORD_ATOMS)))

    def at(self, places: Array) -> tuple[Array, Array]:
        with np.errstate(under="ignore"):
            p = places**-self.s / self.total
        return p, np.where(places == 1.0, self.other, 1.0 - p)

    def tail(self, power: float, after: Array) -> Array:
        with np.errstate(under="ignore"):
            return np.asarray(hurwitz(power * self.s, after + 1.0) / self.total**power)


class Mixed(RecordDistribution):
    """Mixture: a draw from a part without atoms with probability w, else from a distribution of atoms."""

    def __init__(self, w: float, law: RecordDistribution) -> None:
        self.continuous, self.law = w, law
        self.error = law.error + 1e-15

    @property
    def text(self) -> str:
        return f"mixed({spelled(self.continuous)},{self.law.text})"

    @property
    def finite(self) -> bool:
        return self.law.finite

    def reach(self, least: float) -> float:
        return self.law.reach(least / (1.0 - self.continuous))

    def atoms(self, start: int, stop: int) -> Atoms:
        atoms = self.law.atoms(start, stop)
        return Atoms(*self._scaled(atoms.p, atoms.q), atoms.number)

    def at(self, places: Array) -> tuple[Array, Array]:
        return self._scaled(*self.law.at(places))

    def tail(self, power: float, after: Array) -> Array:
        return np.asarray(self.law.tail(power, after) * (1.0 - self.continuous) ** power)

    def _scaled(self, p: Array, q: Array) -> tuple[Array, Array]:
        return (1.0 - self.continuous) * p, self.continuous + (1.0 - self.continuous) * q
