"""What a release reveals about one bag whose etas are known: posterior, advantage, several classes."""

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from privcore.distributions.prior_notation import class_rows, probabilities
from privcore.errors import DomainError
from privcore.labels import params as label_params
from privcore.labels.problems import ReleaseProblem, check_mechanism
from privcore.problem import Monotone, Trend

_SUM_OF_CLASSES = ("llp",)
_LESS_NOISE = MappingProxyType(
    {
        "label_epsilon": Monotone(
            trend=Trend.INCREASING,
            proof="The release at a smaller epsilon is a randomisation of that at a larger one, for all x.",
        )
    }
)


@dataclass(frozen=True, kw_only=True)
class BagProblem(ReleaseProblem):
    """Base of the questions about one bag, which for randomized response is a single example."""

    mechanism: Annotated[str, label_params.MECHANISM]
    bag: Annotated[str, label_params.BAG]
    label_epsilon: Annotated[float, label_params.LABEL_EPSILON] = math.inf

    @property
    def etas(self) -> NDArray[np.float64]:
        """Probabilities of label 1 of the examples in the bag."""
        return np.array(probabilities(self.bag))

    def check(self) -> None:
        """Refuse a mechanism with a bag or a noise that it does not know."""
        check_mechanism(self.mechanism, self.etas.size, self.label_epsilon)


@dataclass(frozen=True, kw_only=True)
class BagPosterior(BagProblem):
    """Probability that the label of one example of the bag is 1, given what was released."""

    name = "label-posterior"
    asks = "posterior"
    largest = 1.0
    monotone = MappingProxyType(
        {
            "released": Monotone(
                trend=Trend.INCREASING,
                proof="A sum of independent labels is log-concave, as is the noise: the ratio is monotone.",
            )
        }
    )

    released: Annotated[float, label_params.RELEASED]
    member: Annotated[int, label_params.MEMBER] = 1

    def check(self) -> None:
        """Refuse an example outside the bag and a count that the mechanism never releases."""
        super().check()
        size = self.etas.size
        if self.member > size:
            raise DomainError(f"Expected member in {{1, ..., {size}}}, got member={self.member}.")
        if self.mechanism not in ("llp-laplace", "none") and self.released not in range(size + 1):
            raise DomainError(
                f"Expected released in {{0, ..., {size}}} for {self.mechanism}, got {self.released:g}."
            )


@dataclass(frozen=True, kw_only=True)
class BagAdvantage(BagProblem):
    """Additive advantage given the features of the bag: the mean over its examples."""

    name = "label-bag-advantage"
    asks = "advantage"
    largest = 0.5
    monotone = _LESS_NOISE


@dataclass(frozen=True, kw_only=True)
class ClassAdvantage(ReleaseProblem):
    r"""Additive advantage at guessing the class of the first example, by itself or in its bag.

    Randomized response keeps the class with probability $e^\varepsilon / (e^\varepsilon + c - 1)$, else
    releases another of the c classes, each equally likely; `llp` releases how many examples of the bag have
    each class.
    """

    name = "class-advantage"
    asks = "advantage"
    largest = 1.0
    monotone = _LESS_NOISE

    mechanism: Annotated[str, label_params.MECHANISM]
    classes: Annotated[str, label_params.CLASSES]
    label_epsilon: Annotated[float, label_params.LABEL_EPSILON] = math.inf

    @property
    def rows(self) -> list[list[float]]:
        """Probabilities of the classes, one list an example."""
        return class_rows(self.classes)

    def check(self) -> None:
        """Refuse a mechanism that is not defined for several classes."""
        if self.mechanism not in ("none", "rr", *_SUM_OF_CLASSES):
            raise DomainError(f"Expected mechanism in {{none, rr, llp}} for classes, got {self.mechanism}.")
        check_mechanism(self.mechanism, len(self.rows), self.label_epsilon)
