"""Laws with infinitely many atoms: geometric and Zipf."""

import math

import numpy as np

from privcore.distributions.notation import spelled
from privcore.distributions.record import Array, Atoms, Law
from privcore.distributions.record_zeta import hurwitz


class Infinite(Law):
    """Base of the laws with infinitely many atoms, all of different probability."""

    @property
    def finite(self) -> bool:
        return False

    def atoms(self, start: int, stop: int) -> Atoms:
        p, q = self.at(np.arange(start + 1.0, stop + 1.0))
        return Atoms(p, q, np.broadcast_to(1.0, p.shape))


class Geometric(Infinite):
    r"""Law $p_k = (1 - r) r^{k-1}$; $\sum_{k > T} p_k^a = (1 - r)^a r^{a T} / (1 - r^a)$."""

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
    r"""Law $p_k = k^{-s} / \zeta(s)$, s > 1."""

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
        return float(math.ceil(places * (1.0 + 1e-12)))

    def at(self, places: Array) -> tuple[Array, Array]:
        with np.errstate(under="ignore"):
            p = places**-self.s / self.total
        return p, np.where(places == 1.0, self.other, 1.0 - p)

    def tail(self, power: float, after: Array) -> Array:
        with np.errstate(under="ignore"):
            return np.asarray(hurwitz(power * self.s, after + 1.0) / self.total**power)
