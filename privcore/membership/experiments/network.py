"""Train a network with one hidden layer by full-batch Adam, and keep states for longer trainings."""

import math
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from privcore.membership.experiments.residuals import FRESH, Residuals, sphere

LEARNING_RATE = 0.1
SEGMENT = 250
"""Iterations between states that are kept; a longer training continues from a kept state."""
KEPT = 128

_DECAY, _SQUARE_DECAY, _STABLE = 0.9, 0.999, 1e-8
_BLOCK = 500
_COMPILER = {
    "xla_cpu_multi_thread_eigen": False,  # a fixed order of summation
    "xla_cpu_use_fusion_emitters": False,  # saves a third of the compilation time
}

Floats = NDArray[np.float32]


class NetworkRun(NamedTuple):
    """Settings of a training, except its length; points with the same run share the training.

    Attributes:
        coordinates: Number d of features.
        records: Number n of training records.
        width: Number of hidden units.
        noise: Standard deviation of the noise of the target.
        stopping_loss: Mean squared loss at which training stops.
        number: Number of the run among several independent runs.
    """

    coordinates: int
    records: int
    width: int
    noise: float
    stopping_loss: float
    number: int


class NetworkWeights(NamedTuple):
    """Hidden layer (width, d + 1) with offsets in the last column, output weights (width,), output offset."""

    hidden: Any
    output: Any
    offset: Any


class State(NamedTuple):
    """Weights, running means of gradients and of squared gradients, iterations, and the stopping flag."""

    weights: NetworkWeights
    first: NetworkWeights
    second: NetworkWeights
    count: Any
    stopped: Any


def predict(weights: NetworkWeights, x: Any) -> Any:
    """Return predictions of shape (n,) for features of shape (d + 1, n), where the last feature is 1.

    Records are columns, so that gradients are sums along rows. XLA splits sums along columns among threads,
    so their last bits would depend on the number of threads.

    Example:
        >>> unit = NetworkWeights(np.array([[1.0, 1.0, 0.0]]), np.ones(1), np.ones(()))
        >>> predict(unit, np.array([[1.0, -1.0], [2.0, -2.0], [1.0, 1.0]])).tolist()
        [4.0, 1.0]
    """
    return weights.output @ jax.nn.relu(weights.hidden @ x) + weights.offset


@lru_cache(maxsize=KEPT)
def residuals(run: NetworkRun, iterations: int) -> tuple[Residuals, Residuals]:
    """Return the residuals of the training records, and the distribution of those of fresh records.

    Args:
        run: Settings of the training.
        iterations: Length of the training, >= 0, unless it stops early.

    Example:
        >>> fitted, fresh = residuals(NetworkRun(4, 40, 256, 0.1, 1e-4, 0), 1000)
        >>> float(np.square(fitted.mean).mean()) <= 1e-4, round(fresh.share(1e-4), 2)
        (True, 0.03)
    """
    # The same bits on a machine with a GPU, or if the environment sets JAX to double precision.
    with jax.default_device(jax.devices("cpu")[0]), jax.enable_x64(False):
        weights = _state(run, iterations).weights
        x, y = training_records(run)
        known = _predicted(weights, x) - y
        rng = np.random.default_rng((*_seed(run), 1))
        means = []
        for _ in range(FRESH // _BLOCK):
            fresh = sphere(rng, _BLOCK, run.coordinates)
            means.append(_predicted(weights, _columns(fresh)) - np.sin(math.pi * fresh[:, 0]))
    return Residuals(known, np.zeros(run.records)), Residuals(
        np.concatenate(means), np.full(FRESH, run.noise)
    )


@lru_cache(maxsize=KEPT)
def _state(run: NetworkRun, iterations: int) -> State:
    """Return the state after `iterations` iterations, computed from the last kept state before it."""
    if iterations == 0:
        weights = first_weights(run)
        zeros = NetworkWeights(*(np.zeros_like(w) for w in weights))
        return State(weights, zeros, zeros, np.float32(0.0), np.bool_(False))
    done = (iterations - 1) // SEGMENT * SEGMENT
    x, y = training_records(run)
    state: State = _advance(_state(run, done), x, y, np.float32(run.stopping_loss), iterations - done)
    return state


@partial(jax.jit, compiler_options=_COMPILER)
def _advance(state: State, x: Any, y: Any, stopping_loss: Any, iterations: Any) -> State:
    """Return the state after `iterations` more steps of Adam on the mean squared loss, or after fewer."""

    def loss(weights: NetworkWeights) -> Any:
        return jnp.square(predict(weights, x) - y).mean()

    def step(state: State) -> State:
        value, slope = jax.value_and_grad(loss)(state.weights)
        t = state.count + 1.0
        first = _mixed(_DECAY, state.first, slope)
        second = _mixed(_SQUARE_DECAY, state.second, NetworkWeights(*(g * g for g in slope)))
        weights = NetworkWeights(
            *(
                w
                - LEARNING_RATE * (m / (1.0 - _DECAY**t)) / (jnp.sqrt(v / (1.0 - _SQUARE_DECAY**t)) + _STABLE)
                for w, m, v in zip(state.weights, first, second, strict=True)
            )
        )
        moved = State(weights, first, second, t, np.bool_(False))
        stays = state._replace(stopped=np.bool_(True))
        kept: State = jax.tree.map(partial(jnp.where, value <= stopping_loss), stays, moved)
        return kept

    last = state.count + iterations
    reached: State = jax.lax.while_loop(lambda s: (s.count < last) & ~s.stopped, step, state)
    return reached


def _mixed(decay: float, old: NetworkWeights, new: NetworkWeights) -> NetworkWeights:
    """Return the running means, updated by one more value."""
    return NetworkWeights(*(decay * a + (1.0 - decay) * b for a, b in zip(old, new, strict=True)))


@partial(jax.jit, compiler_options=_COMPILER)
def _predict(weights: NetworkWeights, x: Any) -> Any:
    return predict(weights, x)


def _predicted(weights: NetworkWeights, x: Floats) -> NDArray[np.float64]:
    """Return the predictions in double precision."""
    return np.asarray(_predict(weights, x), dtype=np.float64)


def _seed(run: NetworkRun) -> tuple[int, ...]:
    """Return the seed of a run; with another noise level the draws are the same, scaled."""
    return run.coordinates, run.records, run.width, run.number


def training_records(run: NetworkRun) -> tuple[Floats, Floats]:
    """Return features (d + 1, n) and targets (n,) of the training records."""
    rng = np.random.default_rng((*_seed(run), 0))
    x = sphere(rng, run.records, run.coordinates)
    y = np.sin(math.pi * x[:, 0]) + run.noise * rng.standard_normal(run.records)
    return _columns(x), y.astype(np.float32)


def _columns(x: NDArray[np.float64]) -> Floats:
    """Return records as columns, with 1 as the last feature."""
    return np.ascontiguousarray(np.column_stack([x, np.ones(len(x))]).T, dtype=np.float32)


def first_weights(run: NetworkRun) -> NetworkWeights:
    """Return normal weights with the variance of Glorot and Bengio, and small uniform offsets."""
    rng = np.random.default_rng((*_seed(run), 2))
    d, w = run.coordinates, run.width
    drawn = (
        np.column_stack(
            [
                math.sqrt(2.0 / (d + w)) * rng.standard_normal((w, d)),
                rng.uniform(-1.0, 1.0, w) / math.sqrt(d),
            ]
        ),
        math.sqrt(2.0 / (w + 1)) * rng.standard_normal(w),
        rng.uniform(-1.0, 1.0) / math.sqrt(w),
    )
    return NetworkWeights(*(np.asarray(x, dtype=np.float32) for x in drawn))
