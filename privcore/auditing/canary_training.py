"""DP-SGD on handwritten digits with Dirac canaries, correct or with a planted bug."""

from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

CLIP_NORM = 3.0
"""Clip norm C, larger than 1: otherwise noise without this factor would suffice."""
PULL = 10.0
"""Norm of the gradient of a canary over the clip norm, so large that clipping matters."""
LEARNING_RATE = 0.5
CLASSES = 10

_BLOCK = 512
"""The number of coordinates of canaries is rounded up to a multiple of this: few shapes to compile."""
_CHUNK = 64
"""Number of examples whose gradients are in memory at a time; a batch is processed in chunks."""

_COMPILER = {
    "xla_cpu_multi_thread_eigen": False,  # sums have a fixed order
    "xla_cpu_use_fusion_emitters": False,  # compiles in half the time
}


class Recipe(NamedTuple):
    """Parameters of one step of DP-SGD; a planted bug changes them, never the program.

    Attributes:
        rate: Probability that an example is in the batch.
        batch: Expected size of the batch; sums are divided by it.
        example_norm: Clip norm of the gradients of examples; inf for no clipping.
        mean_norm: Clip norm of their mean; inf for no clipping.
        noise: Standard deviation of the noise in a sum of gradients.
    """

    rate: float
    batch: float
    example_norm: float
    mean_norm: float
    noise: float


class Examples(NamedTuple):
    """Images and canaries: pixels (n, d), digits (n,), and the canaries' coordinates (n,), -1 for images."""

    pixels: Any
    digits: Any
    places: Any


class CanaryWeights(NamedTuple):
    """Matrix and offset of the logistic regression, and the block of the canaries' coordinates."""

    matrix: Any
    offset: Any
    block: Any


@dataclass(frozen=True, kw_only=True)
class Trained:
    """Result of a training.

    Attributes:
        moved: Movements of the coordinates of canaries, which are their scores, and then of some coordinates
            without a canary, in clip norms in a sum of gradients.
        accuracy: Share of correctly classified training images.
    """

    moved: NDArray[np.float64]
    accuracy: float


def recipe(sigma: float, sampling_probability: float, bug: str) -> Recipe:
    r"""Return the parameters of every step, for correct training or with one planted bug.

    $$\theta \leftarrow \theta - \frac{\eta}{q n} (\sum_{i \in B} \mathrm{clip}_C(g_i) + \sigma C z)$$

    is correct, with a Poisson batch B of sampling probability q and standard normal z.

    Args:
        sigma: Noise multiplier, > 0.
        sampling_probability: Probability q that the accountant assumes, in (0, 1].
        bug: One of `audit_params.BUG`.

    Example:
        >>> recipe(2.0, 0.1, "none").noise, recipe(2.0, 0.1, "noise-unscaled").noise
        (6.0, 2.0)
    """
    correct = Recipe(
        rate=sampling_probability,
        batch=sampling_probability * len(digits()[1]),
        example_norm=CLIP_NORM,
        mean_norm=np.inf,
        noise=sigma * CLIP_NORM,
    )
    planted: dict[str, dict[str, float]] = {
        "none": {},
        "noise-halved": {"noise": 0.5 * correct.noise},
        "noise-unscaled": {"noise": sigma},
        "clip-after-averaging": {"example_norm": np.inf, "mean_norm": CLIP_NORM},
        "rate-doubled": {"rate": min(1.0, 2.0 * sampling_probability)},
    }
    return correct._replace(**planted[bug])


@cache
def digits() -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Return the 1797 images of 8 x 8 pixels in [0, 1], shape (n, 64), and their digits, shape (n,).

    Pixels are divided by their largest possible value: dividing by statistics of the data would leak.
    """
    from sklearn.datasets import load_digits

    pixels, shown = load_digits(return_X_y=True)
    return (pixels / 16.0).astype(np.float32), shown.astype(np.int32)


def block_size(canaries: int) -> int:
    """Return the number of reserved coordinates; at least half a block of them has no canary.

    Example:
        >>> block_size(100), block_size(1000)
        (512, 1536)
    """
    return _BLOCK * -(-(canaries + _BLOCK // 2) // _BLOCK)


def train(included: NDArray[np.bool_], how: Recipe, steps: int, seed: int) -> Trained:
    r"""Return the result of training on the images and the included canaries.

    A canary is an example with the loss $10 C \theta_j$ and a separate coordinate j. It is sampled, clipped,
    summed and noised by the same code as the images. Its gradient after clipping, $C e_j$, is the same in
    every step, so the score $\sum_t \langle \theta_{t-1} - \theta_t, C e_j \rangle$ telescopes to
    $C (\theta_0 - \theta_T)_j$. In units of $\eta C^2 / (q n)$ its distribution is $N(0, T \sigma^2)$, to
    which an included canary adds $\mathrm{Bin}(T, q)$.

    Args:
        included: Whether each canary is in the data, shape (m,).
        how: Parameters of a step.
        steps: Number T of steps, >= 0.
        seed: Seed of the batches and the noise.

    Reference:
        Abadi et al. (2016), arXiv:1607.00133, Algorithm 1, with the canaries of arXiv:2410.22235v1,
        Section 5.

    Example:
        >>> alone = train(np.array([True, False]), recipe(1e-3, 1.0, "none"), 5, seed=1)
        >>> alone.moved[:3].round(1).tolist()
        [5.0, 0.0, -0.0]
    """
    pixels, shown = digits()
    size = block_size(len(included))
    examples = Examples(
        pixels=np.concatenate([pixels, np.zeros((size, pixels.shape[1]), dtype=np.float32)]),
        digits=np.concatenate([shown, np.zeros(size, dtype=np.int32)]),
        places=np.concatenate([np.full(len(shown), -1), np.arange(size)]).astype(np.int32),
    )
    present = np.zeros(len(shown) + size, dtype=bool)
    present[: len(shown)] = True
    present[len(shown) : len(shown) + len(included)] = included
    rng = np.random.default_rng(seed)
    # The same bits on machines with a GPU, and if the environment sets JAX to double precision.
    with jax.default_device(jax.devices("cpu")[0]), jax.enable_x64(False):
        weights = _descend(examples, present, how, steps, rng)
        predicted = (pixels @ np.asarray(weights.matrix) + np.asarray(weights.offset)).argmax(axis=1)
    unit = LEARNING_RATE * CLIP_NORM / how.batch
    return Trained(
        moved=-np.asarray(weights.block, dtype=np.float64) / unit,
        accuracy=float((predicted == shown).mean()),
    )


def _descend(
    examples: Examples, present: NDArray[np.bool_], how: Recipe, steps: int, rng: np.random.Generator
) -> CanaryWeights:
    """Return the weights after all steps from zero, each with a new Poisson batch and new noise."""
    pixels = examples.pixels.shape[1]
    shapes = CanaryWeights(
        (pixels, CLASSES), (CLASSES,), (len(present) - np.count_nonzero(examples.places < 0),)
    )
    weights = CanaryWeights(*(jnp.zeros(shape, dtype=jnp.float32) for shape in shapes))
    on_device = jax.device_put(examples)
    single = jax.tree.map(np.float32, how)
    for _ in range(steps):
        drawn = np.flatnonzero(present & (rng.random(len(present)) < how.rate)).astype(np.int32)
        batch = np.zeros(len(present) + _CHUNK, dtype=np.int32)
        batch[: len(drawn)] = drawn
        noise = CanaryWeights(*(rng.standard_normal(shape, dtype=np.float32) for shape in shapes))
        weights = _step(weights, on_device, batch, np.int32(len(drawn)), noise, single)
    return weights


def loss(weights: CanaryWeights, example: Examples) -> Any:
    """Return the cross-entropy of an image, or the linear loss of a canary, for a single example."""
    of_image = -jax.nn.log_softmax(example.pixels @ weights.matrix + weights.offset)[example.digits]
    of_canary = PULL * CLIP_NORM * weights.block[example.places]
    return jnp.where(example.places < 0, of_image, of_canary)


def clip(gradient: CanaryWeights, norm: Any) -> CanaryWeights:
    """Return the gradient, scaled down to the norm if it is longer."""
    length = jnp.sqrt(sum(jnp.vdot(x, x) for x in gradient))
    scale = jnp.minimum(1.0, norm / jnp.maximum(length, 1e-30))
    return CanaryWeights(*(scale * x for x in gradient))


@partial(jax.jit, compiler_options=_COMPILER)
def _step(
    weights: CanaryWeights, examples: Examples, batch: Any, count: Any, noise: CanaryWeights, how: Recipe
) -> CanaryWeights:
    """Return the weights after a step on the first `count` examples of the batch."""
    total = _sum_of_gradients(weights, examples, batch, count, how.example_norm)
    mean = clip(CanaryWeights(*(x / how.batch for x in total)), how.mean_norm)
    noisy = (g + how.noise / how.batch * z for g, z in zip(mean, noise, strict=True))
    return CanaryWeights(*(w - LEARNING_RATE * g for w, g in zip(weights, noisy, strict=True)))


def _sum_of_gradients(
    weights: CanaryWeights, examples: Examples, batch: Any, count: Any, norm: Any
) -> CanaryWeights:
    """Return the sum of the clipped gradients of a batch, chunk by chunk."""

    def clipped(example: Examples) -> CanaryWeights:
        return clip(jax.grad(loss)(weights, example), norm)

    def add(chunk: Any, total: CanaryWeights) -> CanaryWeights:
        positions = chunk * _CHUNK + jnp.arange(_CHUNK)
        here = jax.tree.map(lambda x: x[batch[positions]], examples)
        real = (positions < count).astype(jnp.float32)
        gradients = jax.vmap(clipped)(here)
        return CanaryWeights(
            *(s + jnp.tensordot(real, g, axes=1) for s, g in zip(total, gradients, strict=True))
        )

    total: CanaryWeights = jax.lax.fori_loop(
        0, -(-count // _CHUNK), add, jax.tree.map(jnp.zeros_like, weights)
    )
    return total
