"""Epsilon refuted by audits by reconstruction, over the number of alternatives for every canary."""

from flows.figures.auditing.theme import APPROXIMATE, EPSILON, GAUSSIAN, level, limits
from flows.figures.panels import Panel
from flows.figures.stored import Stored, number

CANARIES = (10_000, 100)
_LEAST = 3
"""Least number of alternatives: with two, the game is a different one, of inclusion or exclusion."""


def panels(stored: Stored) -> tuple[tuple[Panel, ...], ...]:
    """Return epsilon over the number of alternatives, for many and for few canaries."""
    true = next((number(row) for _, row in stored.answers("unamplified-epsilon", {})), None)
    row: list[Panel] = []
    for canaries in CANARIES:
        curves = []
        for look, method, end in (
            (GAUSSIAN, "auditing.gaussian", "value"),
            (APPROXIMATE, "auditing.approximate", "lower"),
        ):
            answers = stored.answers("audit-epsilon", {"canaries": canaries}, method)
            places = [(float(f["alternatives"]), float(r[end])) for f, r in answers]
            curves.append((look, [place for place in places if place[0] >= _LEAST]))
        shown = [place for _, places in curves for place in places]
        traces = [trace for look, places in curves for trace in look.trace(places)]
        row.append(
            Panel(
                title=f"{canaries} canaries, all guessed",
                x_label="alternatives $k$",
                y_label="" if row else EPSILON,
                traces=(*level(true, shown), *traces),
                scales=("log", "linear"),
                y_limits=limits(true),
            )
        )
    return (tuple(row),)
