"""Simulated releases about one example in each bag, with the posterior and the advantage of an attacker."""

from dataclasses import dataclass

import numpy as np

from privcore.labels import geometric, laplace
from privcore.labels.poisson_binomial import Array, pmf
from privcore.labels.problems import LabelProblem
from privcore.labels.release import Labels, geometric_sums, laplace_sums, randomized_response
from privcore.labels.response import outputs
from privcore.labels.rows import exact_at

_CHUNK = 2**20
"""Number of probabilities that are held in memory at a time."""


@dataclass(frozen=True, kw_only=True)
class Releases:
    r"""Releases about one member of each of `number` random bags; arrays have the shape (number,).

    Attributes:
        etas: Probability of label 1 given the features, which is the prior of the attacker.
        ratios: Multiplicative advantage $\ln g_1(z) - \ln g_0(z)$ of the released value z, in nats; infinite
            if z reveals the label.
        posteriors: Probability of label 1 given the features and the release.
        advantages: Additive advantage given the features of the bag, as a mean over the releases.
    """

    etas: Array
    ratios: Array
    posteriors: Array
    advantages: Array


def releases(problem: LabelProblem, number: int, seed: int) -> Releases:
    r"""Return posteriors and advantages for simulated releases about one member of each of `number` bags.

    Features, labels and noise are drawn; the posterior $\eta g_1 / (\eta g_1 + (1 - \eta) g_0)$ and the
    advantage $\sum_z (\eta g_1 - (1 - \eta) g_0)_+$ (or its mirror image) are exact given the features.

    Args:
        problem: Mechanism and prior; the quantity in question does not matter.
        number: Number of bags, >= 1.
        seed: Seed of all random numbers.

    Returns:
        Independent samples, exact up to rounding.

    Reference:
        arXiv:2406.02797v1, Lemma A.1 and Figures 1 and 2.

    Example:
        >>> from privcore.labels.problems import LabelAdvantage
        >>> drawn = releases(LabelAdvantage(mechanism="llp", prior="point(0.5)", bag_size=1), 3, seed=1)
        >>> drawn.posteriors.tolist(), drawn.advantages.tolist()
        ([0.0, 1.0, 1.0], [0.5, 0.5, 0.5])
    """
    rng = np.random.default_rng(seed)
    rows = max(1, _CHUNK // problem.bag_size)
    sizes = [min(rows, number - start) for start in range(0, number, rows)]
    parts = [_some(problem, size, rng) for size in sizes]
    etas, one, zero, advantages = (np.concatenate(column) for column in zip(*parts, strict=True))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(one) - np.log(zero)
        posteriors = etas * one / (etas * one + (1.0 - etas) * zero)
    silent = one + zero == 0.0  # both likelihoods underflow, a negligible event
    return Releases(
        etas=etas,
        ratios=np.clip(np.where(silent, 0.0, ratios), -problem.label_epsilon, problem.label_epsilon),
        posteriors=np.where(silent, etas, posteriors),
        advantages=advantages,
    )


def _some(problem: LabelProblem, bags: int, rng: np.random.Generator) -> tuple[Array, Array, Array, Array]:
    """Return etas of the first members, likelihoods of the releases for both labels, and advantages."""
    bag = problem.distribution.draw(rng, (bags, problem.bag_size))
    labels = (rng.random(bag.shape) < bag).astype(np.int64)
    etas, sums, epsilon = bag[:, 0], labels.sum(axis=1), problem.label_epsilon
    match problem.mechanism:
        case "none":
            return etas, np.ones(bags), np.ones(bags), np.zeros(bags)
        case "rr":
            one, zero = (np.broadcast_to(g[::-1], (bags, 2)) for g in outputs(epsilon))
            return etas, *_at(one, zero, randomized_response(sums, epsilon, rng)), exact_at(etas, one, zero)
        case "llp-laplace":
            laws = pmf(bag[:, 1:])
            noisy = laplace_sums(sums, epsilon, rng)
            pairs = [laplace.density_at(law, epsilon, float(z)) for law, z in zip(laws, noisy, strict=True)]
            densities = np.array(pairs)
            return etas, densities[:, 0], densities[:, 1], laplace.advantages(laws, epsilon, etas)
        case mechanism:
            noisy_sums = sums if mechanism == "llp" else geometric_sums(sums, bag.shape[1], epsilon, rng)
            one, zero = geometric.released(pmf(bag[:, 1:]), epsilon)
            return etas, *_at(one, zero, noisy_sums), exact_at(etas, one, zero)


def _at(one: Array, zero: Array, released: Labels) -> tuple[Array, Array]:
    """Return the likelihoods of the released outputs, one for each row."""
    place = (np.arange(released.size), released)
    return one[place], zero[place]
