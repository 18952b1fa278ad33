"""Random allocation and its neighbours: Poisson sampling, shuffling and no amplification."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privcore.allocation.reduction import allocated, allocation_pld
else:

    def __getattr__(name: str) -> Any:
        """Import the numerics on first use, because a lookup only needs the problems."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from privcore.allocation import reduction

        return getattr(reduction, name)


__all__ = ["allocated", "allocation_pld"]
