"""Problems about a release on one bag with known etas: posterior, advantages, several classes or sums."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray

from privcore.constraint import CountOf, NoneOf, OneOf
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


class ReleaseOfMember(BagProblem):
    """Base of the problems about one example of a bag and one released value."""

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


class BagPosterior(ReleaseOfMember):
    """Probability that the label of one example of the bag is 1, given the released value."""

    name = "label-posterior"
    asks = "posterior"
    largest = 1.0
    monotone = proved(
        released=grows("A sum of independent labels is log-concave, as is the noise: the ratio is monotone.")
    )


class ReleaseRatio(ReleaseOfMember):
    """Absolute multiplicative advantage in nats on one example of a bag, from one released value.

    It is infinite if the value is impossible for one of the two labels, and does not depend on the eta of
    the example, so it has a meaning also for an example whose label is certain.
    """

    name = "label-release-ratio"
    asks = "log_ratio"


class BagAdvantage(BagProblem):
    """Mean additive advantage over the examples of a bag, given their features."""

    name = "label-bag-advantage"
    asks = "advantage"
    largest = 0.5
    monotone = _LESS_NOISE


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


class ClassProblem(ReleaseProblem):
    r"""Base of the problems about the class of the first example, released alone or in its bag.

    Randomized response keeps the class with probability $e^\varepsilon / (e^\varepsilon + c - 1)$, and
    otherwise releases one of the other c - 1 classes, each equally likely; `llp` releases the number of
    examples of each class in the bag.
    """

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


class ClassAdvantage(ClassProblem):
    r"""Additive advantage at guessing the class of the first example, released alone or in its bag.

    Randomized response keeps the class with probability $e^\varepsilon / (e^\varepsilon + c - 1)$, and
    otherwise releases one of the other c - 1 classes, each equally likely; `llp` releases the number of
    examples of each class in the bag.
    """

    name = "class-advantage"
    asks = "advantage"
    largest = 1.0
    monotone = _LESS_NOISE


class ClassRatio(ClassProblem):
    """Absolute multiplicative advantage in nats for two classes of the first example, from one release.

    It is the absolute value of the logarithm of the odds of both classes after the release, less that before
    it (Definition 3.6 for any number of classes); infinite if the release is impossible for one of them.
    """

    name = "class-release-ratio"
    asks = "log_ratio"
    constraints = (
        *MECHANISM,
        OneOf(
            "fits",
            (True,),
            "Expected histogram and both classes for the {number} classes of a bag of {bag_size}, got "
            "histogram={histogram}, first_class={first_class}, second_class={second_class}.",
        ),
    )

    histogram: Annotated[str, label_params.HISTOGRAM]
    first_class: Annotated[int, label_params.FIRST_CLASS]
    second_class: Annotated[int, label_params.SECOND_CLASS]

    @property
    def counts(self) -> tuple[int, ...]:
        """Released number of examples of each class."""
        return tuple(map(int, self.histogram.split(",")))

    @property
    def number(self) -> int:
        """Number of classes."""
        return len(self.rows[0])

    @property
    def fits(self) -> bool:
        """Whether the release has the classes of the examples, and all its examples."""
        most = max(self.first_class, self.second_class)
        return most <= self.number == len(self.counts) and sum(self.counts) == self.bag_size


class SumsAdvantage(ReleaseProblem):
    """Additive advantage on one label from several exact sums, which may overlap or have weights."""

    name = "label-sums-advantage"
    asks = "advantage"
    largest = 0.5
    constraints = (
        CountOf("member", "bag", "Expected member in {{1, ..., {bound}}}, got member={member}."),
        OneOf(
            "fits",
            (True,),
            "Expected one weight in each of the sums for each of the {bag_size} examples, got sums={sums}.",
        ),
    )
    stated = MappingProxyType({"member": _OF_MEMBER})

    bag: Annotated[str, label_params.BAG]
    sums: Annotated[str, label_params.SUMS]
    member: Annotated[int, label_params.MEMBER] = 1

    @property
    def bag_size(self) -> int:
        """Number of examples in the bag."""
        return len(probabilities(self.bag))

    @property
    def fits(self) -> bool:
        """Whether each sum has one weight for each example."""
        return all(len(row.split(",")) == self.bag_size for row in self.sums.split(";"))


Advantage = Featured | BagAdvantage
