"""What is asked about DP-SGD: epsilon or delta of random allocation, Poisson sampling, no amplification."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, ClassVar

from privcore import params
from privcore.errors import DomainError
from privcore.problem import Monotone, Problem, Trend

_PROFILE = "The privacy profile is non-increasing in epsilon; its inverse is non-increasing in delta."
_POST = "Adding independent Gaussian noise to every output is post-processing, so more noise is a garbling."
_SPREAD = (
    "The likelihood ratio is a U-statistic of t i.i.d. one-step ratios (arXiv:2502.08202, Theorem 3.1), a "
    "reverse martingale in t (Berk 1966), so it falls in convex order, which independent products keep."
)
_NESTED = "k of t is dominated by k' of t for k <= k' (arXiv:2502.08202, Lemma D.1), in every epoch."
_COMPOSED = "Leaving out the outputs of an epoch is post-processing."
_SUBSET = (
    "A smaller sampling probability is a subsampling of the larger; both directions of every step decrease."
)


def _declare(trends: Mapping[str, tuple[Trend, str]], threshold: str) -> Mapping[str, Monotone]:
    """Return the monotonicities of a problem, with the one in its threshold added."""
    declared = {name: Monotone(trend=trend, proof=proof) for name, (trend, proof) in trends.items()}
    declared[threshold] = Monotone(trend=Trend.DECREASING, proof=_PROFILE)
    return MappingProxyType(declared)


_ALLOCATION = {
    "sigma": (Trend.DECREASING, _POST),
    "steps": (Trend.DECREASING, _SPREAD),
    "participations": (Trend.INCREASING, _NESTED),
    "epochs": (Trend.INCREASING, _COMPOSED),
}
_POISSON = {
    "sigma": (Trend.DECREASING, _POST),
    "steps": (Trend.INCREASING, _COMPOSED),
    "sampling_probability": (Trend.INCREASING, _SUBSET),
    "epochs": (Trend.INCREASING, _COMPOSED),
}
_UNAMPLIFIED = {
    "sigma": (Trend.DECREASING, _POST),
    "participations": (Trend.INCREASING, _COMPOSED),
    "epochs": (Trend.INCREASING, _COMPOSED),
}


def _check_participations(steps: int, participations: int) -> None:
    if participations > steps:
        raise DomainError(
            f"Expected participations <= steps, got participations={participations}, steps={steps}."
        )


@dataclass(frozen=True, kw_only=True)
class AllocationEpsilon(Problem):
    """Smallest epsilon of DP-SGD where every epoch uses an example in k steps chosen at random out of t."""

    name: ClassVar[str] = "allocation-epsilon"
    asks: ClassVar[str] = "epsilon"
    monotone: ClassVar[Mapping[str, Monotone]] = _declare(_ALLOCATION, "delta")

    sigma: Annotated[float, params.SIGMA]
    steps: Annotated[int, params.STEPS]
    delta: Annotated[float, params.DELTA]
    participations: Annotated[int, params.PARTICIPATIONS] = 1
    epochs: Annotated[int, params.EPOCHS] = 1
    adjacency: Annotated[str, params.ADJACENCY] = "add-remove"

    def check(self) -> None:
        """Refuse more participations than steps."""
        _check_participations(self.steps, self.participations)


@dataclass(frozen=True, kw_only=True)
class AllocationDelta(Problem):
    """Delta of DP-SGD at a given epsilon, where every epoch uses an example in k random steps out of t."""

    name: ClassVar[str] = "allocation-delta"
    asks: ClassVar[str] = "delta"
    largest: ClassVar[float] = 1.0
    monotone: ClassVar[Mapping[str, Monotone]] = _declare(_ALLOCATION, "epsilon")

    sigma: Annotated[float, params.SIGMA]
    steps: Annotated[int, params.STEPS]
    epsilon: Annotated[float, params.EPSILON]
    participations: Annotated[int, params.PARTICIPATIONS] = 1
    epochs: Annotated[int, params.EPOCHS] = 1
    adjacency: Annotated[str, params.ADJACENCY] = "add-remove"

    def check(self) -> None:
        """Refuse more participations than steps."""
        _check_participations(self.steps, self.participations)


@dataclass(frozen=True, kw_only=True)
class PoissonEpsilon(Problem):
    """Smallest epsilon of DP-SGD where every step includes every example independently."""

    name: ClassVar[str] = "poisson-epsilon"
    asks: ClassVar[str] = "epsilon"
    monotone: ClassVar[Mapping[str, Monotone]] = _declare(_POISSON, "delta")

    sigma: Annotated[float, params.SIGMA]
    steps: Annotated[int, params.STEPS]
    sampling_probability: Annotated[float, params.SAMPLING_PROBABILITY]
    delta: Annotated[float, params.DELTA]
    epochs: Annotated[int, params.EPOCHS] = 1
    adjacency: Annotated[str, params.ADJACENCY] = "add-remove"


@dataclass(frozen=True, kw_only=True)
class PoissonDelta(Problem):
    """Delta of DP-SGD at a given epsilon, where every step includes every example independently."""

    name: ClassVar[str] = "poisson-delta"
    asks: ClassVar[str] = "delta"
    largest: ClassVar[float] = 1.0
    monotone: ClassVar[Mapping[str, Monotone]] = _declare(_POISSON, "epsilon")

    sigma: Annotated[float, params.SIGMA]
    steps: Annotated[int, params.STEPS]
    sampling_probability: Annotated[float, params.SAMPLING_PROBABILITY]
    epsilon: Annotated[float, params.EPSILON]
    epochs: Annotated[int, params.EPOCHS] = 1
    adjacency: Annotated[str, params.ADJACENCY] = "add-remove"


@dataclass(frozen=True, kw_only=True)
class UnamplifiedEpsilon(Problem):
    """Smallest epsilon where the k steps that use an example are public, in every epoch: no amplification."""

    name: ClassVar[str] = "unamplified-epsilon"
    asks: ClassVar[str] = "epsilon"
    monotone: ClassVar[Mapping[str, Monotone]] = _declare(_UNAMPLIFIED, "delta")

    sigma: Annotated[float, params.SIGMA]
    delta: Annotated[float, params.DELTA]
    steps: Annotated[int, params.STEPS] = 1
    participations: Annotated[int, params.PARTICIPATIONS] = 1
    epochs: Annotated[int, params.EPOCHS] = 1
    adjacency: Annotated[str, params.ADJACENCY] = "add-remove"

    def check(self) -> None:
        """Refuse more participations than steps."""
        _check_participations(self.steps, self.participations)


@dataclass(frozen=True, kw_only=True)
class UnamplifiedDelta(Problem):
    """Delta at a given epsilon where the k steps that use an example are public: no amplification."""

    name: ClassVar[str] = "unamplified-delta"
    asks: ClassVar[str] = "delta"
    largest: ClassVar[float] = 1.0
    monotone: ClassVar[Mapping[str, Monotone]] = _declare(_UNAMPLIFIED, "epsilon")

    sigma: Annotated[float, params.SIGMA]
    epsilon: Annotated[float, params.EPSILON]
    steps: Annotated[int, params.STEPS] = 1
    participations: Annotated[int, params.PARTICIPATIONS] = 1
    epochs: Annotated[int, params.EPOCHS] = 1
    adjacency: Annotated[str, params.ADJACENCY] = "add-remove"

    def check(self) -> None:
        """Refuse more participations than steps."""
        _check_participations(self.steps, self.participations)
