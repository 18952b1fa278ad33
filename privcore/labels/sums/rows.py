"""Proved bounds of advantages given the sum of the other labels, whose distributions are rows of arrays."""

import math

import numpy as np

from privcore.distributions.prior import Prior
from privcore.distributions.prior_finite import FinitePrior, overturned_at
from privcore.labels.sums import noisy_sums
from privcore.labels.sums.poisson_binomial import FLOOR, Array, leave_one_out, relative_error

_FINE = 1e-5
_MOST_NODES = 128
_FEW = 4
"""Number of values up to which integrals over Laplace noise are sums over the values."""
_NODES = 2**19
"""Number of nodes of integrals over Laplace noise that are held in memory at a time."""


def discrete(mechanism: str) -> bool:
    """Return whether the released value is a whole number, so that integrals over outputs are sums."""
    return mechanism != "llp-laplace"


def likelihoods(others: Array, epsilon: float) -> tuple[Array, Array, float]:
    """Return the likelihoods of a released count given each label, with their relative error.

    Args:
        others: Distributions of the sum of the other labels, shape (rows, k).
        epsilon: Label differential privacy of the geometric noise; infinity for the exact sum.
    """
    one, zero = noisy_sums.released(others, epsilon)
    k = others.shape[-1]
    # Noise adds the rounding of k + 1 terms and of the kernel, whose exponent is at most k epsilon.
    noise = (8.0 * k + 64.0) * 2.0**-53 if math.isfinite(epsilon) else 0.0
    return one, zero, relative_error(k) + noise


def advantage(others: Array, mechanism: str, epsilon: float, law: Prior) -> tuple[Array, Array]:
    """Return bounds of the advantage over the attacked examples, for each row of `others`.

    Args:
        others: Distributions of the sum of the other labels, shape (rows, k).
        mechanism: `llp`, `llp-geometric`, or `llp-laplace`; the last needs a `law` with finitely many values.
        epsilon: Label differential privacy of the noise; infinity for `llp`.
        law: Distribution of eta of the attacked examples.

    Returns:
        Lower and upper bounds, each of shape (rows,).
    """
    if discrete(mechanism):
        low, high = overturned_ends(law, *likelihoods(others, epsilon))
        return low.sum(axis=-1), high.sum(axis=-1)
    assert isinstance(law, FinitePrior)
    low, high = np.zeros(others.shape[0]), np.zeros(others.shape[0])
    error = 2.0 * relative_error(others.shape[1])
    for eta, weight in zip(law.values, law.weights, strict=True):
        side = 0 if eta <= 0.5 else 1
        more, less = 1.0 + (error if side == 0 else -error), 1.0 - (error if side == 0 else -error)
        low += weight * noisy_sums.sides(others, epsilon, eta * less, (1.0 - eta) * more)[:, side]
        high += weight * noisy_sums.sides(others, epsilon, eta * more, (1.0 - eta) * less)[:, side]
    slack = law.error + error
    return np.maximum(0.0, low * (1.0 - slack) - FLOOR), high * (1.0 + slack) + FLOOR


def overturned_ends(
    own: Prior, one: Array, zero: Array, error: float, *, quickly: bool = False
) -> tuple[Array, Array]:
    """Return bounds of the overturned mass of outputs whose likelihoods have a relative error.

    The mass grows with the larger likelihood and falls with the smaller one, so its bounds are its values at
    the extremes of both.

    Args:
        own: Distribution of eta of the attacked examples.
        one: Likelihoods of the outputs for label 1.
        zero: Likelihoods for label 0, of the same shape.
        error: Relative error of the likelihoods.
        quickly: Whether to use `overturned_quickly`; for finitely many values, its errors are like errors of
            the likelihoods.
    """
    overturned, slack = own.overturned, own.error
    if quickly:
        overturned, slack, error = own.overturned_quickly, own.quick_error, error + own.quick_error
    larger = one > zero
    near = np.abs(one - zero) <= 4.0 * error * (one + zero)
    more, less = 1.0 + error, 1.0 - error
    high = overturned(np.where(larger, one * more, one * less), np.where(larger, zero * less, zero * more))
    low = overturned(np.where(larger, one * less, one * more), np.where(larger, zero * more, zero * less))
    if near.any():
        low = np.where(near, 0.0, low)
        both = np.maximum(overturned(one * more, zero * less), overturned(one * less, zero * more))
        high = np.where(near, both, high)
    possible, sure = np.maximum(one, zero) > 0.0, (np.maximum(one, zero) >= FLOOR) & (low >= FLOOR)
    return np.where(sure, low * (1.0 - slack), 0.0), high * (1.0 + slack) + np.where(possible, FLOOR, 0.0)


def quick_advantage(
    others: Array, mechanism: str, epsilon: float, law: Prior, nodes: int = noisy_sums.FEWEST
) -> Array:
    """Return the advantages for samples, without bounds of their errors.

    Args:
        others: Distributions of the sum of the other labels, shape (rows, k).
        mechanism: A mechanism with bags.
        epsilon: Label differential privacy of its noise; infinity for `llp`.
        law: Distribution of eta of the attacked examples.
        nodes: For Laplace noise, number of nodes between two counts, as found by `nodes_needed`.

    Returns:
        Shape (rows,), with the relative error `law.quick_error` in addition to the error of the quadrature.
    """
    if discrete(mechanism):
        one, zero = noisy_sums.released(others, epsilon)
        return np.asarray(law.overturned_quickly(one, zero).sum(axis=-1))
    if isinstance(law, FinitePrior) and law.values.size <= _FEW:
        parts = [
            weight * noisy_sums.sides(others, epsilon, eta, 1.0 - eta)[:, 0 if eta <= 0.5 else 1]
            for eta, weight in zip(law.values, law.weights, strict=True)
        ]
        return np.asarray(sum(parts))
    rows = max(1, _NODES // (others.shape[1] * nodes))
    pieces = [others[start : start + rows] for start in range(0, others.shape[0], rows)]
    return np.concatenate(
        [law.overturned_quickly(*noisy_sums.at_nodes(piece, epsilon, nodes)).sum(axis=-1) for piece in pieces]
    )


def quick_ends(
    others: Array, mechanism: str, epsilon: float, own: Prior, nodes: int = noisy_sums.FEWEST
) -> tuple[Array, Array]:
    """Return bounds of the advantages for samples; for a continuous prior, both are `quick_advantage`.

    For finitely many values, an output may be as likely for both labels. Then rounding alone decides whether
    it counts, and the relative error of an advantage has no bound, so the bounds are proved. With Laplace
    noise this is so for up to four values, and more are integrated as for a continuous prior.

    Args:
        others: Distributions of the sum of the other labels, shape (rows, k).
        mechanism: A mechanism with bags.
        epsilon: Label differential privacy of its noise; infinity for `llp`.
        own: Distribution of eta of the attacked examples.
        nodes: As for `quick_advantage`.
    """
    if isinstance(own, FinitePrior) and discrete(mechanism):
        low, high = overturned_ends(own, *likelihoods(others, epsilon), quickly=True)
        return low.sum(axis=-1), high.sum(axis=-1)
    if isinstance(own, FinitePrior) and own.values.size <= _FEW:
        return advantage(others, mechanism, epsilon, own)
    quick = quick_advantage(others, mechanism, epsilon, own, nodes)
    return quick, quick


def nodes_needed(others: Array, epsilon: float, law: Prior) -> tuple[int, float]:
    """Return the number of nodes between two counts for Laplace noise, and the relative error that remains.

    Args:
        others: Some distributions of the sum of the other labels, shape (rows, k).
        epsilon: Label differential privacy of the noise.
        law: Distribution of eta of the attacked examples.

    Returns:
        Number of nodes, and the difference from results with more nodes, relative to the mean.
    """
    numbers = [noisy_sums.FEWEST]
    means = [float(quick_advantage(others, "llp-laplace", epsilon, law, numbers[0]).mean())]
    wrong: list[float] = []
    while True:
        numbers.append(2 * numbers[-1])
        means.append(float(quick_advantage(others, "llp-laplace", epsilon, law, numbers[-1]).mean()))
        wrong.append(abs(means[-2] - means[-1]) / means[-1] if means[-1] > 0.0 else 0.0)
        if len(wrong) > 1 and max(wrong[-2:]) <= _FINE:  # one may be a coincidence
            return numbers[-3], wrong[-2] + wrong[-1]
        if numbers[-1] >= _MOST_NODES:
            return numbers[-2], wrong[-1]


def members(etas: Array, mechanism: str, epsilon: float) -> tuple[Array, Array]:
    """Return bounds of the advantage of each member of a bag, each of shape (k,).

    Args:
        etas: Probabilities of label 1 of the members, shape (k,).
        mechanism: A mechanism with bags.
        epsilon: Label differential privacy of its noise; infinity for `llp`.
    """
    return one_by_one(leave_one_out(etas), etas, mechanism, epsilon)


def one_by_one(others: Array, etas: Array, mechanism: str, epsilon: float) -> tuple[Array, Array]:
    """Return bounds of the advantage at one example for each row of distributions, each of shape (rows,).

    Args:
        others: Distributions of the sum of the other labels, shape (rows, k).
        etas: Probabilities of label 1 of the examples, shape (rows,).
        mechanism: A mechanism with bags.
        epsilon: Label differential privacy of its noise; infinity for `llp`.
    """
    slack = error = 2.0 * relative_error(others.shape[1])
    if discrete(mechanism):
        one, zero, error = likelihoods(others, epsilon)

    def at(more: float) -> Array:
        """Return the advantages if the rarer label is this much likelier, and the other one less likely."""
        if not discrete(mechanism):
            return noisy_sums.advantages(others, epsilon, etas, more)
        change = np.where(etas <= 0.5, more, -more)[:, None]
        return exact_at(etas, one * (1.0 + change), zero * (1.0 - change))

    low, high = at(-error) * (1.0 - slack), at(error) * (1.0 + slack)
    return np.maximum(0.0, low - FLOOR), high + (others.shape[1] + 1.0) * FLOOR


def exact_at(etas: Array, one: Array, zero: Array) -> Array:
    """Return the advantage of each member of a bag from its likelihoods, shape (members, outputs)."""
    return np.asarray(overturned_at(etas[:, None], one, zero).sum(axis=-1))
