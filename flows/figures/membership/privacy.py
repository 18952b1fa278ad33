"""Guarantees of differential privacy against membership inference: sharp bounds, and published bounds."""

from flows.figures.panels import BLACK, GREEN, ORANGE, Look, Panel, Trace
from flows.figures.stored import Stored
from privcore.parameter import Value

SETTINGS = ((0.0, 1.0), (0.05, 1.0), (0.0, 2.0))
"""Delta and odds of the panels."""

REPLACED = Look(label="a record replaced: sharp", color=BLACK)
PUBLISHED = Look(label="a record replaced: paper", color=ORANGE, style="--")
ADDED = Look(label="a record added or\nremoved: both ends", color=GREEN)

_CURVES = (
    (PUBLISHED, "membership.published", "substitution"),
    (REPLACED, "membership.sharp", "substitution"),
    (ADDED, "membership.sharp", "add-remove"),
)


def panels(stored: Stored) -> tuple[tuple[Panel, ...], ...]:
    """Return the panels over epsilon."""
    return (
        tuple(
            Panel(
                title=rf"$\delta$ = {delta:g}, odds {odds:g}",
                x_label=r"$\varepsilon$",
                y_label="" if place else "advantage, at most",
                traces=_traces(stored, delta, odds),
                scales=("log", "linear"),
                y_limits=(-0.03, 1.05),
            )
            for place, (delta, odds) in enumerate(SETTINGS)
        ),
    )


def _traces(stored: Stored, delta: float, odds: float) -> tuple[Trace, ...]:
    """Return the curves of a panel: upper ends, with a band down to the attained advantage."""
    traces: list[Trace] = []
    for look, method, neighbours in _CURVES:
        asked: dict[str, Value] = {"claimed_delta": delta, "odds": odds, "neighbours": neighbours}
        answers = list(stored.answers("membership-private-advantage", asked, method))
        band = [(float(row["lower"]), float(row["upper"])) for _, row in answers]
        traces += look.trace(
            [(float(fields["claimed_epsilon"]), float(row["upper"])) for fields, row in answers],
            band if look is ADDED else (),
        )
    return tuple(traces)
