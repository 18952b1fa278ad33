"""Train a network with one hidden layer by Adam on all records at once, and keep what it was on the way."""

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
"""Iterations between states that are kept: a longer training goes on from them."""
KEPT = 128

_DECAY, _SQUARE_DECAY, _STABLE = 0.9, 0.999, 1e-8
_BLOCK = 500
_COMPILER = {
    "xla_cpu_multi_thread_eigen": False,  # sums are taken in one order
    "xla_cpu_use_fusion_emitters": False,  # saves a third of the compilation
}

Floats = NDArray[np.float32]


class NetworkRun(NamedTuple):
    """What determines a training but for its length: points with the same run share it.

    Attributes:
        coordinates: Number d of features.
        records: Number n of training records.
        width: Hidden units.
        noise: Standard deviation of the noise of the target.
        stopping_loss: Mean squared loss at which training stops.
        number: Which of several trainings.
    """

    coordinates: int
    records: int
    width: int
    noise: float
    stopping_loss: float
    number: int


class NetworkWeights(NamedTuple):
    """Hidden layer (width, d + 1) with its offsets last, weights (width,) and offset of the output."""

    hidden: Any
    output: Any
    offset: Any


class State(NamedTuple):
    """Weights, means of their gradients and of the squares of these, iterations, and whether it stopped."""

    weights: NetworkWeights
    first: NetworkWeights
    second: NetworkWeights
    count: Any
    stopped: Any


def predict(weights: NetworkWeights, x: Any) -> Any:
    """Return the prediction for features of shape (d + 1, n), the last of them 1; shape (n,).

    Records are columns, so that gradients are sums along rows: those along columns XLA splits among threads,
    and their last bits would depend on how many there are.

    Example:
        >>> unit = NetworkWeights(np.array([[1.0, 1.0, 0.0]]), np.ones(1), np.ones(()))
        >>> predict(unit, np.array([[1.0, -1.0], [2.0, -2.0], [1.0, 1.0]])).tolist()
        [4.0, 1.0]
    """
    return weights.output @ jax.nn.relu(weights.hidden @ x) + weights.offset


@lru_cache(maxsize=KEPT)
def residuals(run: NetworkRun, iterations: int) -> tuple[Residuals, Residuals]:
    """Return the residuals of the training records, which are known, and of fresh ones, but for their noise.

    Args:
        run: The training.
        iterations: Its length, >= 0, unless it stops before.

    Example:
        >>> fitted, fresh = residuals(NetworkRun(4, 40, 256, 0.1, 1e-4, 0), 1000)
        >>> float(np.square(fitted.mean).mean()) <= 1e-4, round(fresh.share(1e-4), 2)
        (True, 0.03)
    """
    # The same bits beside a GPU, and where the environment asks JAX for double precision.
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
    """Return the state after so many iterations, from the last one that is kept before."""
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
    """Return the state after so many further iterations of Adam on the mean squared loss, or after fewer."""

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
    """Return the running means after one more value."""
    return NetworkWeights(*(decay * a + (1.0 - decay) * b for a, b in zip(old, new, strict=True)))


@partial(jax.jit, compiler_options=_COMPILER)
def _predict(weights: NetworkWeights, x: Any) -> Any:
    return predict(weights, x)


def _predicted(weights: NetworkWeights, x: Floats) -> NDArray[np.float64]:
    """Return the predictions in double precision."""
    return np.asarray(_predict(weights, x), dtype=np.float64)


def _seed(run: NetworkRun) -> tuple[int, ...]:
    """Return the seed of a run: other noise means the same draws, scaled."""
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
    """Return normal weights of the variance that Glorot and Bengio chose, and small uniform offsets."""
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
