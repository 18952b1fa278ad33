"""Epsilon of random allocation by PLD-accounting 2.0 and random-allocation 1.0.5; run by peer.py."""

import math
from typing import Any

import PLD_accounting as pld  # type: ignore[import-not-found]
from peer_server import serve  # type: ignore[import-not-found]
from random_allocation import random_allocation_scheme as scheme  # type: ignore[import-not-found]
from random_allocation.comparisons.structs import (  # type: ignore[import-not-found]
    Direction,
    PrivacyParams,
    SchemeConfig,
)

DIRECTIONS = {"add-remove": Direction.BOTH, "add": Direction.ADD, "remove": Direction.REMOVE}
METHODS: dict[str, Any] = {
    "analytic": scheme.allocation_epsilon_analytic,
    "direct": scheme.allocation_epsilon_direct,
    "RDP_DCO": scheme.allocation_epsilon_RDP_DCO,
    "recursive": scheme.allocation_epsilon_recursive,
    "decomposition": scheme.allocation_epsilon_decomposition,
    "combined": scheme.allocation_epsilon_combined,
}

CONFIG = SchemeConfig(allocation_direct_alpha_orders=list(range(2, 61)))
"""Renyi orders of the authors' script; the library has no default."""


def adaptive(fields: dict[str, Any], accuracy: float) -> tuple[float, float]:
    """Return both ends; a positive accuracy is absolute, a negative accuracy means the peer's default."""
    only_both(fields)
    upper, lower = pld.gaussian_allocation_epsilon_range(
        delta=fields["delta"],
        sigma=fields["sigma"],
        num_steps=fields["steps"],
        num_selected=fields["participations"],
        num_epochs=fields["epochs"],
        epsilon_accuracy=accuracy,
    )
    return float(lower), float(upper)


def geometric(fields: dict[str, Any]) -> tuple[float, float]:
    """Return the upper end on the geometric grid with the default loss step, and tails that fit delta."""
    only_both(fields)
    params = pld.PrivacyParams(
        sigma=fields["sigma"],
        num_steps=fields["steps"],
        num_selected=fields["participations"],
        num_epochs=fields["epochs"],
        delta=fields["delta"],
    )
    config = pld.AllocationSchemeConfig(
        loss_discretization=1e-2,
        tail_truncation=min(1e-12, 1e-4 * fields["delta"]),
        convolution_method=pld.ConvolutionMethod.GEOM,
    )
    return 0.0, float(pld.gaussian_allocation_epsilon_configurable(params=params, config=config))


def by_paper(fields: dict[str, Any], method: str) -> tuple[float, float]:
    """Return the upper end of a method of random-allocation."""
    params = PrivacyParams(
        sigma=fields["sigma"],
        num_steps=fields["steps"],
        num_selected=fields["participations"],
        num_epochs=fields["epochs"],
        delta=fields["delta"],
    )
    direction = DIRECTIONS[fields["adjacency"]]
    found = float(METHODS[method](params=params, config=CONFIG, direction=direction))
    if math.isnan(found):
        raise ValueError("not a number")
    return 0.0, found


def only_both(fields: dict[str, Any]) -> None:
    """Reject questions about a single direction."""
    if fields["adjacency"] != "add-remove":
        raise ValueError("both directions only")


SMALL = {
    "sigma": 1.0,
    "steps": 10,
    "participations": 1,
    "epochs": 1,
    "delta": 1e-3,
    "adjacency": "add-remove",
}

if __name__ == "__main__":
    serve(
        {"adaptive": adaptive, "geometric": geometric, "by_paper": by_paper},
        {"adaptive": {"fields": SMALL, "accuracy": -1.0}, "geometric": {"fields": SMALL}},
    )
