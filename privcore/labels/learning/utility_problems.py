"""Problems about the utility of privatised labels: randomized classes, noise, gradients, trained models."""

import math
from types import MappingProxyType
from typing import Annotated

import numpy as np

from privcore.constraint import AtMost, NoneOf, OneOf
from privcore.distributions.prior_notation import probabilities
from privcore.labels import params as label_params
from privcore.labels.learning.datasets import SIZES
from privcore.labels.problems import MECHANISM, ReleaseProblem
from privcore.labels.sums.poisson_binomial import Array
from privcore.problem import falls, grows, proved

FEWEST_BAGS = 4
"""Smallest number of bags that leaves enough bags for training in addition to the held-out bags."""


_LESS_VARIANCE = (
    "With r = e^-epsilon, the variance of geometric noise given the labels is r / (1 - r)^2 times a factor "
    "that falls less, since s r^(s - 1) is at most 1 / (1 - r); that of Laplace noise is 2 / epsilon^2."
)
_RELEASES = NoneOf(
    "mechanism",
    ("none",),
    "Expected a mechanism that releases labels or sums, got mechanism=none.",
)


class RandomizedClass(ReleaseProblem):
    r"""Base of the problems about randomized response over c classes.

    It keeps the class with probability $e^\varepsilon / (e^\varepsilon + c - 1)$, and otherwise releases one
    of the other c - 1 classes, each equally likely.
    """

    class_number: Annotated[int, label_params.CLASS_NUMBER]


class ClassFlipProbability(RandomizedClass):
    """Probability that randomized response over c classes releases another class than the true one."""

    name = "class-flip-probability"
    asks = "probability"
    largest = 1.0
    monotone = proved(
        label_epsilon=falls("The closed form falls with epsilon."),
        class_number=grows("The closed form rises with the number of classes."),
    )

    label_epsilon: Annotated[float, label_params.CLASS_EPSILON]


class ClassFlipEpsilon(RandomizedClass):
    """Label epsilon of randomized response over c classes that flips a class with a given probability."""

    name = "class-flip-epsilon"
    asks = "epsilon"
    monotone = proved(
        flip_probability=falls("The closed form falls with the probability."),
        class_number=grows("The closed form rises with the number of classes."),
    )
    constraints = (
        AtMost(
            "flip_probability",
            "largest_flip",
            "Expected flip_probability <= {bound:.17g}, that of a blind guess among {class_number} classes, "
            "got {flip_probability:g}.",
        ),
    )

    flip_probability: Annotated[float, label_params.FLIP_PROBABILITY]

    @property
    def largest_flip(self) -> float:
        """Probability of another class at epsilon 0."""
        return 1.0 - 1.0 / self.class_number


class ClassCapacity(RandomizedClass):
    """Capacity in bits of randomized response over c classes: the largest information over all priors."""

    name = "class-capacity"
    asks = "capacity"
    monotone = proved(label_epsilon=grows("Smaller epsilons are post-processing of larger ones."))

    label_epsilon: Annotated[float, label_params.CLASS_EPSILON]


class ClassCapacityEpsilon(RandomizedClass):
    """Label epsilon of randomized response over c classes with a given capacity in bits."""

    name = "class-capacity-epsilon"
    asks = "epsilon"
    monotone = proved(capacity=grows("The capacity rises with epsilon."))
    constraints = (
        AtMost(
            "capacity",
            "largest_capacity",
            "Expected capacity <= {bound:.6g} bits, that of {class_number} classes without noise, got "
            "{capacity:g}.",
        ),
    )

    capacity: Annotated[float, label_params.CAPACITY]

    @property
    def largest_capacity(self) -> float:
        """Capacity without noise."""
        return math.log2(self.class_number)


class NoiseVariance(ReleaseProblem):
    """Largest variance, over all labels of a bag, of the debiased proportion of labels 1 that is released."""

    name = "label-noise-variance"
    asks = "variance"
    constraints = (_RELEASES, *MECHANISM)
    monotone = proved(
        label_epsilon=falls(_LESS_VARIANCE),
        bag_size=falls(
            "1 / k^2 falls faster with k than clipping to more distant ends adds, since r^m (1 - r) < 1 / m."
        ),
    )

    mechanism: Annotated[str, label_params.MECHANISM]
    bag_size: Annotated[int, label_params.BAG_SIZE]
    label_epsilon: Annotated[float, label_params.LABEL_EPSILON] = math.inf


class GradientSquare(ReleaseProblem):
    """Mean squared norm of the gradient of a logistic regression on one bag, over labels and release.

    The loss is the cross-entropy of the debiased released proportion and the mean prediction in the bag.
    """

    name = "label-gradient-square"
    asks = "gradient_square"
    constraints = (
        _RELEASES,
        *MECHANISM,
        OneOf(
            "fits",
            (True,),
            "Expected a list of features for each of the {bag_size} examples, each with one number for each "
            "weight, got features={features}, weights={weights}.",
        ),
    )
    monotone = proved(label_epsilon=falls(_LESS_VARIANCE))

    mechanism: Annotated[str, label_params.MECHANISM]
    bag: Annotated[str, label_params.BAG]
    features: Annotated[str, label_params.FEATURES]
    weights: Annotated[str, label_params.WEIGHTS]
    label_epsilon: Annotated[float, label_params.LABEL_EPSILON] = math.inf

    @property
    def etas(self) -> Array:
        """Probabilities of label 1 of the examples in the bag."""
        return np.array(probabilities(self.bag))

    @property
    def bag_size(self) -> int:
        """Number of examples in the bag."""
        return self.etas.size

    @property
    def fits(self) -> bool:
        """Whether all examples have a feature for each weight."""
        rows, number = self.features.split(";"), len(self.weights.split(","))
        return len(rows) == self.bag_size and all(len(row.split(",")) == number for row in rows)


class TrainedModel(ReleaseProblem):
    """Base of the problems about a model that is trained on the features and the released labels.

    The expectation is over the release, the order of the examples and the initial weights; the data set and
    its split are fixed. The mechanism `llp` with bags of one example releases the clean labels.
    """

    constraints = (
        _RELEASES,
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


class LabelLearning(TrainedModel):
    """Expected AUC, on test data, of a model trained on the features and the released labels.

    The expectation is over the release, the order of the examples and the initial weights; the data set and
    its split are fixed. The mechanism `llp` with bags of one example releases the clean labels.
    """

    name = "label-learning"
    asks = "auc"
    largest = 1.0


class LabelLearningLoss(TrainedModel):
    """Expected cross-entropy, in nats per test example, of a model trained on the released labels.

    The same trainings as `label-learning`, scored by the loss of the predicted probabilities on clean test
    labels; smaller is better.
    """

    name = "label-learning-loss"
    asks = "loss"


Learned = LabelLearning | LabelLearningLoss
