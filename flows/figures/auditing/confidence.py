"""Epsilon refuted by the same counts at several deltas and confidences."""

from collections.abc import Callable, Mapping

from flows.figures.auditing.theme import TRUE
from flows.figures.panels import Look, Panel, Trace, ramp
from flows.figures.stored import Stored, number

CONFIDENCES = (0.5, 0.9, 0.95, 0.99, 0.999)
_ENDS: Mapping[str, tuple[str, str]] = {
    "auditing.steinke": ("Steinke et al. (assumption-free)", "lower"),
    "auditing.gaussian": ("Algorithm 3, Gaussian family (model-based)", "value"),
    "auditing.approximate": (r"Algorithm 3, $(\varepsilon, \delta)$ (assumption-free)", "lower"),
}
"""Title of the panel of each method, and the end of its answers that is drawn."""


def of(*methods: str) -> Callable[[Stored], tuple[tuple[Panel, ...], ...]]:
    """Return the function that builds a row of panels, one for each method."""

    def panels(stored: Stored) -> tuple[tuple[Panel, ...], ...]:
        return (
            tuple(
                Panel(
                    title=_ENDS[method][0],
                    x_label=r"$\delta$",
                    y_label=r"$\varepsilon$" if column == 0 else "",
                    traces=_traces(stored, method),
                    scales=("log", "linear"),
                    y_limits=(-0.2, 7.2),
                )
                for column, method in enumerate(methods)
            ),
        )

    return panels


def _traces(stored: Stored, method: str) -> tuple[Trace, ...]:
    """Return the true epsilon and a curve for each confidence."""
    true = stored.answers("unamplified-epsilon", {})
    traces = list(TRUE.trace([(float(fields["delta"]), number(row)) for fields, row in true]))
    for confidence, color in zip(CONFIDENCES, ramp(len(CONFIDENCES)), strict=True):
        answers = stored.answers("audit-epsilon", {"audit_confidence": confidence}, method)
        end = _ENDS[method][1]
        look = Look(label=f"confidence {confidence:g}", color=color, marker="o")
        traces += look.trace([(float(fields["delta"]), float(row[end])) for fields, row in answers])
    return tuple(traces)
