"""The papers whose figures can be drawn, and the sweeps that they need, by topic."""

from collections.abc import Mapping
from types import MappingProxyType

from flows.figures.allocation import paper as allocation
from flows.figures.auditing import paper as auditing
from flows.figures.figure import Figure
from flows.figures.labels import paper as labels
from flows.figures.membership import paper as membership

PAPERS: Mapping[str, tuple[Figure, ...]] = MappingProxyType(
    {
        "allocation": allocation.FIGURES,
        "labels": labels.FIGURES,
        "auditing": auditing.FIGURES,
        "membership": membership.FIGURES,
    }
)

_ALLOCATION = tuple(f"allocation-figure{number}" for number in range(1, 10))
_LABELS = ("advantage", "quantile", "ratio", "rates", "learning", "claims", "bounds")
_AUDITING = ("guesses", "alternatives", "confidence", "training-free", "claims")
_MEMBERSHIP = (
    "overfitting",
    "dimension",
    "quantised",
    "rates",
    "roc",
    "regression",
    "privacy",
    "claims",
)
SWEEPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "allocation": _ALLOCATION,
        "labels": tuple(f"labels-{name}" for name in _LABELS),
        "auditing": tuple(f"audits-{name}" for name in _AUDITING),
        "membership": tuple(f"membership-{name}" for name in _MEMBERSHIP),
    }
)
"""The sweeps of the figures and of the claims of each paper, in the order in which they run."""
