"""Estimate of the share of records that a learner fits, by training it several times."""

import math
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import Annotated

import numpy as np

from privcore.answer import Answer, Status
from privcore.membership.experiments import params as experiment_params
from privcore.membership.experiments.problems import MembershipFit
from privcore.membership.experiments.residuals import FRESH, Residuals, linear, nearest
from privcore.method import Cost, Direction, Method
from privcore.papers import AUBINAIS

_LEAST_LEVEL = 1e-10
"""Loss below which a network's loss is rounding error in single precision."""
_MOST_SECONDS, _MOST_BYTES = 1800.0, 4e9
_KEPT = 128


class MembershipTrained(Method[MembershipFit]):
    """Train R learners on independent data sets, and average the share of records whose loss is small.

    Noise is integrated out analytically for fresh records, and for least squares in the training set too. The
    seed of a run is that of its data set, not of the point. So points that differ only in the level, in the
    tested record or in the number of iterations share the same runs: training is done once, and their errors
    are dependent. The value is rounded to six digits, so it does not depend on how threads split sums.
    """

    name = "membership.trained"
    problems = (MembershipFit,)
    direction = Direction.ESTIMATE
    reference = f"{AUBINAIS}, Section 6.1, Figures 1 and 2"
    shares = (
        "learner",
        "coordinates",
        "records",
        "noise_deviation",
        "width",
        "stopping_loss",
    )

    runs: Annotated[int, experiment_params.RUNS] = 3

    def applies(self, problem: MembershipFit) -> str | None:
        network = problem.learner == "network"
        if network and not _can_learn():
            return "Training a network needs JAX: pip install 'privsweep[learn]'."
        if network and problem.loss_level < _LEAST_LEVEL:
            return f"Below loss_level={_LEAST_LEVEL} a network's loss is rounding error in single precision."
        if self.runs * _run_seconds(problem) > _MOST_SECONDS:
            return f"Training would take more than {_MOST_SECONDS:.0f} s."
        if _bytes(problem, self.runs) > _MOST_BYTES:
            return f"Training would need more than {_MOST_BYTES:.0e} bytes."
        return None

    def cost(self, problem: MembershipFit) -> Cost:
        if self.applies(problem) is not None:
            return Cost(seconds=1e-4, bytes=1e4)
        # Compilation (half a second) is shared by points whose arrays have the same shapes.
        compiling = 0.15 if problem.learner == "network" else 0.0
        seconds = compiling + self.runs * _run_seconds(problem)
        return Cost(seconds=seconds, bytes=_bytes(problem, self.runs))

    def answer(self, problem: MembershipFit, seed: int) -> Answer:
        shares = []
        for number in range(self.runs):
            train, fresh = _residuals(problem, number)
            if not (np.isfinite(train.mean).all() and np.isfinite(fresh.mean).all()):
                return Answer.without(Status.FAILED, "Training overflowed single precision.")
            shares.append((train if problem.tested == "train" else fresh).share(problem.loss_level))
        error = float(np.std(shares, ddof=1)) / math.sqrt(self.runs)
        detail = f"{self.runs} runs, standard error {error:.2g}, from {min(shares):.4g} to {max(shares):.4g}"
        return Answer.about(float(f"{np.mean(shares):.6g}"), detail=detail)


def _residuals(problem: MembershipFit, number: int) -> tuple[Residuals, Residuals]:
    """Return the residuals of the training records and of fresh records, in the run of this number."""
    d, n, s = problem.coordinates, problem.records, problem.noise_deviation
    if problem.learner != "network":
        return _untrained(problem.learner, d, n, s, number)
    # The import takes half a second, and JAX is optional.
    from privcore.membership.experiments.network import NetworkRun, residuals

    return residuals(NetworkRun(d, n, problem.width, s, problem.stopping_loss, number), problem.iterations)


@lru_cache(maxsize=_KEPT)
def _untrained(learner: str, d: int, n: int, s: float, number: int) -> tuple[Residuals, Residuals]:
    """Return the residuals of a learner that needs no training."""
    return {"linear": linear, "nearest": nearest}[learner](d, n, s, (d, n, number))


def _run_seconds(problem: MembershipFit) -> float:
    """Return the expected seconds of a run, without compilation."""
    d, n, w = float(problem.coordinates), float(problem.records), float(problem.width)
    drawing = 3e-8 * (n + FRESH) * d
    if problem.learner == "nearest":
        return 0.002 + drawing + 8e-11 * FRESH * n * (d + 10.0)
    if problem.learner == "linear":
        k = min(d, n)
        return 0.002 + drawing + 1.5e-10 * k * k * (max(d, n) + FRESH) + 1e-10 * FRESH * k * d
    step = 1.5e-4 + 1e-7 * n + n * w * (3e-9 + 8e-11 * d) + w * (2e-8 + 8e-9 * d)
    return 0.02 + drawing + problem.iterations * step + 3e-10 * FRESH * w * (d + 10.0)


def _bytes(problem: MembershipFit, runs: int) -> float:
    """Return the expected memory of the runs: a data set with its factors, or with the kept states."""
    d, n, w = float(problem.coordinates), float(problem.records), float(problem.width)
    data = 40.0 * (n + 500.0) * d + 8.0 * 500.0 * n + 32.0 * _KEPT * (n + FRESH)
    if problem.learner == "linear":
        return data + 32.0 * min(d, n) ** 2
    states = 12.0 * (d + 3.0) * w * min(_KEPT, runs * (1.0 + problem.iterations / 250.0))
    return data + states + 16.0 * (n + 500.0) * w


@cache
def _can_learn() -> bool:
    """Return whether JAX is installed."""
    return find_spec("jax") is not None
