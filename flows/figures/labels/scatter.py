"""Scatter plots of an attacker's prior and posterior probability of a label."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from flows.figures.labels.setting import Setting, releases
from flows.figures.labels.theme import COLORS, NAMES, PRIORS
from flows.figures.panels import Kind, Panel, Trace, ramp
from flows.figures.stored import Stored

RELEASES = 1000
"""Number of simulated releases in a cloud, as in the paper."""
BAGS = (2, 8, 32, 128)
RESPONSES = (0.25, 0.5, 1.0, 2.0, 4.0)
NOISES = ((8, 0.25), (8, 1.0), (8, 4.0), (64, 1.0))
"""Bag size and epsilon of the clouds with noise."""
PRIOR_LABEL = r"prior $\eta$"


def by_parameter(_: Stored) -> tuple[tuple[Panel, ...], ...]:
    """Return a row of panels for bags, a row for randomized response, and a row for bags with noise."""
    bags = [Setting(mechanism="llp", bag_size=k) for k in BAGS]
    responses = [Setting(mechanism="rr", label_epsilon=e) for e in RESPONSES]
    return _row(bags, top=True), _row(responses), _row(_noisy("llp-geometric"), bottom=True)


def by_noise(_: Stored) -> tuple[tuple[Panel, ...], ...]:
    """Return a row of panels for geometric noise, and a row for Laplace noise."""
    return _row(_noisy("llp-geometric"), top=True), _row(_noisy("llp-laplace"), bottom=True)


def overlaid(prior: str, settings: Sequence[Setting]) -> tuple[Trace, ...]:
    """Return the traces of several mechanisms in one panel, each in its colour."""
    return tuple(
        trace
        for setting in settings
        for trace in _traces(prior, setting, NAMES[setting.mechanism], COLORS[setting.mechanism])
    )


def _noisy(mechanism: str) -> list[Setting]:
    return [Setting(mechanism=mechanism, bag_size=k, label_epsilon=e) for k, e in NOISES]


def _row(settings: list[Setting], *, top: bool = False, bottom: bool = False) -> tuple[Panel, ...]:
    """Return the panels of one mechanism, one for each prior."""
    name = NAMES[settings[0].mechanism]
    panels = []
    for column, (prior, title) in enumerate(PRIORS.items()):
        clouds = [
            _traces(prior, setting, setting.label, color)
            for setting, color in zip(settings, ramp(len(settings)), strict=True)
        ]
        panels.append(
            Panel(
                title=title if top else "",
                x_label=PRIOR_LABEL if bottom else "",
                y_label=f"{name}: posterior" if column == 0 else "",
                traces=tuple(trace for cloud in clouds for trace in cloud),
                x_limits=(0.0, shown(prior)),
                y_limits=(-0.02, 1.02),
                diagonal=True,
            )
        )
    return tuple(panels)


def shown(prior: str) -> float:
    """Return the right end of the horizontal axis: 1, or a value above which the prior has little mass."""
    return 1.0 if prior in ("uniform", "logit-normal(0.2132,2.2453)") else 0.4


def _traces(prior: str, setting: Setting, label: str, color: str) -> tuple[Trace, ...]:
    """Return the traces of one mechanism: two curves for randomized response, otherwise a cloud."""
    if setting.mechanism == "rr":
        curves = _spindle(setting.label_epsilon, shown(prior))
        return tuple(
            Trace(label=label if side == 0 else "", color=color, x=tuple(x.tolist()), y=tuple(y.tolist()))
            for side, (x, y) in enumerate(curves)
        )
    drawn = releases(setting, prior, RELEASES)
    x, y = tuple(drawn.etas.tolist()), tuple(drawn.posteriors.tolist())
    return (Trace(label=label, color=color, x=x, y=y, kind=Kind.DOTS),)


def _spindle(epsilon: float, last: float) -> tuple[tuple[NDArray[np.float64], NDArray[np.float64]], ...]:
    """Return the posteriors after both outputs of randomized response, above and below the diagonal."""
    eta = last * (1.0 - np.cos(np.linspace(0.0, np.pi, 201))) / 2.0
    with np.errstate(divide="ignore"):
        odds = logit(eta)
    return (eta, expit(odds + epsilon)), (eta, expit(odds - epsilon))
