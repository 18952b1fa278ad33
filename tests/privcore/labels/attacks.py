"""Enumerated attacks on labels, the reference values, and the bounds that are compared with them.

The enumeration shares no code with the package: it lists all labels of the other members of a bag, and tries
all thresholds, or all outputs, as attacks. The result is exact, or slightly too small for Laplace noise.
"""

import csv
import itertools
import math
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from privcore import Answer, Method, Point, Problem, evaluate
from privcore.labels.bag_problems import BagAdvantage
from privcore.labels.bounds.root import LabelsBernstein, LabelsChernoff, LabelsFourier, LabelsRoot
from privcore.labels.bounds.variation import LabelsDominated, LabelsSmoothing, LabelsVariation, LabelsWu
from privcore.labels.problems import (
    LabelAdvantage,
    LabelAdvantageAt,
)

TABLE = Path(__file__).parents[1] / "data" / "labels.csv"
ROUNDING = 1e-9
"""Relative rounding of the enumeration, which adds a few hundred numbers."""

UPPER: tuple[Method, ...] = (
    LabelsWu(),
    LabelsDominated(),
    LabelsRoot(),
    LabelsBernstein(),
    LabelsChernoff(),
    LabelsVariation(),
    LabelsSmoothing(),
    LabelsSmoothing(form="published"),
    LabelsFourier(),
)
NOISE = (0.0625, 0.5, 1.0, 4.0)

Row = dict[str, str]


def answer(method: Method, problem: Problem) -> Answer:
    return evaluate(Point(problem=problem, method=method))


def rows(*measures: str) -> list[Row]:
    """Return the reference values of some measures, or of all."""
    with TABLE.open() as lines:
        return [row for row in csv.DictReader(lines) if not measures or row["measure"] in measures]


def law_of_sum(etas: Sequence[float]) -> list[float]:
    """Return the probabilities of 0, ..., n labels 1, by listing all labels."""
    law = [0.0] * (len(etas) + 1)
    for labels in itertools.product((0, 1), repeat=len(etas)):
        law[sum(labels)] += math.prod(eta if y else 1.0 - eta for eta, y in zip(etas, labels, strict=True))
    return law


def kernel(k: int, epsilon: float) -> list[list[float]]:
    """Return the probabilities of u given s of a clipped count with two-sided geometric noise."""
    r = math.exp(-epsilon)
    inside = [[(1.0 - r) / (1.0 + r) * r ** abs(u - s) for u in range(k + 1)] for s in range(k + 1)]
    for s in range(k + 1):
        inside[s][0], inside[s][k] = r**s / (1.0 + r), r ** (k - s) / (1.0 + r)
    return inside


def likelihoods(law: Sequence[float], mechanism: str, epsilon: float) -> list[tuple[float, float]]:
    """Return the likelihoods of every output for both labels, given the distribution of the others' sum."""
    k = len(law)
    exact = list(zip([0.0, *law], [*law, 0.0], strict=True))
    if mechanism == "llp":
        return exact
    table = kernel(k, epsilon)
    return [
        (
            math.fsum(exact[s][0] * table[s][u] for s in range(k + 1)),
            math.fsum(exact[s][1] * table[s][u] for s in range(k + 1)),
        )
        for u in range(k + 1)
    ]


def best_gain(eta: float, others: Sequence[float], mechanism: str, epsilon: float) -> float:
    """Return the gain of the best attack over the better blind guess."""
    law = law_of_sum(others)
    if mechanism != "llp-laplace":
        pairs = likelihoods(law, mechanism, epsilon)
        return math.fsum(max(eta * one, (1.0 - eta) * zero) for one, zero in pairs) - max(eta, 1.0 - eta)
    k = len(law)
    t = np.linspace(-5.0, k + 5.0, 1001)[:, None]
    distance = np.arange(k + 1) - t
    above = np.where(
        distance > 0.0, 1.0 - 0.5 * np.exp(-epsilon * np.abs(distance)), 0.5 * np.exp(epsilon * distance)
    )
    one, zero = above[:, 1:] @ np.array(law), above[:, :-1] @ np.array(law)
    return max(0.0, float(np.max(eta * one + (1.0 - eta) * (1.0 - zero))) - max(eta, 1.0 - eta))


def mean_gain(problem: LabelAdvantage | LabelAdvantageAt) -> float:
    """Return the mean of the best gains over all etas of the members, for a prior with few values."""
    values, weights = problem.distribution.atoms or ((), ())
    k, atoms = problem.bag_size, list(zip(values, weights, strict=True))
    owns = [(problem.eta, 1.0)] if isinstance(problem, LabelAdvantageAt) else atoms
    return math.fsum(
        weight
        * math.prod(w for _, w in others)
        * best_gain(eta, [v for v, _ in others], problem.mechanism, problem.label_epsilon)
        for eta, weight in owns
        for others in itertools.product(atoms, repeat=k - 1)
    )


def bag_gain(problem: BagAdvantage) -> float:
    """Return the mean of the best gains in a bag."""
    etas = list(problem.etas)
    gains = [
        best_gain(eta, [*etas[:j], *etas[j + 1 :]], problem.mechanism, problem.label_epsilon)
        for j, eta in enumerate(etas)
    ]
    return math.fsum(gains) / len(gains)


def drawn_problems() -> Iterator[LabelAdvantage | LabelAdvantageAt | BagAdvantage]:
    """Yield small problems of all kinds with an answer by enumeration."""
    rng = random.Random("small bags")
    for count in range(120):
        mechanism = rng.choice(("llp", "llp-laplace", "llp-geometric"))
        noise: dict[str, Any] = {} if mechanism == "llp" else {"label_epsilon": rng.choice(NOISE)}
        k = rng.randint(1, 5)
        p, q, w = (round(rng.betavariate(0.7, 0.7), 3) for _ in range(3))
        prior = f"point({p})" if rng.random() < 0.4 else f"two-point({p},{q},{w})"
        if count % 3 == 0:
            yield LabelAdvantage(mechanism=mechanism, prior=prior, bag_size=k, **noise)
        elif count % 3 == 1:
            eta = p if rng.random() < 0.5 else q
            yield LabelAdvantageAt(mechanism=mechanism, prior=prior, bag_size=k, eta=eta, **noise)
        else:
            etas = ",".join(f"{rng.betavariate(0.7, 0.7):.3f}" for _ in range(k + 1))
            yield BagAdvantage(mechanism=mechanism, bag=etas, **noise)


def truth(problem: LabelAdvantage | LabelAdvantageAt | BagAdvantage) -> float:
    return bag_gain(problem) if isinstance(problem, BagAdvantage) else mean_gain(problem)
