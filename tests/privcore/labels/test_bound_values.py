"""Explicit bounds on label inference: their reference values, and their ratios to the truth."""

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from scipy.stats import binom

from privcore import Method
from privcore.labels.bounds.likelihood import ratio_bound
from privcore.labels.bounds.root import (
    LabelsBernstein,
    LabelsChernoff,
    LabelsFourier,
    LabelsRoot,
    advantage_bound,
    bernstein_bound,
    chernoff_bound,
    difference_bound,
    half_width,
    published_tail,
    published_threshold,
    root_bound,
)
from privcore.labels.bounds.tails import noise_variation
from privcore.labels.bounds.variation import (
    LabelsDominated,
    LabelsSmoothing,
    LabelsVariation,
    LabelsWu,
    published_bound,
    wu_bound,
)
from privcore.labels.guess import LabelsBlind
from privcore.labels.problems import (
    LabelAdvantage,
)
from tests.privcore.labels.attacks import (
    ROUNDING,
    UPPER,
    Row,
    answer,
    rows,
)

DIGITS = 1e-9
"""Relative precision of the comparison with reference values."""


def half_tanh(epsilon: float) -> float:
    problem = LabelAdvantage(mechanism="llp-geometric", prior="0.5", bag_size=8, label_epsilon=epsilon)
    return answer(LabelsDominated(), problem).upper


FORMULAS: dict[str, Callable[[dict[str, float]], float]] = {
    "c_k_printed": lambda a: half_width(int(a["k_others"]), a["p"] * (1 - a["p"])),
    "LemmaA2_printed": lambda a: advantage_bound(int(a["k_others"]), a["p"] * (1 - a["p"]), a["mu"]),
    "LemmaA3_printed": lambda a: difference_bound(int(a["k_others"]), a["p"] * (1 - a["p"]), a["mu"]),
    "Thm3.2_sqrt": lambda a: root_bound(a["p"], int(a["k"])),
    "Thm3.2_bernstein": lambda a: bernstein_bound(a["p"], int(a["k"])),
    "chernoff_(4p(1-p))^(k/2)": lambda a: chernoff_bound(a["p"], int(a["k"])),
    "P_alpha_gt_half": lambda a: float(binom.sf(int(a["k"]) // 2, int(a["k"]), a["p"])),
    "Wu_1-2/(1+e^eps)": lambda a: wu_bound(a["eps"]),
    "Thm6.4_first_term": lambda a: published_bound(a["mu"], a["eps"]),
    "sharp_2mu(1-e^(-eps/2))": lambda a: 2.0 * a["mu"] * noise_variation("llp-laplace", a["eps"]),
    "sharp_2mu_tanh(eps/2)": lambda a: 2.0 * a["mu"] * noise_variation("llp-geometric", a["eps"]),
    "sharp_half_tanh": lambda a: half_tanh(a["eps"]),
    "eq13_threshold": lambda a: published_threshold(a["beta"], int(a["k"]), a["mu"]),
    "eq13_probability": lambda a: published_tail(a["beta"], int(a["k"]), a["mu"]),
    "Thm3.7_printed_threshold": lambda a: ratio_bound(a["p"], int(a["k"]), math.log(1.0 / a["delta"])),
}


def arguments(row: Row) -> dict[str, float]:
    given = {name: float(row[name]) for name in ("eps", "k") if row[name]}
    return given | (json.loads(row["args"]) if row["args"] else {})


@pytest.mark.parametrize("measure", FORMULAS)
def test_formulas_have_their_reference_values(measure: str) -> None:
    found = [row for row in rows(measure) if row["prior"] == "bound"]
    assert found
    for row in found:
        assert FORMULAS[measure](arguments(row)) == pytest.approx(float(row["value"]), rel=DIGITS), row


def test_every_bound_in_the_table_is_compared() -> None:
    assert {row["measure"] for row in rows() if row["prior"] == "bound"} == set(FORMULAS)


def test_the_blind_bound_has_its_reference_values() -> None:
    found = rows("EAdv_feature_blind")
    assert len(found) >= 4
    for row in found:
        problem = LabelAdvantage(mechanism="llp", prior="two-point(0.05,0.7,0.25)", bag_size=int(row["k"]))
        lower = answer(LabelsBlind(), problem).lower
        assert float(row["value"]) * (1.0 - DIGITS) <= lower <= float(row["value"]) * (1.0 + 1e-12), row


def point_rows() -> list[tuple[LabelAdvantage, float]]:
    """Return the exact advantages of labels without features, of sums and of noisy sums."""
    names = {"LLP": "llp", "LLP+Lap": "llp-laplace", "LLP+Geom": "llp-geometric"}
    found = []
    for row in rows("EAdv"):
        if row["prior"] == "point" and row["mechanism"] in names and not row["stderr"]:
            noise: dict[str, Any] = {"label_epsilon": float(row["eps"])} if row["eps"] else {}
            p = json.loads(row["args"])["p"]
            problem = LabelAdvantage(
                mechanism=names[row["mechanism"]], prior=f"point({p})", bag_size=int(row["k"]), **noise
            )
            found.append((problem, float(row["value"])))
    return found


def test_the_bounds_lie_around_the_exact_values_of_constant_eta() -> None:
    assert len(point_rows()) > 20
    for problem, value in point_rows():
        for method in UPPER:
            if method.applies(problem) is None:
                assert answer(method, problem).upper >= value * (1.0 - ROUNDING), (method, problem)
        if problem.mechanism != "llp-laplace":
            lower = answer(LabelsBlind(), problem).lower
            assert value * (1.0 - DIGITS) - 1e-230 <= lower <= value * (1.0 + ROUNDING), problem


def test_the_bounds_lie_above_the_other_reference_values() -> None:
    priors = {
        "uniform": "uniform",
        "beta(2,30)": "beta(2,30)",
        "twopoint(0.05,0.7;w=0.25)": "two-point(0.05,0.7,0.25)",
        "logitnormal(0.2132,2.2453)": "logit-normal(0.2132,2.2453)",
        "logitnormal(-3.661,1.1815)": "logit-normal(-3.661,1.1815)",
    }
    names = {"RR": "rr", "LLP": "llp", "LLP+Lap": "llp-laplace", "LLP+Geom": "llp-geometric"}
    compared = 0
    for row in rows("EAdv"):
        if row["prior"] not in priors or row["mechanism"] not in names:
            continue
        noise: dict[str, Any] = {"label_epsilon": float(row["eps"])} if row["eps"] else {}
        k = int(row["k"] or 1) if row["mechanism"] != "RR" else 1
        problem = LabelAdvantage(
            mechanism=names[row["mechanism"]], prior=priors[row["prior"]], bag_size=k, **noise
        )
        value, error = float(row["value"]), 5.0 * float(row["stderr"] or 0.0)
        compared += 1
        for method in UPPER:
            if method.applies(problem) is None:
                assert answer(method, problem).upper >= value * (1.0 - DIGITS) - error, (method, row)
        if LabelsBlind().applies(problem) is None:
            assert answer(LabelsBlind(), problem).lower <= value * (1.0 + DIGITS) + error, row
    assert compared >= 50


LOOSENESS: tuple[tuple[Method, LabelAdvantage, float, float, float], ...] = (
    # method, problem, truth from the table or a closed form, least and largest ratio of bound to truth
    (LabelsWu(), LabelAdvantage(mechanism="rr", prior="uniform", label_epsilon=1.0), 0.05338807, 8.65, 8.66),
    (
        LabelsDominated(),
        LabelAdvantage(mechanism="llp-geometric", prior="uniform", bag_size=8, label_epsilon=1.0),
        0.0214899,
        2.48,
        2.49,
    ),
    (LabelsRoot(), LabelAdvantage(mechanism="llp", prior="0.5", bag_size=512), 0.01762231774, 1.25, 1.26),
    (LabelsBernstein(), LabelAdvantage(mechanism="llp", prior="0.3", bag_size=512), 7.2101e-24, 1.1e7, 1.2e7),
    (
        LabelsChernoff(),
        LabelAdvantage(mechanism="llp", prior="0.3", bag_size=512),
        7.2101e-24,
        5000.0,
        6000.0,
    ),
    (LabelsVariation(), LabelAdvantage(mechanism="llp", prior="0.5", bag_size=512), 0.01762231774, 1.0, 1.01),
    (LabelsVariation(), LabelAdvantage(mechanism="llp", prior="uniform", bag_size=64), 0.0058333, 7.1, 7.2),
    (
        LabelsSmoothing(),
        LabelAdvantage(mechanism="llp-geometric", prior="uniform", bag_size=8, label_epsilon=0.25),
        0.00293209,
        14.1,
        14.2,
    ),
    (LabelsFourier(), LabelAdvantage(mechanism="llp", prior="uniform", bag_size=512), 7.31951e-4, 78.0, 80.0),
)


@pytest.mark.parametrize("case", LOOSENESS, ids=lambda case: f"{case[0].name} {case[1].prior}")
def test_a_bound_is_as_loose_as_it_was(case: tuple[Method, LabelAdvantage, float, float, float]) -> None:
    method, problem, value, least, largest = case
    assert least <= answer(method, problem).upper / value <= largest


def test_the_blind_attack_misses_a_third_where_features_tell_much() -> None:
    problem = LabelAdvantage(mechanism="llp", prior="two-point(0.05,0.7,0.25)", bag_size=8)
    assert 0.014 < answer(LabelsBlind(), problem).lower < 0.0142
