"""Simulated releases for dots and for empirical distributions: the only numbers that no store holds."""

from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from flows.figures.labels.setting import Setting
from privcore import Problem, find, find_problem


class Releases(Protocol):
    """What is used of simulated releases: one member of each of many bags."""

    etas: NDArray[np.float64]
    posteriors: NDArray[np.float64]
    advantages: NDArray[np.float64]


class _Simulates(Protocol):
    def releases(self, problem: Problem, number: int) -> Releases: ...


def releases(setting: Setting, prior: str, number: int) -> Releases:
    """Return simulated releases of a mechanism over a prior; equal arguments give equal bits.

    Args:
        setting: The mechanism with its parameters.
        prior: Spelling of the prior.
        number: How many.
    """
    problem = find_problem("label-advantage").from_fields({"prior": prior, **setting.fields})
    # A topic is seen through the registry alone; releases are no answers, so its method has one of its own.
    sampling = cast(_Simulates, find("labels.sampling")())
    return sampling.releases(problem, number)
