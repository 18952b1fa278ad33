"""Training on released proportions: cross-entropy of the mean prediction in a bag, minimised by Adam."""

import itertools
import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from privcore.labels.learning.release import Release

HIDDEN = {"logistic": (), "mlp": (32,)}
"""Widths of the hidden layers of each model."""
EPOCHS = 20
BATCHES = 32
"""Smallest number of batches in an epoch, if there are enough bags."""
BATCH = 1024
"""Number of examples in a batch, in whole bags; smaller for a small data set."""
SMALLEST_BATCH = 32
LEARNING_RATES = (0.001, 0.003, 0.01)
HELD_OUT = 16
"""One bag in this many is held out to choose the learning rate."""
BASE_RATES = (0.01, 0.99)
"""Limits of the base rate from which training starts, for very noisy targets."""
CLIP = 1e-6
"""Distance of predictions from 0 and 1: noisy targets outside [0, 1] have an unbounded loss there."""

Weights = list[tuple[Any, Any]]

_COMPILER = {
    "xla_cpu_multi_thread_eigen": False,  # sums have a fixed order
    "xla_cpu_use_fusion_emitters": False,  # compiles each new shape 0.3 s faster, and runs as fast
}


def logits(weights: Weights, features: Any) -> Any:
    """Return the logit of the prediction for every example, shape (..., n), of features (..., n, d).

    Example:
        >>> logits([(np.ones((2, 1)), np.zeros(1))], np.array([[1.0, 2.0]])).tolist()
        [3.0]
    """
    *hidden, (last, bias) = weights
    for matrix, offset in hidden:
        features = jax.nn.relu(features @ matrix + offset)
    return (features @ last + bias)[..., 0]


def proportion_loss(weights: Weights, features: Any, targets: Any) -> Any:
    r"""Return the mean over bags of the cross-entropy between released and predicted proportion.

    $-t \ln q - (1 - t) \ln(1 - q)$, with q the mean prediction in the bag. It is affine in the target t, so
    unbiased noise in t does not change its expectation. For bags of one example it is the loss of debiased
    randomized response.

    Args:
        weights: Matrix and offset of every layer.
        features: Features of the members of the bags, shape (bags, k, d).
        targets: Unbiased proportions, shape (bags,); not clipped.

    Returns:
        Loss in nats, a scalar; it may be negative if noise moves a target outside [0, 1].

    Reference:
        arXiv:2406.02797v1, Section 2 and Theorem D.2.

    Example:
        >>> halves = [(np.zeros((1, 1)), np.zeros(1))]
        >>> round(float(proportion_loss(halves, np.ones((1, 4, 1)), np.array([0.25]))), 4)
        0.6931
    """
    proportions = jax.nn.sigmoid(logits(weights, features)).mean(axis=-1)
    q = jnp.clip(proportions, CLIP, 1.0 - CLIP)
    return -(targets * jnp.log(q) + (1.0 - targets) * jnp.log1p(-q)).mean()


def train_and_score(
    model: str,
    features: NDArray[np.float32],
    release: Release,
    test: NDArray[np.float32],
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], float] | None:
    """Return the logits of the test examples from a model that is trained on a release.

    A model is trained with each learning rate of a short grid, on all except a sixteenth of the bags. The
    learning rate with the smallest final loss on the held-out bags is chosen. The held-out targets are
    released ones, so no clean label is used.

    Args:
        model: One of the keys of `HIDDEN`.
        features: Training features, shape (n, d).
        release: Release of the mechanism about the n labels, at least two bags.
        test: Test features, shape (m, d).
        rng: Source of the initial weights and of the order of the bags.

    Returns:
        Logits of the test examples, shape (m,), and the learning rate; None if every training diverged.

    Reference:
        arXiv:2406.02797v1, Section 2 (empirical proportion risk) and Section 4, with a choice of the learning
        rate without clean labels.

    Example:
        >>> x = np.linspace(-1, 1, 100, dtype=np.float32)[:, None]
        >>> clean = Release(members=np.arange(100)[:, None], targets=(x[:, 0] > 0).astype(float))
        >>> scores, _ = train_and_score("logistic", x, clean, x[::50], np.random.default_rng(0))
        >>> bool(scores[0] < scores[1])
        True
    """
    bags, k = release.members.shape
    order = _batches(bags - _held_out(bags), k, len(features), rng)
    first = _first_weights(features.shape[1], HIDDEN[model], release.targets, rng)
    rates = np.asarray(LEARNING_RATES, dtype=np.float32)
    members, targets = release.members.astype(np.int32), release.targets.astype(np.float32)
    # The same bits on machines with a GPU, and if the environment sets JAX to double precision.
    with jax.default_device(jax.devices("cpu")[0]), jax.enable_x64(False):
        losses, scores = _train_all(first, rates, features, members, targets, order, test)
    found = np.where(np.isfinite(losses) & np.isfinite(scores).all(axis=1), losses, np.inf)
    best = int(np.argmin(found))
    if math.isinf(found[best]):
        return None
    return np.asarray(scores[best], dtype=np.float64), LEARNING_RATES[best]


@partial(jax.jit, compiler_options=_COMPILER)
def _train_all(
    first: Weights, rates: Any, features: Any, members: Any, targets: Any, order: Any, test: Any
) -> tuple[Any, Any]:
    """Return the loss on the held-out bags and the test logits, for every learning rate."""
    adam = optax.scale_by_adam()
    held_out = _held_out(len(members))

    def train(rate: Any) -> Weights:
        def step(i: Any, state: tuple[Weights, Any]) -> tuple[Weights, Any]:
            weights, moments = state
            batch = order[i]
            slope = jax.grad(proportion_loss)(weights, features[members[batch]], targets[batch])
            change, moments = adam.update(slope, moments)
            return jax.tree.map(lambda w, c: w - rate * c, weights, change), moments

        trained: Weights
        trained, _ = jax.lax.fori_loop(0, len(order), step, (first, adam.init(first)))
        return trained

    weights = jax.vmap(train)(rates)
    loss = jax.vmap(proportion_loss, in_axes=(0, None, None))
    scores = jax.vmap(logits, in_axes=(0, None))
    return loss(weights, features[members[-held_out:]], targets[-held_out:]), scores(weights, test)


def _held_out(bags: int) -> int:
    """Return the number of held-out bags, which are the last ones."""
    return max(1, bags // HELD_OUT)


def _batches(bags: int, bag_size: int, examples: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Return the bags of every step, shape (steps, bags in a batch), in a new order for every epoch."""
    wanted = min(BATCH, max(SMALLEST_BATCH, examples // BATCHES)) // bag_size
    size = min(max(1, wanted), bags)
    steps = bags // size
    epochs = [rng.permutation(bags)[: steps * size].reshape(steps, size) for _ in range(EPOCHS)]
    return np.concatenate(epochs).astype(np.int32)


def _first_weights(
    dimension: int, hidden: tuple[int, ...], targets: NDArray[np.float64], rng: np.random.Generator
) -> Weights:
    """Return random hidden layers, and a last layer that predicts the base rate of the targets everywhere."""
    widths = (dimension, *hidden)
    layers = [
        (math.sqrt(2.0 / n) * rng.standard_normal((n, m)), np.zeros(m)) for n, m in itertools.pairwise(widths)
    ]
    rate = float(np.clip(targets.mean(), *BASE_RATES))
    layers.append((np.zeros((widths[-1], 1)), np.full(1, math.log(rate / (1.0 - rate)))))
    return [(matrix.astype(np.float32), offset.astype(np.float32)) for matrix, offset in layers]
