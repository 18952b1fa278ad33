"""Distributions of both advantages at one setting, below scatter plots of the same releases."""

import numpy as np

from flows.figures.labels import scatter
from flows.figures.labels.setting import Setting, releases
from flows.figures.labels.theme import COLORS, NAMES, PRIORS
from flows.figures.panels import Kind, Panel, Trace
from flows.figures.stored import Stored, number

SETTINGS = (
    Setting(mechanism="llp-geometric", bag_size=8, label_epsilon=1.0),
    Setting(mechanism="llp", bag_size=8),
    Setting(mechanism="rr", label_epsilon=1.0),
)
RELEASES = 4000
"""Number of simulated bags for a distribution function of additive advantages."""
LEAST = 1e-5
"""Left end of the axis of additive advantages: for rare labels, most advantages are smaller or 0."""
_MOST, _RAREST = 0.5, 2e-4
"""Largest advantage, and smallest share that is shown: one simulated bag is 1 / RELEASES."""


def both_advantages(stored: Stored) -> tuple[tuple[Panel, ...], ...]:
    """Return a row of scatter plots, a row of multiplicative and a row of additive advantages."""
    top, middle, bottom = [], [], []
    for column, (prior, title) in enumerate(PRIORS.items()):
        first = column == 0
        top.append(
            Panel(
                title=title,
                x_label=scatter.PRIOR_LABEL,
                y_label="posterior" if first else "",
                traces=scatter.overlaid(prior, SETTINGS),
                x_limits=(0.0, scatter.shown(prior)),
                y_limits=(-0.02, 1.02),
                diagonal=True,
            )
        )
        middle.append(
            Panel(
                x_label=r"multiplicative advantage $|I|$",
                y_label="distribution function" if first else "",
                traces=tuple(t for s in SETTINGS for t in _multiplicative(stored, s.mechanism, prior)),
                x_limits=(0.0, 4.0),
                y_limits=(0.0, 1.03),
            )
        )
        bottom.append(
            Panel(
                x_label="additive advantage given all features",
                y_label="share with a larger advantage" if first else "",
                traces=tuple(t for s in SETTINGS for t in _additive(stored, s, prior)),
                scales=("log", "log"),
                x_limits=(LEAST, _MOST),
                y_limits=(_RAREST, 1.3),
            )
        )
    return tuple(top), tuple(middle), tuple(bottom)


def _multiplicative(stored: Stored, mechanism: str, prior: str) -> list[Trace]:
    """Return the distribution function from stored probabilities, and its limit, the finite share."""
    answers = list(stored.answers("label-ratio-tail", {"mechanism": mechanism, "prior": prior}))
    if not answers:
        return []
    places = sorted((float(fields["log_ratio"]), row) for fields, row in answers)
    lower = tuple(1.0 - min(1.0, float(row["upper"])) for _, row in places)
    upper = tuple(1.0 - float(row["lower"]) for _, row in places)
    traces = [
        Trace(
            label=NAMES[mechanism],
            color=COLORS[mechanism],
            x=tuple(x for x, _ in places),
            y=tuple(1.0 - number(row) for _, row in places),
            band=(lower, upper),
            kind=Kind.STEPS,
        )
    ]
    for _, row in stored.answers("label-ratio-infinite", {"mechanism": mechanism, "prior": prior}):
        y = 1.0 - number(row)
        label = "LLP, share of finite $|I|$"
        traces.append(Trace(label=label, color=COLORS[mechanism], x=(0.0, 4.0), y=(y, y), style=":"))
    return traces


def _additive(stored: Stored, setting: Setting, prior: str) -> list[Trace]:
    """Return the share above each advantage: exact for randomized response, otherwise of simulated bags."""
    kind = Kind.STEPS
    if setting.mechanism == "rr":
        kind = Kind.LINE  # continuous except for a jump at 0
        answers = stored.answers("label-advantage-tail", {"mechanism": setting.mechanism, "prior": prior})
        places = sorted((max(LEAST, float(fields["threshold"])), number(row)) for fields, row in answers)
    else:
        drawn = np.sort(releases(setting, prior, RELEASES).advantages)
        shown = np.searchsorted(drawn, LEAST, side="right")
        above = [(float(x), 1.0 - (i + 1) / RELEASES) for i, x in enumerate(drawn)]
        places = [(LEAST, 1.0 - float(shown) / RELEASES), *above[shown:]]
    if not places:
        return []
    x, y = zip(*places, strict=True)
    return [Trace(label=NAMES[setting.mechanism], color=COLORS[setting.mechanism], x=x, y=y, kind=kind)]
