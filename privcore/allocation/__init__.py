"""Random allocation and its neighbours: Poisson sampling and no amplification."""

from privcore.allocation.problems import (
    AllocationDelta,
    AllocationEpsilon,
    PoissonDelta,
    PoissonEpsilon,
    UnamplifiedDelta,
    UnamplifiedEpsilon,
)

__all__ = [
    "AllocationDelta",
    "AllocationEpsilon",
    "PoissonDelta",
    "PoissonEpsilon",
    "UnamplifiedDelta",
    "UnamplifiedEpsilon",
]
