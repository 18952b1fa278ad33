"""What privatised labels are worth: how well a model that learns from them ranks examples it has not seen."""

import math
from dataclasses import dataclass
from typing import Annotated

from privcore.errors import DomainError
from privcore.labels import params as label_params
from privcore.labels.problems import ReleaseProblem, check_mechanism
from privcore.labels.stand_in import SIZES

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

    data: Annotated[str, label_params.DATA]
    mechanism: Annotated[str, label_params.MECHANISM]
    model: Annotated[str, label_params.MODEL] = "logistic"
    bag_size: Annotated[int, label_params.BAG_SIZE] = 1
    label_epsilon: Annotated[float, label_params.LABEL_EPSILON] = math.inf

    def check(self) -> None:
        """Refuse a release that is contradictory, empty, or too coarse for the data."""
        if self.mechanism == "none":
            raise DomainError(
                "Expected a mechanism that releases something to learn from, got mechanism=none."
            )
        check_mechanism(self.mechanism, self.bag_size, self.label_epsilon)
        examples = SIZES[self.data][0]
        if self.bag_size * FEWEST_BAGS > examples:
            raise DomainError(
                f"Expected bag_size <= {examples // FEWEST_BAGS}, a quarter of the training examples of "
                f"{self.data}, got bag_size={self.bag_size}."
            )
