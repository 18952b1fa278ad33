"""Epsilon refuted by the expected counts: by the number of canaries, and by the number of guesses."""

from collections.abc import Callable, Iterator

from flows.figures.auditing.theme import (
    APPROXIMATE,
    APPROXIMATE_CEILING,
    EPSILON,
    GAUSSIAN,
    GAUSSIAN_CEILING,
    STEINKE,
    level,
    limits,
)
from flows.figures.panels import Look, Panel, Place, Trace
from flows.figures.stored import Stored, number
from privcore import Problem
from privcore.parameter import Value

NOISES = (0.5, 1.0, 2.0, 4.0)
"""Standard deviations of the Gaussian noise, for canaries that differ by 1."""
MOST = 10_000_000
"""Number of canaries in the figures over the number of guesses."""

_CURVES: tuple[tuple[Look, str, str, str], ...] = (
    (GAUSSIAN_CEILING, "gaussian", "auditing.planned", "upper"),
    (GAUSSIAN, "gaussian", "auditing.plannedgaussian", "lower"),
    (APPROXIMATE_CEILING, "approximate", "auditing.planned", "upper"),
    (APPROXIMATE, "approximate", "auditing.plannedapproximate", "lower"),
    (STEINKE, "approximate", "auditing.plannedsteinke", "lower"),
)
"""Look, family, method, and the end of its answer that is drawn."""


def at(noise: float) -> Callable[[Problem], bool]:
    """Return the condition that selects the points of a figure over the number of guesses."""

    def wanted(problem: Problem) -> bool:
        fields = problem.as_fields()
        if problem.name == "unamplified-epsilon":
            return bool(fields["sigma"] == noise)
        return fields["mu"] == 1.0 / noise and fields["canaries"] == MOST

    return wanted


def with_the_best_number(stored: Stored) -> tuple[tuple[Panel, ...], ...]:
    """Return epsilon over the number of canaries, each audit with its best number of guesses."""
    panels = [
        Panel(
            title=rf"noise $\sigma = {noise:g}$",
            x_label="canaries $m$" if noise in NOISES[2:] else "",
            y_label=EPSILON if noise in NOISES[::2] else "",
            traces=_traces(stored, noise, best=True),
            scales=("log", "linear"),
            y_limits=limits(_true(stored, noise)),
        )
        for noise in NOISES
    ]
    return tuple(panels[:2]), tuple(panels[2:])


def by_number(noise: float) -> Callable[[Stored], tuple[tuple[Panel, ...], ...]]:
    """Return the function that builds the panel of epsilon over the number of guesses, for one noise."""

    def panels(stored: Stored) -> tuple[tuple[Panel, ...], ...]:
        panel = Panel(
            x_label="guesses $c'$",
            y_label=EPSILON,
            traces=_traces(stored, noise, best=False),
            scales=("log", "linear"),
            y_limits=limits(_true(stored, noise)),
        )
        return ((panel,),)

    return panels


def _traces(stored: Stored, noise: float, *, best: bool) -> tuple[Trace, ...]:
    """Return the true epsilon and the curves of all audits."""
    curves = []
    for look, family, method, end in _CURVES:
        places = list(_places(stored, 1.0 / noise, family, method, end, best=best))
        if not best or look is not APPROXIMATE_CEILING:  # it is stored for one number of canaries only
            curves.append((look, places))
    shown = [place for _, places in curves for place in places]
    drawn = [trace for look, places in curves for trace in look.trace(places)]
    return (*level(_true(stored, noise), shown), *drawn)


def _true(stored: Stored, noise: float) -> float | None:
    """Return the epsilon of the Gaussian mechanism, or None if it is not stored."""
    answers = stored.answers("unamplified-epsilon", {"sigma": noise})
    return next((number(row) for _, row in answers), None)


def _places(stored: Stored, mu: float, family: str, method: str, end: str, *, best: bool) -> Iterator[Place]:
    """Yield epsilons over the guesses at the most canaries, or the best epsilons over the canaries."""
    asked: dict[str, Value] = {"mu": mu, "family": family}
    if not best:
        asked["canaries"] = MOST
    largest: dict[float, float] = {}
    for fields, row in stored.answers("audit-planned-epsilon", asked, method):
        x = float(fields["canaries" if best else "guesses"])
        largest[x] = max(largest.get(x, 0.0), float(row[end]))
    yield from largest.items()
