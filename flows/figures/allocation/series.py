"""The series of the figures: scheme, method, part of the answer, label and colour.

A sampler has its colour everywhere, and published bounds on random allocation have colours of Tol's muted
scheme, which are distinguishable with any colour vision. Proved enclosures and upper bounds are solid lines,
lower bounds are dotted and estimates are dashed, so that a lower bound is never taken for an upper bound.
"""

from dataclasses import dataclass
from enum import StrEnum

from flows.answers.training.palette import LIGHT


class Shows(StrEnum):
    """The part of an answer that is drawn."""

    BRACKET = "bracket"
    """Both ends, as a band: a proved enclosure."""
    UPPER = "upper"
    LOWER = "lower"
    VALUE = "value"
    """The estimate, without proof."""
    SPREAD = "spread"
    """The estimate, with its confidence interval as error bars."""


@dataclass(frozen=True, kw_only=True)
class Series:
    """One curve of a figure.

    Attributes:
        label: Name in the legend.
        scheme: Name of the problem without its quantity: `allocation` for `allocation-epsilon`.
        method: Name of the method.
        shows: The part of the method's answers that is drawn.
        color: Hexadecimal colour.
        marker: A marker of matplotlib, or "".
        width: Width of the line, in points.
        adjacency: Adjacency of its problems, unless the adjacency distinguishes the panels.
    """

    label: str
    scheme: str
    method: str
    shows: Shows = Shows.UPPER
    color: str
    marker: str = ""
    width: float = 1.1
    adjacency: str = "add-remove"


ALLOCATION = Series(
    label="Allocation, certified enclosure",
    scheme="allocation",
    method="allocation.certified",
    shows=Shows.BRACKET,
    color=LIGHT["allocation"],
    marker=".",
    width=1.8,
)
POISSON = Series(
    label="Poisson, certified enclosure",
    scheme="poisson",
    method="poisson.certified",
    shows=Shows.BRACKET,
    color=LIGHT["poisson"],
    marker="o",
    width=1.8,
)
POISSON_RENYI = Series(
    label="Poisson, Rényi", scheme="poisson", method="poisson.renyi", color=LIGHT["poisson"], marker="^"
)
LOCAL = Series(
    label="Local (no amplification)",
    scheme="unamplified",
    method="unamplified.exact",
    shows=Shows.BRACKET,
    color=LIGHT["none"],
    marker=".",
    width=1.8,
)
SHUFFLING = Series(
    label="Shuffling, upper bound",
    scheme="shuffling",
    method="shuffling.clones",
    color=LIGHT["shuffling"],
    marker="v",
    adjacency="zero-out",
)
SHUFFLING_LOWER = Series(
    label="Shuffling, lower bound",
    scheme="shuffling",
    method="shuffling.largest",
    adjacency="zero-out",
    shows=Shows.LOWER,
    color=LIGHT["shuffling"],
    width=1.8,
)
DIRECT = Series(
    label="Allocation, direct", scheme="allocation", method="allocation.direct", color="#332288", marker="o"
)
DIRECT_REMOVE = Series(
    label="Allocation, direct (remove)",
    scheme="allocation",
    method="allocation.direct",
    color="#AA4499",
    marker="<",
    adjacency="remove",
)
RECURSIVE = Series(
    label="Allocation, recursive",
    scheme="allocation",
    method="allocation.recursive",
    color="#999933",
    marker="s",
)
DECOMPOSITION = Series(
    label="Allocation, decomposition",
    scheme="allocation",
    method="allocation.decomposition",
    color="#CC6677",
    marker="D",
)
COMBINED = Series(
    label="Allocation, combined",
    scheme="allocation",
    method="allocation.combined",
    color="#882255",
    marker="P",
)
DONG = Series(
    label="Allocation, Dong et al. (remove)",
    scheme="allocation",
    method="allocation.dong",
    color="#000000",
    marker="X",
    adjacency="remove",
)
ALLOCATION_LOWER = Series(
    label="Allocation, lower bound (Chua et al.)",
    scheme="allocation",
    method="allocation.largest",
    shows=Shows.LOWER,
    color=LIGHT["allocation"],
    width=1.8,
)
MONTE_CARLO_MEAN = Series(
    label="Monte Carlo, mean (remove)",
    scheme="allocation",
    method="allocation.montecarlo",
    shows=Shows.VALUE,
    color="#332288",
    marker="x",
    adjacency="remove",
)
MONTE_CARLO_BOUND = Series(
    label="Monte Carlo, 99 % bound (remove)",
    scheme="allocation",
    method="allocation.montecarlo",
    color="#CC6677",
    marker="s",
    adjacency="remove",
)
ALLOCATION_ERROR = Series(
    label="Allocation, formula",
    scheme="allocation",
    method="utility.formula",
    shows=Shows.BRACKET,
    color=LIGHT["allocation"],
    width=1.8,
)
ALLOCATION_PUBLISHED = Series(
    label="Allocation, noise by the paper's bounds",
    scheme="allocation",
    method="utility.published",
    color="#882255",
    marker="P",
)
ALLOCATION_TRIALS = Series(
    label="Allocation, simulation, 99 %",
    scheme="allocation",
    method="utility.simulation",
    shows=Shows.SPREAD,
    color=LIGHT["allocation"],
    marker="o",
)
POISSON_ERROR = Series(
    label="Poisson, formula",
    scheme="poisson",
    method="utility.formula",
    shows=Shows.BRACKET,
    color=LIGHT["poisson"],
    width=1.8,
)
POISSON_TRIALS = Series(
    label="Poisson, simulation, 99 %",
    scheme="poisson",
    method="utility.simulation",
    shows=Shows.SPREAD,
    color=LIGHT["poisson"],
    marker="s",
)
