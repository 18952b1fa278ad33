"""Parts of a claim other than training: Laplace noise, randomized response, guarantees, privacy profiles."""

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

import numpy as np

from privcore import params
from privcore.allocation.params import HIGHEST_ORDER, LAPLACE_SCALE
from privcore.auditing.problems import MORE_CORRECT, Counts
from privcore.distributions.columns import read_columns
from privcore.distributions.notation import number, spelled
from privcore.errors import DomainError
from privcore.likelihood_ratio.finite import (
    Laplace,
    approximate,
    covering,
    discrete_laplace,
    renyi_private,
    response,
)
from privcore.likelihood_ratio.ratios import Ratio, Sampled
from privcore.parameter import Integer, Real, Text
from privcore.problem import Checked, falls, proved
from privcore.training.batches import Public
from privcore.training.notation import PHASES, PHASES_TEXT, canonical, grammar, parsed
from privcore.training.phase import Phase
from privcore.training.samplers import Bounds

MOST_PAIRS = 1000
"""Largest number of pairs of a curve."""
_ORDERS = 80
"""Number of orders at which zero-concentrated differential privacy is used."""
_STEPS = replace(params.STEPS, meaning="Number of independent uses of the mechanism")
_SCALE = replace(
    LAPLACE_SCALE,
    unit="L1 sensitivities",
    typical=(0.5, 1.0, 10.0),
    meaning="Scale of the Laplace noise, divided by the L1 distance of the values of neighbours",
)
_EPSILON = replace(params.CLAIMED_EPSILON, name="epsilon")
_DELTA = replace(params.DELTA, lower_open=False, upper_open=False)
_RATE = Real(
    name="rate",
    symbol="a",
    lower=1e-6,
    upper=100.0,
    typical=(0.1, 1.0),
    meaning="Rate a of the discrete Laplace noise, whose probabilities are proportional to exp(-a |x|)",
)
_SENSITIVITY = Integer(
    name="sensitivity",
    symbol=r"\Delta",
    lower=1,
    upper=1000,
    typical=(1, 2),
    meaning="L1 distance of the values of neighbours",
)
_UNIFORM = Real(
    name="uniform_probability",
    symbol="p",
    lower=1e-12,
    upper=1.0,
    upper_open=True,
    typical=(0.1, 0.5),
    meaning="Probability that randomized response gives a uniform answer",
)
_ANSWERS = Integer(
    name="answers", symbol="k", lower=2, upper=10**9, typical=(2, 10), meaning="Number of possible answers"
)


def _canonical_curve(text: str, *, left: Real, right: Real, what: str) -> str | None:
    """Return sorted pairs of two parameters; those of a file, if the text is not a list of pairs.

    Raises:
        DomainError: The file cannot be read, a number is outside its domain, or there are too many pairs.
    """
    words = [word.partition(":") for word in text.split()]
    numbers = [(number(first), number(second)) for first, _, second in words]
    found = [(first, second) for first, second in numbers if first is not None and second is not None]
    if len(found) < len(words) or not words:
        columns = read_columns(Path(text.strip()), [left.name, right.name], what)
        found = list(zip(*(column.tolist() for column in columns), strict=True))
    if len(found) > MOST_PAIRS:
        raise DomainError(
            f"Expected at most {MOST_PAIRS} pairs of {left.name} and {right.name}, got {len(found)}: leave "
            "some out."
        )
    pairs = sorted({(left.check(first), right.check(second)) for first, second in found})
    return " ".join(f"{spelled(first)}:{spelled(second)}" for first, second in pairs)


_ORDER = Real(
    name="order",
    symbol=r"\alpha",
    lower=1.0,
    lower_open=True,
    upper=float(HIGHEST_ORDER),
    typical=(2.0, 8.0),
    meaning="Order of a Renyi divergence",
)
_DIVERGENCE = Real(
    name="divergence",
    symbol=r"D_\alpha",
    lower=1e-9,
    upper=700.0,
    typical=(0.5, 1.0),
    meaning="Bound of a Renyi divergence, in nats",
)
_RHO = replace(
    _DIVERGENCE,
    name="rho",
    symbol=r"\rho",
    typical=(0.1, 0.5),
    meaning="The Renyi divergence of each order above 1, in both directions, is at most rho times the order",
)
_CURVE = Text(
    name="curve",
    symbol=r"\delta(\varepsilon)",
    grammar="{EPSILON:DELTA EPSILON:DELTA ..., or a file with the columns epsilon and delta}",
    canonical=partial(_canonical_curve, left=_EPSILON, right=_DELTA, what="a privacy profile"),
    typical=("0:0.3 1:0.05 2:0.001",),
    meaning="Pairs of epsilon and delta, each a guarantee of the mechanism",
)


_DIVERGENCES = Text(
    name="curve",
    symbol=r"D_\alpha",
    grammar="{ORDER:DIVERGENCE ORDER:DIVERGENCE ..., or a file with the columns order and divergence}",
    canonical=partial(_canonical_curve, left=_ORDER, right=_DIVERGENCE, what="Renyi divergences"),
    typical=("2:0.5 4:1", "1.5:0.1 8:0.4 32:2"),
    meaning="Orders above 1, and bounds of the Renyi divergences of one use in both directions, in nats",
)


class Mechanism(Checked):
    """Base of mechanisms with a worst pair of outputs and a number of uses, their last field."""

    if TYPE_CHECKING:
        steps: int

    def reason(self, relation: str) -> str | None:
        """Return the reason why the step means nothing for this relation, or None."""
        return None

    @property
    @abstractmethod
    def ratio(self) -> Ratio:
        """Ratio that dominates one use."""

    def bounds(self, relation: str, scale: float) -> Bounds:
        """Return the ratios of all uses, as `Phase.bounds` does."""
        return Bounds.exact(self.ratio).repeated(self.steps)


class _Added(Mechanism):
    """Base of noise whose scale is stated for an example that is added, removed or set to zero."""

    def reason(self, relation: str) -> str | None:
        if relation == "replace-one":
            return (
                f"The noise of {self.name} is stated for an added or removed example; for a design that "
                "replaces one, state its guarantee or its profile."
            )
        return None


class GaussianNoise(Public):
    """Gaussian noise: steps that all use the example, by default one."""

    name = "gaussian"

    steps: Annotated[int, params.STEPS] = 1


class LaplaceNoise(_Added):
    """Laplace noise, possibly with Poisson sampling."""

    name = "laplace"

    scale: Annotated[float, _SCALE]
    sampling_probability: Annotated[float, params.SAMPLING_PROBABILITY] = 1.0
    steps: Annotated[int, _STEPS] = 1

    @property
    def ratio(self) -> Ratio:
        ratio = Laplace(self.scale)
        return ratio if self.sampling_probability == 1.0 else Sampled(ratio, self.sampling_probability)


class DiscreteLaplaceNoise(_Added):
    """Discrete Laplace (geometric) noise on whole numbers."""

    name = "discrete-laplace"

    rate: Annotated[float, _RATE]
    sensitivity: Annotated[int, _SENSITIVITY] = 1
    steps: Annotated[int, _STEPS] = 1

    @property
    def ratio(self) -> Ratio:
        return discrete_laplace(self.rate, self.sensitivity)


class RandomizedResponse(Mechanism):
    """Randomized response: a uniform answer with a probability, else the truth."""

    name = "randomized-response"

    uniform_probability: Annotated[float, _UNIFORM]
    answers: Annotated[int, _ANSWERS] = 2
    steps: Annotated[int, _STEPS] = 1

    def reason(self, relation: str) -> str | None:
        return None if relation == "replace-one" else "Randomized response replaces an example: use pairs."

    @property
    def ratio(self) -> Ratio:
        return response(self.uniform_probability, self.answers, special=False)


class Guarantee(Mechanism):
    """A mechanism with (epsilon, delta)-differential privacy, about which nothing else is known."""

    name = "guarantee"

    epsilon: Annotated[float, _EPSILON]
    delta: Annotated[float, _DELTA] = 0.0
    steps: Annotated[int, _STEPS] = 1

    @property
    def ratio(self) -> Ratio:
        return approximate(self.epsilon, self.delta)


class _Renyi(Mechanism):
    """Base of guarantees about Renyi divergences, which add up over the uses."""

    @property
    @abstractmethod
    def orders(self) -> Iterator[tuple[Decimal, Decimal]]:
        """Orders, and bounds of the divergences of one use."""

    @property
    def ratio(self) -> Ratio:
        """Ratio that dominates all uses."""
        return renyi_private(tuple((order, bound * self.steps) for order, bound in self.orders))

    def bounds(self, relation: str, scale: float) -> Bounds:
        return Bounds.exact(self.ratio)


class RenyiGuarantee(_Renyi):
    """A mechanism with Renyi differential privacy of several orders, about which nothing else is known."""

    name = "renyi"

    curve: Annotated[str, _DIVERGENCES]
    steps: Annotated[int, _STEPS] = 1

    @property
    def orders(self) -> Iterator[tuple[Decimal, Decimal]]:
        for word in self.curve.split():
            order, bound = word.split(":")
            yield Decimal(order), Decimal(bound)


class ZeroConcentrated(_Renyi):
    """A mechanism with zero-concentrated differential privacy, about which nothing else is known."""

    name = "zcdp"

    rho: Annotated[float, _RHO]
    steps: Annotated[int, _STEPS] = 1

    @property
    def orders(self) -> Iterator[tuple[Decimal, Decimal]]:
        largest = 10.0 + 10.0 / math.sqrt(self.rho * self.steps)  # is best at a delta of about e^-100
        for more in np.geomspace(1e-3, largest, _ORDERS).tolist():
            order = 1 + Decimal(more)
            yield order, order * Decimal(spelled(self.rho))


class ClaimedProfile(Mechanism):
    """A mechanism with several guarantees at once, about which nothing else is known."""

    name = "profile"

    curve: Annotated[str, _CURVE]
    steps: Annotated[int, _STEPS] = 1

    @property
    def ratio(self) -> Ratio:
        pairs = (word.split(":") for word in self.curve.split())
        return covering([(float(epsilon), float(delta)) for epsilon, delta in pairs])


CLAIMS: Mapping[str, type[Phase] | type[Mechanism]] = MappingProxyType(
    {
        **PHASES,
        **{
            kind.name: kind
            for kind in (
                DiscreteLaplaceNoise,
                GaussianNoise,
                Guarantee,
                LaplaceNoise,
                ClaimedProfile,
                RandomizedResponse,
                RenyiGuarantee,
                ZeroConcentrated,
            )
        },
    }
)
"""Kinds of the parts of a claim: the phases of training runs, and other mechanisms."""


@lru_cache(maxsize=256)
def claim(text: str) -> tuple[Phase | Mechanism, ...]:
    """Return the parts of a claim; the result is shared.

    Raises:
        PrivsweepError: As in `notation.phases`, or a profile cannot be read.

    Example:
        >>> [each.name for each in claim("laplace(scale=2,steps=3); none(sigma=1,steps=1)")]
        ['laplace', 'none']
    """
    return parsed(text, CLAIMS)


CLAIM_TEXT = replace(
    PHASES_TEXT,
    grammar=grammar(CLAIMS),
    canonical=partial(canonical, kinds=CLAIMS),
    typical=(
        *PHASES_TEXT.typical,
        "laplace(scale=2,steps=3)",
        "guarantee(epsilon=1,delta=1e-05)",
        "profile(curve=0:0.3 1:0.05 2:0.001)",
        "zcdp(rho=0.1)",
        "renyi(curve=2:0.5 4:1)",
    ),
    meaning="Claim: the phases of a training run, or other mechanisms, which are composed",
)


class AuditClaimTail(Counts):
    """p-value of a claim: largest probability of at least this many correct guesses under it.

    The claim is a training run, another mechanism, a guarantee or a privacy profile, or their composition.

    The neighbouring relation follows from the design: add-remove or replace-one.
    """

    name = "audit-claim-tail"
    topic = "training"  # of its methods
    asks = "probability"
    largest = 1.0
    monotone = proved(correct=falls(MORE_CORRECT))

    phases: Annotated[str, CLAIM_TEXT]

    def claim(self) -> tuple[Phase | Mechanism, ...]:
        """Return the parts of the claim."""
        return claim(self.phases)
