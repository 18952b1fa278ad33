"""Decrease of the largest advantage over all learners with the number of records."""

import math
from collections.abc import Mapping

from flows.figures.panels import BLACK, BLUE, GREEN, ORANGE, PINK, Look, Panel, Trace, ramp
from flows.figures.stored import Row, Stored, number
from privcore.parameter import Value

LAWS = (
    ("uniform(100)", "100 equally likely values"),
    ("geometric(0.9)", "geometric, $r = 0.9$"),
    ("zipf(3)", "Zipf, $s = 3$"),
    ("zipf(2)", "Zipf, $s = 2$"),
    ("zipf(1.5)", "Zipf, $s = 1.5$"),
)
FINITE = LAWS[:3]
"""Distributions of finite diversity."""
FOUR = "uniform(4)"
ODDS = (0.5, 0.8, 1.0, 1.25, 2.0)
_LEAST = 1e-9
"""Least advantage that is shown."""

EXACT = Look(label="worst learner, exactly", color=BLACK, marker="o")
SCHWARZ = Look(label="half (paper)", color=ORANGE, style="--")
LARGEST = Look(label="with our largest constant", color=BLUE)
LEAST = Look(label="with our smallest constant", color=PINK)
LIMIT = Look(label="limit, $1 / \\sqrt{2 \\pi}$", color=GREEN, style="--")

_CURVES = (
    (SCHWARZ, "membership.schwarz", "upper"),
    (LARGEST, "membership.deviation", "upper"),
    (LIMIT, "membership.asymptotic", "value"),
    (EXACT, "membership.exact", "value"),
    (LEAST, "membership.deviation", "lower"),
)
"""Look, method, and the end of its answer that is drawn."""


def panels(stored: Stored) -> tuple[tuple[Panel, ...], ...]:
    """Return panels in units of the diversity if it is finite, then panels of plain advantages."""
    scaled = [
        Panel(
            title=title,
            x_label="records $n$",
            y_label="" if place else r"advantage times $\sqrt{n} \, / \, C$",
            traces=_scaled(stored, text),
            scales=("log", "linear"),
            y_limits=(0.0, 0.55),
        )
        for place, (text, title) in enumerate(FINITE)
    ]
    return tuple(scaled), (_laws(stored), _odds(stored))


def _scaled(stored: Stored, text: str) -> tuple[Trace, ...]:
    """Return the advantages of a distribution and their bounds, in units of its diversity."""
    found = next((number(row) for _, row in stored.answers("membership-diversity", {"law": text})), None)
    if found is None:
        return ()
    traces: list[Trace] = []
    for look, method, end in _CURVES:
        answers = stored.answers("membership-advantage", {"law": text, "odds": 1.0}, method)
        places = [(float(fields["records"]), _end(row, end)) for fields, row in answers]
        # a bound of 1 is trivial, since all bounds are cut to 1
        traces += look.trace([(n, y * math.sqrt(n) / found) for n, y in places if y < 1.0])
    return tuple(traces)


def _laws(stored: Stored) -> Panel:
    """Return the panel of all distributions."""
    traces: list[Trace] = []
    for (text, title), color in zip(LAWS, ramp(len(LAWS)), strict=True):
        traces += _exact(stored, {"law": text, "odds": 1.0}, Look(label=title, color=color))
    return Panel(
        title="the same, and two with infinite $C$",
        x_label="records $n$",
        y_label="advantage",
        traces=tuple(traces),
        scales=("log", "log"),
        y_limits=(2e-5, 1.5),
    )


def _odds(stored: Stored) -> Panel:
    """Return the panel of several odds."""
    traces: list[Trace] = []
    for odds, color in zip(ODDS, ramp(len(ODDS)), strict=True):
        look = Look(label=f"odds {odds:g}", color=color, style="--", marker=".")
        traces += _exact(stored, {"law": FOUR, "odds": odds}, look)
    return Panel(
        title="four equally likely values",
        x_label="records $n$",
        traces=tuple(traces),
        scales=("log", "log"),
        y_limits=(_LEAST, 1.5),
    )


def _exact(stored: Stored, asked: Mapping[str, Value], look: Look) -> tuple[Trace, ...]:
    """Return the curve of exact advantages over the number of records."""
    answers = stored.answers("membership-advantage", asked, "membership.exact")
    places = [(float(fields["records"]), number(row)) for fields, row in answers]
    return look.trace([place for place in places if place[1] >= _LEAST])


def _end(row: Row, end: str) -> float:
    """Return one end of an answer, or its single number."""
    return number(row) if end == "value" else float(row[end])
