"""Train a network of three layers to classify digits by their codes, by full-batch Adam."""

import itertools
import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

HIDDEN = (256, 256)
LEARNING_RATE = 0.01
ITERATIONS = 500

_DECAY, _SQUARE_DECAY, _STABLE = 0.9, 0.999, 1e-8
_COMPILER = {
    "xla_cpu_multi_thread_eigen": False,  # a fixed order of summation
    "xla_cpu_use_fusion_emitters": False,  # saves a third of the compilation time
}

Layers = list[tuple[Any, Any]]


def logits(layers: Layers, inputs: Any) -> Any:
    """Return logits of shape (classes, m) for inputs of shape (d, m).

    Inputs are columns, so that gradients are sums along rows. XLA splits sums along columns among threads,
    so their last bits would depend on the number of threads.

    Example:
        >>> logits([(np.ones((3, 2)), np.zeros((3, 1)))], np.array([[1.0], [2.0]])).tolist()
        [[3.0], [3.0], [3.0]]
    """
    *hidden, (last, bias) = layers
    for matrix, offset in hidden:
        inputs = jax.nn.relu(matrix @ inputs + offset)
    return last @ inputs + bias


def classify(
    inputs: NDArray[np.float32], counts: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64] | None:
    """Return the class of every input, after training on `counts` records of each input and class.

    Records with the same input and class have the same gradient, so their number is sufficient.

    Args:
        inputs: Distinct inputs, shape (m, d).
        counts: Number of training records of every input and class, shape (m, classes).
        rng: Source of the initial weights.

    Returns:
        Classes, shape (m,), also of inputs without records; None if training overflowed single precision.

    Reference:
        arXiv:2310.13786v6, Section 6.2 and Appendix D: two hidden layers of 256, cross-entropy, Adam at
        rate 0.01, 500 iterations.

    Example:
        >>> halves = np.array([[0.0], [1.0]], dtype=np.float32)
        >>> classify(halves, np.array([[3, 0], [1, 2]]), np.random.default_rng(0)).tolist()
        [0, 1]
    """
    shares = (counts / counts.sum()).astype(np.float32)
    first = _first_layers((inputs.shape[1], *HIDDEN, counts.shape[1]), rng)
    # The same bits on a machine with a GPU, or if the environment sets JAX to double precision.
    with jax.default_device(jax.devices("cpu")[0]), jax.enable_x64(False):
        scores = np.asarray(_train(first, np.ascontiguousarray(inputs.T), np.ascontiguousarray(shares.T)))
    return scores.argmax(axis=0) if np.isfinite(scores).all() else None


@partial(jax.jit, compiler_options=_COMPILER)
def _train(first: Layers, inputs: Any, shares: Any) -> Any:
    """Return the logits of the inputs after training."""

    def loss(layers: Layers) -> Any:
        return -(shares * jax.nn.log_softmax(logits(layers, inputs), axis=0)).sum()

    def step(i: Any, state: tuple[Layers, Layers, Layers]) -> tuple[Layers, Layers, Layers]:
        layers, means, squares = state
        slope = jax.grad(loss)(layers)
        t = i + 1.0
        means = jax.tree.map(lambda m, g: _DECAY * m + (1.0 - _DECAY) * g, means, slope)
        squares = jax.tree.map(lambda v, g: _SQUARE_DECAY * v + (1.0 - _SQUARE_DECAY) * g * g, squares, slope)

        def move(w: Any, m: Any, v: Any) -> Any:
            size = jnp.sqrt(v / (1.0 - _SQUARE_DECAY**t)) + _STABLE
            return w - LEARNING_RATE * (m / (1.0 - _DECAY**t)) / size

        return jax.tree.map(move, layers, means, squares), means, squares

    zeros = jax.tree.map(jnp.zeros_like, first)
    trained, _, _ = jax.lax.fori_loop(0, ITERATIONS, step, (first, zeros, zeros))
    return logits(trained, inputs)


def _first_layers(widths: tuple[int, ...], rng: np.random.Generator) -> Layers:
    """Return uniform weights and offsets, whose size falls with the number of inputs of a layer."""
    layers = []
    for n, m in itertools.pairwise(widths):
        size = 1.0 / math.sqrt(n)
        matrix, offset = rng.uniform(-size, size, (m, n)), rng.uniform(-size, size, (m, 1))
        layers.append((matrix.astype(np.float32), offset.astype(np.float32)))
    return layers
