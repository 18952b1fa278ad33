"""Problems about a release on one bag with known etas: posterior, advantage, several classes."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray

from privcore.constraint import CountOf, NoneOf
from privcore.distributions.prior_notation import class_rows, probabilities
from privcore.errors import DomainError
from privcore.labels import params as label_params
from privcore.labels.problems import MECHANISM, Featured, ReleaseProblem
from privcore.problem import grows, proved

_LESS_NOISE = proved(
    label_epsilon=grows(
        "The release at a smaller epsilon is a post-processing of the release at a larger epsilon, for all "
        "features x."
    )
)

_OF_MEMBER = "the position of the attacked example in the bag, from 1; each example has its own answer"


@dataclass(frozen=True, kw_only=True)
class BagProblem(ReleaseProblem):
    """Base of the problems about one bag, which is a single example for randomized response."""

    constraints = MECHANISM

    mechanism: Annotated[str, label_params.MECHANISM]
    bag: Annotated[str, label_params.BAG]
    label_epsilon: Annotated[float, label_params.LABEL_EPSILON] = math.inf

    @property
    def etas(self) -> NDArray[np.float64]:
        """Probabilities of label 1 of the examples in the bag."""
        return np.array(probabilities(self.bag))

    @property
    def bag_size(self) -> int:
        """Number of examples in the bag."""
        return self.etas.size


@dataclass(frozen=True, kw_only=True)
class BagPosterior(BagProblem):
    """Probability that the label of one example of the bag is 1, given the released value."""

    name = "label-posterior"
    asks = "posterior"
    largest = 1.0
    monotone = proved(
        released=grows("A sum of independent labels is log-concave, as is the noise: the ratio is monotone.")
    )
    constraints = (
        *MECHANISM,
        CountOf("member", "bag", "Expected member in {{1, ..., {bound}}}, got member={member}."),
        CountOf(
            "released",
            "bag",
            "Expected released in {{0, ..., {bound}}} for {mechanism}, got {released:g}.",
            where=NoneOf("mechanism", ("llp-laplace", "none")),
        ),
    )

    stated = MappingProxyType({"member": _OF_MEMBER})

    released: Annotated[float, label_params.RELEASED]
    member: Annotated[int, label_params.MEMBER] = 1

    @property
    def possible(self) -> tuple[int, int]:
        """The smallest and the largest sum of the labels that have a positive probability."""
        etas = self.etas
        return int((etas == 1.0).sum()), int((etas > 0.0).sum())

    def contradiction(self) -> str:
        """Return the reason if the release is impossible, so that it has no posterior; else ""."""
        least, most = self.possible
        if self.mechanism != "llp" or least <= self.released <= most:
            return ""
        certain = f"{least} labels of this bag are 1 and {self.bag_size - most} are 0 for certain"
        return (
            f"Expected released in {{{least}, ..., {most}}} for llp, since {certain}, got {self.released:g}."
        )

    @classmethod
    def asked(cls, given: Mapping[str, Any]) -> Self:
        """Return the problem for a question; unlike `from_fields`, it refuses an impossible release."""
        problem = super().asked(given)
        if reason := problem.contradiction():
            raise DomainError(reason)
        return problem


@dataclass(frozen=True, kw_only=True)
class BagAdvantage(BagProblem):
    """Mean additive advantage over the examples of a bag, given their features."""

    name = "label-bag-advantage"
    asks = "advantage"
    largest = 0.5
    monotone = _LESS_NOISE


@dataclass(frozen=True, kw_only=True)
class MemberAdvantage(BagProblem):
    """Additive advantage on the label of one example of a bag, given the features of all."""

    name = "label-member-advantage"
    asks = "advantage"
    largest = 0.5
    monotone = _LESS_NOISE
    constraints = (
        *MECHANISM,
        CountOf("member", "bag", "Expected member in {{1, ..., {bound}}}, got member={member}."),
    )
    stated = MappingProxyType({"member": _OF_MEMBER})

    member: Annotated[int, label_params.MEMBER] = 1


@dataclass(frozen=True, kw_only=True)
class ReleaseProbability(BagProblem):
    """Probability of a released value of a bag with known etas: the distribution of a sum of unequal labels.

    For `llp` it is the Poisson-binomial distribution, and with geometric noise its clipped convolution.
    """

    name = "label-release-probability"
    asks = "probability"
    largest = 1.0
    constraints = (
        *MECHANISM,
        NoneOf(
            "mechanism",
            ("llp-laplace", "none"),
            "Expected a mechanism that releases labels or counts, got mechanism={mechanism}.",
        ),
        CountOf(
            "released",
            "bag",
            "Expected released in {{0, ..., {bound}}} for {mechanism}, got {released:g}.",
        ),
    )

    released: Annotated[float, label_params.RELEASED]


@dataclass(frozen=True, kw_only=True)
class ClassAdvantage(ReleaseProblem):
    r"""Additive advantage at guessing the class of the first example, released alone or in its bag.

    Randomized response keeps the class with probability $e^\varepsilon / (e^\varepsilon + c - 1)$, and
    otherwise releases one of the other c - 1 classes, each equally likely; `llp` releases the number of
    examples of each class in the bag.
    """

    name = "class-advantage"
    asks = "advantage"
    largest = 1.0
    monotone = _LESS_NOISE
    constraints = MECHANISM

    mechanism: Annotated[str, label_params.CLASS_MECHANISM]
    classes: Annotated[str, label_params.CLASSES]
    label_epsilon: Annotated[float, label_params.LABEL_EPSILON] = math.inf

    @property
    def rows(self) -> list[list[float]]:
        """Probabilities of the classes, one list for each example."""
        return class_rows(self.classes)

    @property
    def bag_size(self) -> int:
        """Number of examples in the bag."""
        return len(self.rows)


Advantage = Featured | BagAdvantage
