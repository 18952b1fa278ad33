"""Laws with a part without atoms: a record that has a continuous value with some probability."""

import numpy as np

from privcore.distributions.notation import spelled
from privcore.distributions.record import Array, Atoms, Law


class Mixed(Law):
    """With probability w a value that nothing else has, else drawn from a law of atoms."""

    def __init__(self, w: float, law: Law) -> None:
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
