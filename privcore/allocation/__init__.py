"""Random allocation and its neighbours: Poisson sampling, shuffling and no amplification."""

from privcore.allocation.comparisons import (
    PoissonDelta,
    PoissonEpsilon,
    ShufflingDelta,
    ShufflingEpsilon,
    UnamplifiedDelta,
    UnamplifiedEpsilon,
)
from privcore.allocation.composable import allocated, allocation_pld
from privcore.allocation.problems import (
    AllocationDelta,
    AllocationEpsilon,
    LaplaceAllocationDelta,
    LaplaceAllocationEpsilon,
    ResponseAllocationDelta,
    ResponseAllocationEpsilon,
    SampledAllocationDelta,
    SampledAllocationEpsilon,
)

__all__ = [
    "AllocationDelta",
    "AllocationEpsilon",
    "LaplaceAllocationDelta",
    "LaplaceAllocationEpsilon",
    "PoissonDelta",
    "PoissonEpsilon",
    "ResponseAllocationDelta",
    "ResponseAllocationEpsilon",
    "SampledAllocationDelta",
    "SampledAllocationEpsilon",
    "ShufflingDelta",
    "ShufflingEpsilon",
    "UnamplifiedDelta",
    "UnamplifiedEpsilon",
    "allocated",
    "allocation_pld",
]
