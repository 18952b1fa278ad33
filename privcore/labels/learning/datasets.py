"""Data sets for learning: two synthetic ones with a known distribution of labels, two small real ones."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

import numpy as np
import scipy
from numpy.typing import NDArray

_DIMENSION = 50
_LOGIT_NORMAL = MappingProxyType({"higgs-like": (0.2132, 2.2453), "kdd-like": (-3.661, 1.1815)})
"""Mean b and standard deviation s of the logit of eta."""
_SEED = 2406
"""Seed of the synthetic examples and of the splits, which makes data sets the same on every machine."""

SIZES: Mapping[str, tuple[int, int, int]] = MappingProxyType(
    {
        "higgs-like": (2**15, 2**16, _DIMENSION),
        "kdd-like": (2**16, 2**16, _DIMENSION),
        "breast-cancer": (427, 142, 30),
        "digits": (1348, 449, 64),
    }
)
"""Numbers of training examples, test examples and features, available without loading a data set."""


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A data set with its fixed split.

    Attributes:
        train_features: Shape (n, d), single precision.
        train_labels: 0 or 1, shape (n,): the input of the mechanism.
        test_features: Shape (m, d).
        test_labels: 0 or 1, shape (m,): for scoring only, never released.
    """

    train_features: NDArray[np.float32]
    train_labels: NDArray[np.int64]
    test_features: NDArray[np.float32]
    test_labels: NDArray[np.int64]


@cache
def load(name: str) -> DataSet:
    r"""Return a data set by its name, with identical bits in every call.

    In a synthetic data set, $x \sim N(0, I_{50})$ and $\eta(x)$ is the logistic function of $b + w \cdot x$,
    whose d weights equal $s / \sqrt d$: eta has the prior `logit-normal(b,s)`. The features of the real data
    sets are standardised by the mean and the standard deviation of the training split.

    Args:
        name: One of the keys of `SIZES`.

    Returns:
        The data set, with the sizes of `SIZES`.

    Raises:
        KeyError: The name is unknown.

    Example:
        >>> load("higgs-like").train_features.shape
        (32768, 50)
    """
    train, test, dimension = SIZES[name]
    rng = np.random.default_rng(_SEED)
    if name in _LOGIT_NORMAL:
        b, s = _LOGIT_NORMAL[name]
        features = rng.standard_normal((train + test, dimension), dtype=np.float32)
        eta = scipy.special.expit(b + s / math.sqrt(dimension) * features.sum(axis=1, dtype=np.float64))
        labels = (rng.random(train + test) < eta).astype(np.int64)
    else:
        measured, labels = _bundled(name)
        order = rng.permutation(len(labels))
        measured, labels = measured[order], labels[order]
        deviation = measured[:train].std(axis=0)
        # A pixel that is constant over the training images carries no information, and becomes 0 everywhere.
        scale = np.where(deviation > 0.0, deviation, np.inf)
        features = ((measured - measured[:train].mean(axis=0)) / scale).astype(np.float32)
    return DataSet(
        train_features=features[:train],
        train_labels=labels[:train],
        test_features=features[train:],
        test_labels=labels[train:],
    )


def _bundled(name: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return features and labels of a data set that scikit-learn ships."""
    from sklearn.datasets import load_breast_cancer, load_digits

    features, labels = {"breast-cancer": load_breast_cancer, "digits": load_digits}[name](return_X_y=True)
    return features, (labels >= 5 if name == "digits" else labels).astype(np.int64)
