"""The papers whose figures can be drawn, by topic."""

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
