"""Decrease of both advantages with the bag size, with fitted rates, which are printed but not stored."""

import math
from collections.abc import Mapping

import numpy as np

from flows.figures.labels.theme import PRIORS
from flows.figures.panels import Panel, Trace
from flows.figures.stored import Stored, number
from privcore import find_problem

_LABELS: Mapping[str, tuple[str, str, str]] = {
    "point(0.5)": (r"$\eta = 1/2$", "#000000", "o"),
    "uniform": (PRIORS["uniform"], "#0072B2", "s"),
    "logit-normal(0.2132,2.2453)": (PRIORS["logit-normal(0.2132,2.2453)"], "#D55E00", "D"),
    "logit-normal(-3.661,1.1815)": (PRIORS["logit-normal(-3.661,1.1815)"], "#CC79A7", "^"),
    "point(0.3)": (r"$\eta = 0.3$", "#E69F00", "v"),
    "two-point(0.05,0.7,0.25)": (r"$\eta \in \{0.05, 0.7\}$", "#009E73", "P"),
}
"""Label, colour and marker of each prior."""
_EXPONENTIAL = ("point(0.3)", "two-point(0.05,0.7,0.25)")
_LEAST_SHOWN = 1e-12
_FITTED_FROM = 64
"""Least bag size of the fit: in smaller bags, vanishing terms still matter."""
_LIMIT = 2.326348
"""98th percentile of |N(0, 1)|: the limit of the percentile times the deviation of the sum of the others."""

Places = list[tuple[float, float]]


def panels(stored: Stored) -> tuple[tuple[Panel, ...], ...]:
    """Return the panels of the advantage, and of the percentile with its limit, against the bag size."""
    advantage, percentile = [], []
    for prior, (label, color, marker) in _LABELS.items():
        if places := [p for p in _places(stored, "label-advantage", prior) if p[1] > _LEAST_SHOWN]:
            x, y = zip(*places, strict=True)
            advantage.append(Trace(label=label, color=color, x=x, y=y, marker=marker))
        if places := _places(stored, "label-ratio-quantile", prior):
            x, y = zip(*places, strict=True)
            percentile.append(Trace(label="" if advantage else label, color=color, x=x, y=y, marker=marker))
            limit = tuple(_LIMIT / math.sqrt(k * _label_variance(prior)) for k in x)
            percentile.append(Trace(label="", color=color, x=x, y=limit, style=":"))
    bound = stored.answers("label-advantage", {"prior": "point(0.5)"}, "labels.root")
    if ends := sorted((float(fields["bag_size"]), float(row["upper"])) for fields, row in bound):
        x, y = zip(*ends, strict=True)
        label = "upper bound, $\\eta = 1/2$ (Theorem 3.2)"
        advantage.append(Trace(label=label, color="#000000", x=x, y=y, style="--"))
    if percentile:
        limit_label = r"limit $2.33 / \sqrt{k \mu}$"
        advantage.append(Trace(label=limit_label, color="#6E6E6E", x=(), y=(), style=":"))
    log = ("log", "log")
    k = "bag size $k$"
    return (
        (
            Panel(x_label=k, y_label="expected additive advantage", traces=tuple(advantage), scales=log),
            Panel(x_label=k, y_label=r"98th percentile of $|I|$", traces=tuple(percentile), scales=log),
        ),
    )


def fitted(stored: Stored) -> tuple[str, ...]:
    """Return a sentence about the rate of each prior, by least squares over the larger stored bags."""
    sentences = []
    for prior in _LABELS:
        places = [place for place in _places(stored, "label-advantage", prior) if place[0] >= _FITTED_FROM]
        if len(places) < 2:
            continue
        k, advantage = np.array(places).T
        over = f"over bags of {k[0]:g} to {k[-1]:g}"
        if prior in _EXPONENTIAL:
            rate = np.polyfit(k, np.log(advantage) + 1.5 * np.log(k), 1)[0]
            sentences.append(f"{prior}: the advantage falls like k^-1.5 exp({rate:.4f} k) {over}.")
        else:
            slope = np.polyfit(np.log(k), np.log(advantage), 1)[0]
            sentences.append(f"{prior}: the advantage falls like k^{slope:.3f} {over}.")
    return tuple(sentences)


def _places(stored: Stored, problem: str, prior: str) -> Places:
    """Return bag sizes with their answers."""
    answers = stored.answers(problem, {"prior": prior})
    return sorted((float(fields["bag_size"]), number(row)) for fields, row in answers)


def _label_variance(prior: str) -> float:
    problem = find_problem("label-advantage").from_fields({"mechanism": "llp", "prior": prior})
    return float(getattr(problem, "distribution").label_variance)  # noqa: B009  the topic stays out of sight here
