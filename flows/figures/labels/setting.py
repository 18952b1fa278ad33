"""Settings of a release (mechanism, bag size and epsilon), and simulated releases."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Protocol, Self, cast

import numpy as np
from numpy.typing import NDArray

from flows.figures.labels.theme import power
from privcore import Problem, find, find_problem
from privcore.parameter import Value


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A mechanism with its parameters, without the prior."""

    mechanism: str
    bag_size: int = 1
    label_epsilon: float = math.inf

    @classmethod
    def of(cls, fields: Mapping[str, Value]) -> Self:
        """Return the setting of a problem with these fields."""
        return cls(
            mechanism=str(fields["mechanism"]),
            bag_size=int(fields["bag_size"]),
            label_epsilon=float(fields["label_epsilon"]),
        )

    @property
    def fields(self) -> dict[str, Value]:
        """The parameters as fields of a problem."""
        return asdict(self)

    @property
    def label(self) -> str:
        r"""The parameters in TeX, for a legend.

        Example:
            >>> print(Setting(mechanism="llp-geometric", bag_size=8, label_epsilon=0.5).label)
            $k = 8$, $\varepsilon = 0.5$
        """
        bags = [] if self.mechanism == "rr" else [f"$k = {self.bag_size}$"]
        noise = [rf"$\varepsilon = {power(self.label_epsilon)}$"] if math.isfinite(self.label_epsilon) else []
        return ", ".join([*bags, *noise])


class SimulatedReleases(Protocol):
    """One member of each of many simulated bags; of all numbers in figures, only these are not stored."""

    etas: NDArray[np.float64]
    posteriors: NDArray[np.float64]
    advantages: NDArray[np.float64]


class _Sampling(Protocol):
    def releases(self, problem: Problem, number: int) -> SimulatedReleases: ...


def releases(setting: Setting, prior: str, number: int) -> SimulatedReleases:
    """Return simulated releases of a mechanism over a prior; equal arguments give equal bits.

    Args:
        setting: The mechanism with its parameters.
        prior: Text of the prior.
        number: Number of releases.
    """
    problem = find_problem("label-advantage").from_fields({"prior": prior, **setting.fields})
    # Topics are reached only through the registry; since releases are not answers, the method has a function
    # for them.
    sampling = cast(_Sampling, find("labels.sampling")())
    return sampling.releases(problem, number)
