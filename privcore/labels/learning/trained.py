"""Utility of privatised labels, estimated by training on them and scoring on test data."""

import math
from functools import cache
from importlib.util import find_spec
from typing import Annotated, get_args

import numpy as np
from numpy.typing import NDArray

from privcore.answer import Answer, Status
from privcore.labels import params as label_params
from privcore.labels.learning.datasets import SIZES, load
from privcore.labels.learning.release import release
from privcore.labels.learning.utility_problems import LabelLearning, Learned
from privcore.method import Cost, Direction, Method
from privcore.papers import BUSA_FEKETE

_LEAST_EPSILON = 1e-6
"""Below this the debiased labels, of size 1 / epsilon, hide every signal and exceed single precision."""

_SECONDS = {"logistic": (0.13, 6e-8), "mlp": (0.19, 3e-7)}
"""Seconds of compilation, shared by all points with the same data set, model and bag size, and seconds of a
trial for each number in the training features."""


class LabelsTrained(Method[Learned]):
    """Release the training labels, train a model on the release, and score it on clean test labels.

    The loss is the cross-entropy of debiased labels for randomized response, and of debiased proportions for
    bags. The value is the mean score of the trials, AUC or cross-entropy, and the detail states its standard
    error. Both are for the fixed data set: another test set with the same distribution would change the
    score by more.
    """

    name = "labels.trained"
    problems = get_args(Learned)
    direction = Direction.ESTIMATE
    reference = f"{BUSA_FEKETE}, Section 4 and Appendices C and D"
    shares = ("data", "model", "bag_size")

    trials: Annotated[int, label_params.TRIALS] = 3

    def applies(self, problem: Learned) -> str | None:
        if not _can_learn():
            return "Training needs JAX, optax and scikit-learn: pip install 'privsweep[learn]'."
        if problem.label_epsilon < _LEAST_EPSILON:
            return (
                f"Below label_epsilon={_LEAST_EPSILON} the noise is too large to train in single precision."
            )
        return None

    def cost(self, problem: Learned) -> Cost:
        if self.applies(problem) is not None:
            return Cost(seconds=1e-4, bytes=1e4)
        train, test, dimension = SIZES[problem.data]
        compiling, per_number = _SECONDS[problem.model]
        # The data set stays in memory; a release and the orders of its bags take 200 bytes per example.
        memory = 8.0 * (train + test) * dimension + 200.0 * train
        return Cost(seconds=compiling + self.trials * (0.004 + per_number * train * dimension), bytes=memory)

    def answer(self, problem: Learned, seed: int) -> Answer:
        # The import takes half a second, and the package is optional.
        from privcore.labels.learning.training import train_and_score

        data = load(problem.data)
        scores, rates = [], []
        for trial in range(self.trials):
            rng = np.random.default_rng((seed, trial))
            released = release(
                problem.mechanism, data.train_labels, problem.bag_size, problem.label_epsilon, rng
            )
            trained = train_and_score(problem.model, data.train_features, released, data.test_features, rng)
            if trained is None:
                return Answer.without(Status.FAILED, "Training diverged at every learning rate.")
            logits, rate = trained
            scores.append(_score(problem, data.test_labels, logits))
            rates.append(rate)
        error = float(np.std(scores, ddof=1)) / math.sqrt(self.trials)
        used = ", ".join(f"{rate:g}" for rate in sorted(set(rates)))
        return Answer.about(
            float(np.mean(scores)),
            detail=f"{self.trials} trials, standard error {error:.4f}, learning rate {used}",
        )


def _score(problem: Learned, labels: NDArray[np.int64], logits: NDArray[np.float64]) -> float:
    """Return the AUC of the logits, or their mean cross-entropy."""
    from sklearn.metrics import roc_auc_score

    if isinstance(problem, LabelLearning):
        return float(roc_auc_score(labels, logits))
    return float(np.mean(np.logaddexp(0.0, logits) - labels * logits))


@cache
def _can_learn() -> bool:
    """Return whether the packages of the extra `learn` are installed."""
    return all(find_spec(package) for package in ("jax", "optax", "sklearn"))
