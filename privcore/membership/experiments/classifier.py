"""Utility of quantised images, by training classifiers on them."""

import math
from functools import cache
from importlib.util import find_spec
from typing import Annotated

import numpy as np

from privcore.answer import Answer, Status
from privcore.membership.experiments import params as experiment_params
from privcore.membership.experiments.digits import POOL, TESTED, codes
from privcore.membership.experiments.problems import MembershipQuantised
from privcore.method import Cost, Direction, Method
from privcore.papers import AUBINAIS


class MembershipClassifier(Method[MembershipQuantised]):
    """Draw training records, train a classifier and measure its accuracy on the test images, R times.

    The standard error covers the draws and the initial weights. Other test images would move the value by
    about the binomial error of 400 images, at most 0.025.
    """

    name = "membership.classifier"
    problems = (MembershipQuantised,)
    direction = Direction.ESTIMATE
    reference = f"{AUBINAIS}, Section 6.2 and Table 1, on the digits of UCI"
    shares = ("clusters",)

    runs: Annotated[int, experiment_params.RUNS] = 2

    def applies(self, problem: MembershipQuantised) -> str | None:
        return (
            None if _can_learn() else "Training needs JAX and scikit-learn: pip install 'privsweep[learn]'."
        )

    def cost(self, problem: MembershipQuantised) -> Cost:
        if self.applies(problem) is not None:
            return Cost(seconds=1e-4, bytes=1e4)
        inputs = problem.clusters or POOL + TESTED
        # Compilation (half a second) and the clusters are shared by points with the same number of clusters.
        return Cost(seconds=0.15 + self.runs * (0.02 + 2.5e-3 * inputs), bytes=2e7 + 1e4 * inputs)

    def answer(self, problem: MembershipQuantised, seed: int) -> Answer:
        # The import takes half a second, and JAX is optional.
        from privcore.membership.experiments.three_layers import classify

        images = codes(problem.clusters)
        cells = images.cells()
        tested, trained = [], []
        for run in range(self.runs):
            rng = np.random.default_rng((seed, run))
            drawn = rng.multinomial(problem.records, cells.ravel() / POOL).reshape(cells.shape)
            classes = classify(images.centres, drawn, rng)
            if classes is None:
                return Answer.without(Status.FAILED, "Training overflowed single precision.")
            tested.append(float(np.mean(classes[images.tested] == images.tested_digits)))
            trained.append(float(drawn[np.arange(len(drawn)), classes].sum() / problem.records))
        error = float(np.std(tested, ddof=1)) / math.sqrt(self.runs)
        return Answer.about(
            float(np.mean(tested)),
            detail=f"{self.runs} runs, standard error {error:.4f}, training accuracy {np.mean(trained):.4f}",
        )


@cache
def _can_learn() -> bool:
    """Return whether the packages of the extra `learn` are installed."""
    return all(find_spec(package) for package in ("jax", "sklearn"))
