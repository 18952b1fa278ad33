"""Advantage of attacks on the coefficients of least squares, over the number of records per feature."""

from flows.figures.panels import BLACK, BLUE, GREEN, ORANGE, Look, Panel, Trace
from flows.figures.stored import Stored, number

COORDINATES = (2, 10, 50)

BEST = Look(label="best attack", color=BLACK, marker="o")
CERTAIN = Look(label="", color=BLACK, marker="o")
DRAWS = Look(label="best attack, sampled,\n99 % confidence", color=BLUE)
LOSS = Look(label="best threshold for the loss", color=ORANGE, marker="^")
LIMIT = Look(label="limit for many records", color=GREEN, style="--")

_CURVES = (
    (CERTAIN, "membership.interpolation", "value"),
    (BEST, "membership.sobol", "value"),
    (DRAWS, "membership.sampling", "band"),
    (LOSS, "membership.threshold", "lower"),
    (LIMIT, "membership.influence", "value"),
)
"""Look, method, and the part of its answer that is drawn: number, number with both ends, or lower end."""


def panels(stored: Stored) -> tuple[tuple[Panel, ...], ...]:
    """Return a panel for each dimension; curves jump where the number of records equals that of features."""
    return (
        tuple(
            Panel(
                title=f"{d} features",
                x_label="records per feature, $n / d$",
                y_label="" if place else "advantage",
                traces=_traces(stored, d),
                scales=("log", "log"),
                x_limits=(0.4, 600.0),
                y_limits=(0.003, 1.2),
            )
            for place, d in enumerate(COORDINATES)
        ),
    )


def _traces(stored: Stored, d: int) -> tuple[Trace, ...]:
    """Return the curves of a dimension."""
    traces: list[Trace] = []
    for look, method, end in _CURVES:
        answers = list(stored.answers("membership-regression-advantage", {"coordinates": d}, method))
        places = [
            (float(fields["records"]) / d, float(row["lower"]) if end == "lower" else number(row))
            for fields, row in answers
        ]
        band = [(float(row["lower"]), float(row["upper"])) for _, row in answers] if end == "band" else []
        traces += look.trace(places, band)
    return tuple(traces)
