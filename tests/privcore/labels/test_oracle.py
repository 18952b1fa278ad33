"""Reference values for label inference: brute force in 60 digits, quadrature, and simulations.

Rows without a standard error are exact, and a proved enclosure must contain them, with a relative width of at
most 1e-9 (1e-8 for values below 1e-20). Simulated rows agree within 4 standard errors. The rows of bounds and
debiased labels are compared in test_bounds.py and test_release.py.
"""

import csv
import json
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privcore import Answer, Point, evaluate, find, find_problem
from privcore.distributions.prior_notation import prior
from privcore.labels.sums.poisson_binomial import leave_one_out, pmf

DATA = Path(__file__).parents[1] / "data" / "labels.csv"
MECHANISMS = {
    "NONE": "none",
    "RR": "rr",
    "kRR": "rr",
    "LLP": "llp",
    "LLP-hist": "llp",
    "LLP+Geom": "llp-geometric",
    "LLP+Lap": "llp-laplace",
}
ELSEWHERE = ("debiased", "var_", "E_grad_sq")
"""Prefixes of measures of learning; their rows are compared in test_release.py and test_learning.py."""

Row = dict[str, str]


def read() -> list[Row]:
    with DATA.open(newline="") as file:
        return list(csv.DictReader(file))


ROWS = read()
DOUBLE_ERROR = 1e-12
"""Relative error of the rows computed in double precision."""


def arguments(row: Row) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(row["args"]) if row["args"] else {}
    return found


def etas_of(row: Row) -> list[float]:
    text = row["prior"]
    if text.startswith("eta_j=(2j+1)/128"):
        return [(2 * j + 1) / 128 for j in range(int(row["k"]))]
    if text.startswith("eta_j=(j+1)/2000"):
        return [(j + 1) / 2000 for j in range(int(row["k"]))]
    known = {"fixed:v3": "0.2,0.5,0.8", "fixed:v8": "0.05,0.15,0.35,0.49,0.51,0.66,0.85,0.95"}
    return [float(word) for word in known.get(text, text.partition("=")[2]).split(",")]


def prior_of(row: Row) -> str:
    text = row["prior"].replace("logitnormal", "logit-normal").replace("twopoint", "two-point")
    text = text.replace(";w=", ",")
    found = arguments(row)
    return f"point({found.get('p', found.get('eta'))})" if text == "point" else text


def asked(row: Row, name: str, **fields: Any) -> Answer:
    """Return the best answer of the exact methods, or of the simulation if no method is exact."""
    epsilon = float(row["eps"]) if row["eps"] else math.inf
    problem = find_problem(name).from_fields(
        {"mechanism": MECHANISMS[row["mechanism"]], "label_epsilon": epsilon} | fields
    )
    answers = []
    for method in (*EXACT, "labels.sampling"):
        kind = find(method)
        if isinstance(problem, kind.problems) and kind().applies(problem) is None:
            answers.append(evaluate(Point(problem=problem, method=kind())))
            if answers[-1].ok and (answers[-1].value is not None or answers[-1].rigorous):
                return answers[-1]
    raise AssertionError(f"No method answers {problem}.")


EXACT = (
    "labels.response",
    "labels.infinite",
    "labels.composition",
    "labels.gauss",
    "labels.bag",
    "labels.classes",
)


def over_prior(name: str, **names: str) -> Callable[[Row], Answer]:
    """Return the problem for a measure over a prior, with the fields in the arguments of the row."""
    return lambda row: asked(
        row,
        name,
        prior=prior_of(row),
        bag_size=int(row["k"]),
        **{field: arguments(row)[key] for field, key in names.items()},
    )


def on_bag(name: str, row: Row, **fields: Any) -> Answer:
    return asked(row, name, bag=",".join(map(repr, etas_of(row))), **fields)


def number(value: float, error: float = 0.0) -> Answer:
    """Return a plain number as an enclosure of a relative error."""
    return Answer.enclosure(value - abs(value) * error, value + abs(value) * error)


def member(row: Row) -> int:
    return int(arguments(row).get("i", 0)) + 1


def released(row: Row) -> float:
    found = arguments(row)
    return float(found["z"]) if "z" in found else float(found["z_prop"]) * int(row["k"])


def posterior(row: Row) -> Answer:
    if row["prior"] == "point":
        return asked(row, "label-posterior", bag=repr(arguments(row)["eta"]), released=released(row))
    return on_bag("label-posterior", row, released=released(row), member=member(row))


def ratio(row: Row) -> Answer:
    """Return the signed ratio: positive if the posterior is above the prior."""
    fields = {"released": released(row), "member": member(row)}
    size, after = on_bag("label-release-ratio", row, **fields), on_bag("label-posterior", row, **fields)
    if after.lower >= etas_of(row)[member(row) - 1]:
        return size
    return Answer(lower=-size.upper, upper=-size.lower)


@cache
def bag_laws(etas: tuple[float, ...]) -> np.ndarray:
    return leave_one_out(np.array(etas))


def of_member(row: Row) -> Answer:
    """Return the advantage of one member: the sum over the bag, minus the advantages of the others."""
    from privcore.distributions.prior_finite import FinitePrior
    from privcore.labels.sums.rows import advantage

    etas = tuple(etas_of(row))
    j = member(row) - 1
    laws = bag_laws(etas)[j : j + 1]
    epsilon = float(row["eps"]) if row["eps"] else math.inf
    low, high = advantage(laws, MECHANISMS[row["mechanism"]], epsilon, FinitePrior.point(etas[j]))
    return Answer.enclosure(max(0.0, float(low[0])), float(high[0]))


def of_bag(row: Row) -> Answer:
    etas = etas_of(row)
    blind = sum(max(x, 1.0 - x) for x in etas) / len(etas)
    gain = on_bag("label-bag-advantage", row)
    accuracy = row["measure"].startswith("EAU")
    return Answer.enclosure(gain.lower + blind * accuracy, gain.upper + blind * accuracy)


def infinite(row: Row) -> Answer:
    if not row["prior"].startswith("fixed"):
        return over_prior("label-ratio-infinite")(row)
    etas = etas_of(row)
    law, eta = leave_one_out(np.array(etas))[member(row) - 1], etas[member(row) - 1]
    one, zero = np.append(0.0, law), np.append(law, 0.0)
    sure = (one == 0.0) != (zero == 0.0)
    return number(float((eta * one + (1.0 - eta) * zero)[sure].sum()), 1e-14)


def tail(row: Row) -> Answer:
    theta = arguments(row)["theta"]
    return asked(
        row, "label-advantage-tail", prior=prior_of(row), bag_size=int(row["k"]), threshold=theta, bags=1
    )


def classes(row: Row) -> Answer:
    rows = row["prior"].partition(":")[2].split(";")
    first = int(arguments(row).get("i", 0))
    rows = [rows[first], *rows[:first], *rows[first + 1 :]]
    return asked(row, "class-advantage", classes=";".join(rows))


def blind(row: Row) -> Answer:
    from privcore.labels.sums.poisson_binomial import binomial
    from privcore.labels.sums.rows import advantage

    law = prior(prior_of(row))
    low, high = advantage(binomial(int(row["k"]) - 1, law.mean)[None, :], "llp", math.inf, law)
    return Answer.enclosure(float(low[0]), float(high[0]))


def individual(row: Row) -> Answer:
    if row["mechanism"] == "kRR":
        return classes(row)
    if row["prior"] == "point":
        return asked(row, "label-advantage", prior=f"point({arguments(row)['eta']})", bag_size=1)
    problem = find_problem("label-advantage-at").from_fields(
        {
            "mechanism": MECHANISMS[row["mechanism"]],
            "label_epsilon": float(row["eps"]) if row["eps"] else math.inf,
            "prior": prior_of(row),
            "bag_size": int(row["k"]),
            "eta": arguments(row)["eta"],
        }
    )
    method = "labels.composition" if problem.distribution.atoms else "labels.cells"  # type: ignore[attr-defined]
    return evaluate(Point(problem=problem, method=find(method).from_knobs(KNOBS.get(method, {}))))


KNOBS = {"labels.cells": {"outputs": 200_000}}

MEASURES: dict[str, Callable[[Row], Answer]] = {
    "EAdv": over_prior("label-advantage"),
    "EAU_informed": over_prior("label-attack-accuracy"),
    "IEAdv": individual,
    "EAdv_feature_blind": blind,
    "HPAdv": tail,
    "P_absI_gt": over_prior("label-ratio-tail", log_ratio="t"),
    "absI_quantile": over_prior("label-ratio-quantile", level="level"),
    "P_absI_inf": infinite,
    "AdvX_i": lambda row: classes(row) if row["mechanism"] == "LLP-hist" else of_member(row),
    "AdvX_bag": of_bag,
    "EAU_informed_bag": of_bag,
    "posterior": posterior,
    "I": ratio,
    "pb_pmf": lambda row: number(float(pmf(np.array(etas_of(row)))[arguments(row)["s"]]), 5e-12),
    "loo_pmf": lambda row: number(
        float(bag_laws(tuple(etas_of(row)))[arguments(row)["j"], arguments(row)["s"]]), 5e-12
    ),
    "log10_EAdv": lambda row: number(log10_advantage(int(row["k"]), arguments(row)["p"]), 1e-12),
    "mean_eta": lambda row: number(prior(prior_of(row)).mean, 1e-12),
    "mu=E[eta(1-eta)]": lambda row: number(prior(prior_of(row)).label_variance, 1e-12),
    "E_min_eta": lambda row: number(prior(prior_of(row)).blind, 1e-12),
}
OURS = [
    row
    for row in ROWS
    if row["prior"] != "bound" and not row["measure"].startswith((*ELSEWHERE, "sum_abs_diff"))
]


def log10_advantage(k: int, p: float) -> float:
    """Return the logarithm of an advantage below the range of doubles, from that of a smaller bag.

    The advantage of independent labels is a sum of positive terms, which are scaled here explicitly.
    """
    s = np.arange(k // 2 + 1, k + 1)
    logs = [
        math.lgamma(k + 1)
        - math.lgamma(x + 1)
        - math.lgamma(k - x + 1)
        + x * math.log(p)
        + (k - x) * math.log1p(-p)
        for x in s.tolist()
    ]
    largest = max(logs)
    total = math.fsum(
        (2 * x / k - 1) * math.exp(log - largest) for x, log in zip(s.tolist(), logs, strict=True)
    )
    return (largest + math.log(total)) / math.log(10.0)


def test_every_measure_of_the_file_is_compared_somewhere() -> None:
    assert {row["measure"] for row in OURS} == set(MEASURES)


@pytest.mark.parametrize("row", [r for r in OURS if not r["stderr"]], ids=lambda row: row["id"])
def test_an_exact_row_lies_in_a_narrow_enclosure(row: Row) -> None:
    truth, answer = float(row["value"]), MEASURES[row["measure"]](row)
    if math.isinf(truth):
        assert truth in (answer.lower, answer.upper)
        return
    error = DOUBLE_ERROR * abs(truth) + 1e-17  # etas such as 0.3 are rounded
    if (answer.rigorous and answer.lower > 0.0) or answer.upper < 0.4:
        assert answer.lower - error <= truth <= answer.upper + error
    best = answer.value if answer.value is not None else 0.5 * (answer.lower + answer.upper)
    allowed = 1e-8 if abs(truth) < 1e-20 else 1e-9
    tiny = 1e-280 if truth else 1e-15
    assert best == pytest.approx(truth, rel=allowed, abs=tiny)
    if answer.value is None:
        assert answer.upper - answer.lower <= allowed * abs(truth) + 1e-11 * (row["measure"] == "I") + tiny


@pytest.mark.parametrize("row", [r for r in OURS if r["stderr"]], ids=lambda row: row["id"])
def test_a_simulated_row_agrees_within_4_standard_errors(row: Row) -> None:
    answer = MEASURES[row["measure"]](row)
    spread = float(row["stderr"])
    if answer.value is None:
        assert answer.lower - 4.0 * spread <= float(row["value"]) <= answer.upper + 4.0 * spread
    elif row["measure"] == "absI_quantile":
        assert answer.lower - spread <= float(row["value"]) <= answer.upper + spread
    else:
        ours = float(answer.detail.rpartition("standard error ")[2].partition(",")[0])
        assert abs(answer.value - float(row["value"])) <= 4.0 * math.hypot(spread, ours)
