"""Questions about the utility of privatised labels: how well a trained model ranks unseen examples."""

import math
from dataclasses import dataclass
from typing import Annotated

from privcore.labels import params as label_params
from privcore.labels.problems import MECHANISM, ReleaseProblem
from privcore.labels.stand_in import SIZES
from privcore.problem import AtMost, NoneOf

FEWEST_BAGS = 4
"""Below this there is nothing to train on beside what is held out."""


@dataclass(frozen=True, kw_only=True)
class LabelLearning(ReleaseProblem):
    """Expected AUC on test data of a model that learned from the features and the released labels.

    The expectation is over the release, the order of the examples and the first weights; the data set and its
    split are fixed. Clean labels are those of `llp` in bags of one.
    """

    name = "label-learning"
    asks = "auc"
    largest = 1.0
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

    data: Annotated[str, label_params.DATA]
    mechanism: Annotated[str, label_params.MECHANISM]
    model: Annotated[str, label_params.MODEL] = "logistic"
    bag_size: Annotated[int, label_params.BAG_SIZE] = 1
    label_epsilon: Annotated[float, label_params.LABEL_EPSILON] = math.inf

    @property
    def largest_bag(self) -> int:
        """Examples in a bag of which enough are left to train on."""
        return SIZES[self.data][0] // FEWEST_BAGS
