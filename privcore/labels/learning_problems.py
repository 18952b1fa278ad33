"""Problems about the utility of privatised labels: the AUC and the loss of a model trained on them."""

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated

from privcore.constraint import AtMost, NoneOf
from privcore.labels import params as label_params
from privcore.labels.datasets import SIZES
from privcore.labels.problems import MECHANISM, ReleaseProblem

FEWEST_BAGS = 4
"""Smallest number of bags that leaves enough bags for training in addition to the held-out bags."""


@dataclass(frozen=True, kw_only=True)
class TrainedModel(ReleaseProblem):
    """Base of the problems about a model that is trained on the features and the released labels.

    The expectation is over the release, the order of the examples and the initial weights; the data set and
    its split are fixed. The mechanism `llp` with bags of one example releases the clean labels.
    """

    constraints = (
        NoneOf(
            "mechanism",
            ("none",),
            "Expected a mechanism that releases labels or sums, got mechanism=none.",
        ),
        *MECHANISM,
        AtMost(
            "bag_size",
            "largest_bag",
            "Expected bag_size <= {bound}, a quarter of the training examples of {data}, got "
            "bag_size={bag_size}.",
        ),
    )

    stated = MappingProxyType(
        {
            "model": "logistic (logistic regression) or mlp (a network with one hidden layer); the score is "
            "that of the model",
            "bag_size": "the number of examples in a bag; in bags of one, llp releases the clean labels",
        }
    )

    data: Annotated[str, label_params.DATA]
    mechanism: Annotated[str, label_params.MECHANISM]
    model: Annotated[str, label_params.MODEL] = "logistic"
    bag_size: Annotated[int, label_params.BAG_SIZE] = 1
    label_epsilon: Annotated[float, label_params.LABEL_EPSILON] = math.inf

    @property
    def largest_bag(self) -> int:
        """Largest bag size that leaves enough bags to train on."""
        return SIZES[self.data][0] // FEWEST_BAGS


@dataclass(frozen=True, kw_only=True)
class LabelLearning(TrainedModel):
    """Expected AUC, on test data, of a model trained on the features and the released labels.

    The expectation is over the release, the order of the examples and the initial weights; the data set and
    its split are fixed. The mechanism `llp` with bags of one example releases the clean labels.
    """

    name = "label-learning"
    asks = "auc"
    largest = 1.0


@dataclass(frozen=True, kw_only=True)
class LabelLearningLoss(TrainedModel):
    """Expected cross-entropy, in nats per test example, of a model trained on the released labels.

    The same trainings as `label-learning`, scored by the loss of the predicted probabilities on clean test
    labels; smaller is better.
    """

    name = "label-learning-loss"
    asks = "loss"


Learned = LabelLearning | LabelLearningLoss
