"""True and false positive rates of the best attack on the worst learner."""

from flows.figures.panels import GREY, Look, Panel, Trace, ramp
from flows.figures.stored import Stored

LAWS = (
    ("uniform(100)", "100 equally likely values"),
    ("geometric(0.9)", "geometric, $r = 0.9$"),
    ("zipf(1.5)", "Zipf, $s = 1.5$"),
)
RECORDS = (10, 100, 1000, 10_000)
_BLIND = Look(label="guessing", color=GREY, style=":")


def panels(stored: Stored) -> tuple[tuple[Panel, ...], ...]:
    """Return a panel for each distribution, in a row with linear axes and a row with logarithmic axes."""
    return _row(stored, "linear"), _row(stored, "log")


def _row(stored: Stored, scale: str) -> tuple[Panel, ...]:
    """Return the panels with axes of one scale."""
    return tuple(
        Panel(
            title=title if scale == "linear" else "",
            x_label="false positives" if scale == "log" else "",
            y_label="" if place else "true positives",
            traces=_traces(stored, text),
            scales=(scale, scale),
            x_limits=(0.0, 1.0) if scale == "linear" else (1e-4, 1.0),
            y_limits=(0.0, 1.02) if scale == "linear" else (1e-4, 1.2),
        )
        for place, (text, title) in enumerate(LAWS)
    )


def _traces(stored: Stored, text: str) -> tuple[Trace, ...]:
    """Return a curve of attained rates for each number of records, and the curve of a guessing attack."""
    traces: list[Trace] = []
    for records, color in zip(RECORDS, ramp(len(RECORDS)), strict=True):
        answers = stored.answers("membership-roc", {"law": text, "records": records})
        look = Look(label=f"{records} records", color=color)
        traces += look.trace([(float(f["false_positive_rate"]), float(r["lower"])) for f, r in answers])
    if traces:
        rates = traces[0].x
        traces += _BLIND.trace([(rate, rate) for rate in rates])
    return tuple(traces)
