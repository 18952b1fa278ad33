"""Shares of records that learners fit: a network over its iterations, two others over the dimension."""

import math
from collections.abc import Mapping

from flows.figures.panels import GREY, Look, Panel, Trace, ramp
from flows.figures.stored import Stored, number
from privcore import Problem
from privcore.parameter import Value

LEVELS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.5)
"""Levels of the loss in the paper."""
RECORDS = 1000
_LIMITS = {"train": (-0.03, 1.03), "fresh": (5e-5, 1.4)}
_SCALES = {"train": "linear", "fresh": "log"}
"""Scale of the vertical axis, by the tested records: hardly any fresh record has a small loss."""
_INTERPOLATION = Look(label="as many coordinates\nas records", color=GREY, style="--")


def with_a_network(problem: Problem) -> bool:
    """Return whether a point belongs to the figure over iterations: a training that no loss stops."""
    fields = problem.as_fields()
    return bool(fields["learner"] == "network" and fields["stopping_loss"] == 0.0)


def over_iterations(stored: Stored) -> tuple[tuple[Panel, ...], ...]:
    """Return panels for training and for fresh records, over the iterations."""
    return (
        tuple(
            Panel(
                title=title,
                x_label="iterations",
                y_label="share of losses up to the level" if tested == "train" else "",
                traces=_traces(stored, {"learner": "network", "tested": tested}, "iterations"),
                scales=("linear", _SCALES[tested]),
                y_limits=_LIMITS[tested],
            )
            for tested, title in (("train", "training records"), ("fresh", "fresh records"))
        ),
    )


def over_dimension(stored: Stored) -> tuple[tuple[Panel, ...], ...]:
    """Return panels for least squares and the nearest neighbour, over the dimension of the features."""
    panels: list[Panel] = []
    for learner, tested, title in (
        ("linear", "train", "least squares, training"),
        ("linear", "fresh", "least squares, fresh"),
        ("nearest", "fresh", "nearest neighbour, fresh"),
    ):
        traces = _traces(stored, {"learner": learner, "tested": tested}, "coordinates")
        if traces and learner == "linear":
            traces += _INTERPOLATION.trace([(RECORDS, end) for end in _LIMITS[tested]])
        panels.append(
            Panel(
                title=title,
                x_label="coordinates $d$",
                y_label="" if panels else "share of losses up to the level",
                traces=traces,
                scales=("log", _SCALES[tested]),
                y_limits=_LIMITS[tested],
            )
        )
    return (tuple(panels),)


def _traces(stored: Stored, asked: Mapping[str, Value], place: str) -> tuple[Trace, ...]:
    """Return a curve for each level, and a dotted curve for the bound from the noise."""
    traces: list[Trace] = []
    for level, color in zip(LEVELS, ramp(len(LEVELS)), strict=True):
        given = {**asked, "loss_level": level}
        answers = list(stored.answers("membership-overfitting", given, "membership.trained"))
        curve = Look(label=f"loss up to {_power(level)}", color=color)
        traces += curve.trace([(float(fields[place]), number(row)) for fields, row in answers])
        proved = stored.answers("membership-overfitting", given, "membership.noise")
        end = "lower" if asked["tested"] == "train" else "upper"
        bound = Look(label="", color=color, style=":")
        traces += bound.trace([(float(fields[place]), float(row[end])) for fields, row in proved])
    return tuple(traces)


def _power(level: float) -> str:
    """Return a level in TeX.

    Example:
        >>> _power(1e-6), _power(0.5)
        ('$10^{-6}$', '0.5')
    """
    return f"{level:g}" if level >= 0.01 else f"$10^{{{round(math.log10(level))}}}$"
