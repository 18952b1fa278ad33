"""Epsilon refuted by audits of DP-SGD, over the true epsilon, if the scores follow their distribution."""

from dataclasses import replace

from flows.figures.auditing.theme import APPROXIMATE, DPSGD, GAUSSIAN, STEINKE
from flows.figures.panels import Look, Panel, Place
from flows.figures.stored import Stored, number

_CURVES: tuple[tuple[Look, str, str, str], ...] = (
    (replace(GAUSSIAN, style="--"), "audit-epsilon", "auditing.gaussian", "value"),
    (DPSGD, "audit-dpsgd-epsilon", "auditing.dpsgd", "value"),
    (replace(STEINKE, style="--"), "audit-epsilon", "auditing.steinke", "lower"),
    (APPROXIMATE, "audit-epsilon", "auditing.approximate", "lower"),
)
"""Look, problem, method, and the end of its answer; of two curves that almost coincide, one is dashed."""


def panels(stored: Stored) -> tuple[tuple[Panel, ...], ...]:
    """Return the refuted epsilon over the true epsilon, for each audit with its best number of guesses."""
    panel = Panel(
        x_label=r"true $\varepsilon$ at $\delta = 10^{-5}$",
        y_label=r"refuted $\varepsilon$",
        traces=tuple(trace for look, *rest in _CURVES for trace in look.trace(_places(stored, *rest))),
        x_limits=(0.0, 8.4),
        y_limits=(0.0, 8.4),
        diagonal=True,
    )
    return ((panel,),)


def _places(stored: Stored, problem: str, method: str, end: str) -> list[Place]:
    """Return the best refuted epsilon for the expected counts at each noise, over the true epsilon."""
    counts = {
        (int(fields["guesses"]), round(number(row))): float(fields["sigma"])
        for fields, row in stored.answers("audit-dpsgd-correct", {})
    }
    true = {float(fields["sigma"]): number(row) for fields, row in stored.answers("poisson-epsilon", {})}
    largest: dict[float, float] = {}
    for fields, row in stored.answers(problem, {}, method):
        noise = counts.get((int(fields["guesses"]), int(fields["correct"])))
        if noise in true:
            x = true[noise]
            largest[x] = max(largest.get(x, 0.0), float(row[end]))
    return list(largest.items())
