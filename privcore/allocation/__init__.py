"""Random allocation and its neighbours: Poisson sampling, shuffling and no amplification."""

from typing import TYPE_CHECKING, Any

from privcore.allocation.comparisons import (
    PoissonDelta,
    PoissonEpsilon,
    ShufflingDelta,
    ShufflingEpsilon,
    UnamplifiedDelta,
    UnamplifiedEpsilon,
)
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

if TYPE_CHECKING:
    from privcore.allocation.reduction import allocated, allocation_pld
else:

    def __getattr__(name: str) -> Any:
        """Import the numerics on first use, because a lookup only needs the problems."""
        if name not in ("allocated", "allocation_pld"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from privcore.allocation import reduction

        return getattr(reduction, name)


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
