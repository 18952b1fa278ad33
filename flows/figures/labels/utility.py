"""Utility and leakage of a release: test score over both advantages, or over the bag size."""

import math
from collections.abc import Callable, Mapping, Sequence

from flows.figures.labels.setting import Setting
from flows.figures.labels.theme import COLORS, DATA, MARKERS, NAMES, PRIORS, power
from flows.figures.panels import Kind, Panel, Trace, ramp
from flows.figures.stored import Row, Stored, number, standard_error
from privcore import Problem
from privcore.parameter import Value

Fields = Mapping[str, Value]

ADDITIVE = "expected additive advantage"
MULTIPLICATIVE = r"98th percentile of $|I|$"
SCORES = {"label-learning": "test AUC", "label-learning-loss": "test cross-entropy"}
"""Problems about a trained model, with the text of their axis."""
LEAST_SHOWN = 1e-6
"""Least expected advantage that is shown: below it, the AUC is that of guessing."""


def wants(
    *mechanisms: str, data: tuple[str, ...] = tuple(DATA), scores: Sequence[str] = ("label-learning",)
) -> Callable[[Problem], bool]:
    """Return the condition that selects the points of these mechanisms on these stand-ins."""
    priors = {DATA[name] for name in data}

    def wanted(problem: Problem) -> bool:
        fields = problem.as_fields()
        learned = problem.name in scores and fields.get("data") in data and fields.get("model") == "logistic"
        revealed = fields.get("prior") in priors and int(fields["bag_size"]) <= _most_learned(fields)
        return fields["mechanism"] in mechanisms and (learned or revealed)

    return wanted


def _most_learned(fields: Fields) -> int:
    """Return the largest bag size of the learning problems with this mechanism."""
    return 512 if fields["mechanism"] == "llp" else 64


def by_bag_size(stored: Stored) -> tuple[tuple[Panel, ...], ...]:
    """Return AUC over both advantages; with noise, one curve for each bag size, over several epsilons."""
    return _trade_offs(stored, "bag_size", (1, 2, 4, 8, 16, 32, 64), lambda k: f"LLP+Geom, $k = {k:g}$")


def by_epsilon(stored: Stored) -> tuple[tuple[Panel, ...], ...]:
    """Return AUC over both advantages; with noise, one curve for each epsilon, over several bag sizes."""
    return _trade_offs(
        stored,
        "label_epsilon",
        (0.0625, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0),
        lambda e: rf"LLP+Geom, $\varepsilon = {power(e)}$",
    )


def without_noise(stored: Stored) -> tuple[tuple[Panel, ...], ...]:
    """Return AUC and cross-entropy over the additive advantage on the KDD-like data, without added noise."""
    auc, loss = (
        _panel(stored, "kdd-like", "label-advantage", _plain(), score=score, first=True, top=True)
        for score in SCORES
    )
    return ((auc, loss),)


def against_bag_size(stored: Stored) -> tuple[tuple[Panel, ...], ...]:
    """Return AUC over the bag size on the KDD-like data with Laplace noise, one curve for each epsilon."""
    epsilons = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
    traces = []
    for epsilon, color in zip((*epsilons, math.inf), (*ramp(len(epsilons)), COLORS["llp"]), strict=True):
        noisy = math.isfinite(epsilon)
        mechanism = "llp-laplace" if noisy else "llp"
        answers = stored.answers(
            "label-learning", {"data": "kdd-like", "mechanism": mechanism, "label_epsilon": epsilon}
        )
        places = sorted((float(fields["bag_size"]), *_scored(row)) for fields, row in answers)
        label = rf"LLP+Lap, $\varepsilon = {power(epsilon)}$" if noisy else "LLP, no noise"
        traces += _trace(label, color, MARKERS[mechanism], places)
    panel = Panel(
        title=PRIORS[DATA["kdd-like"]],
        x_label="bag size $k$",
        y_label="test AUC",
        traces=tuple(traces),
        scales=("log", "linear"),
    )
    return ((panel,),)


def _trade_offs(
    stored: Stored, field: str, values: tuple[float, ...], label: Callable[[float], str]
) -> tuple[tuple[Panel, ...], ...]:
    """Return a row of panels over the multiplicative advantage, and a row over the additive advantage."""
    noisy = [
        (label(value), color, "llp-geometric", {field: value})
        for value, color in zip(values, ramp(len(values)), strict=True)
    ]
    curves = [*_plain(), *noisy]
    return tuple(
        tuple(
            _panel(stored, data, problem, curves, first=column == 0, top=row == 0)
            for column, data in enumerate(DATA)
        )
        for row, problem in enumerate(("label-ratio-quantile", "label-advantage"))
    )


_Curve = tuple[str, str, str, Fields]
"""Label, colour, mechanism, and the fields that the points of the curve share."""


def _plain() -> list[_Curve]:
    return [(NAMES[mechanism], COLORS[mechanism], mechanism, {}) for mechanism in ("rr", "llp")]


def _panel(
    stored: Stored,
    data: str,
    problem: str,
    curves: list[_Curve],
    *,
    first: bool,
    top: bool,
    score: str = "label-learning",
) -> Panel:
    """Return a test score over one advantage."""
    least = LEAST_SHOWN if problem == "label-advantage" else 0.0
    reveals = {
        Setting.of(fields): number(row) for fields, row in stored.answers(problem, {"prior": DATA[data]})
    }
    traces = []
    for label, color, mechanism, shared in curves:
        asked = {"data": data, "model": "logistic", "mechanism": mechanism, **shared}
        learned = {Setting.of(fields): _scored(row) for fields, row in stored.answers(score, asked)}
        order = sorted(learned.keys() & reveals.keys(), key=lambda s: (s.label_epsilon, -s.bag_size))
        places = [(reveals[s], *learned[s]) for s in order if reveals[s] > least]
        traces += _trace(label, color, MARKERS[mechanism], places)
    return Panel(
        title=PRIORS[DATA[data]] if top else "",
        x_label=ADDITIVE if problem == "label-advantage" else MULTIPLICATIVE,
        y_label=SCORES[score] if first else "",
        traces=tuple(traces),
        scales=("log", "linear"),
    )


def _scored(row: Row) -> tuple[float, float]:
    """Return the mean score of the trainings, and its standard error."""
    return number(row), standard_error(row)


def _trace(label: str, color: str, marker: str, places: list[tuple[float, float, float]]) -> list[Trace]:
    """Return a curve through these points with bars of one standard error, or an empty list."""
    if not places:
        return []
    x, y, error = zip(*places, strict=True)
    band = tuple(tuple(a + side * e for a, e in zip(y, error, strict=True)) for side in (-1.0, 1.0))
    return [Trace(label=label, color=color, x=x, y=y, band=band, kind=Kind.ERRORS, marker=marker)]
