"""Aggregation with Laplace noise, in units of labels: one threshold splits the line."""

import math
from itertools import pairwise

import numba as nb
import numpy as np

from privcore.labels.poisson_binomial import Array

_FEW, _MANY = np.polynomial.legendre.leggauss(6), np.polynomial.legendre.leggauss(10)


def sides(others: Array, epsilon: float, one: float, zero: float) -> Array:
    r"""Return how the line splits where $x_1 g_1(u) - x_0 g_0(u)$ changes its sign from - to +.

    The density of u given label y is on $u = m + t$, $0 \le t \le 1$,
    $\frac\varepsilon2 (A_y(m) e^{-\varepsilon t} + B_y(m + 1) e^{-\varepsilon (1 - t)})$ with one-sided sums
    A and B, and the ratio $g_1 / g_0$ rises with u, since the law of a sum and the noise are log-concave.

    Args:
        others: Laws q of the sum of the other labels, shape (rows, k).
        epsilon: Label differential privacy, > 0 and finite.
        one: Weight $x_1 \ge 0$.
        zero: Weight $x_0 \ge 0$.

    Returns:
        Shape (rows, 4): the integrals of the positive and of the negative part, then the masses of $g_1$ and
        of $g_0$ where the difference is positive.

    Example:
        >>> sides(np.array([[1.0]]), 1.0, 0.5, 0.5)[0].round(6).tolist()  # a single label
        [0.196735, 0.196735, 0.696735, 0.303265]
    """
    out = np.zeros((others.shape[0], 4))
    ones, zeros = np.full(others.shape[0], one), np.full(others.shape[0], zero)
    _split(np.ascontiguousarray(others), epsilon, ones, zeros, out)
    return out


def advantages(others: Array, epsilon: float, etas: Array) -> Array:
    """Return the advantage of every member of a bag, without its ends.

    Args:
        others: Laws of the sum of the labels of all others, one row a member, shape (k, k).
        epsilon: Label differential privacy, > 0 and finite.
        etas: Probabilities of label 1 of the members, shape (k,).
    """
    out = np.zeros((others.shape[0], 4))
    _split(np.ascontiguousarray(others), epsilon, etas, 1.0 - etas, out)
    return np.asarray(np.where(etas <= 0.5, out[:, 0], out[:, 1]))


@nb.njit(cache=True)
def _sums(q: Array, r: float, a1: Array, a0: Array, b1: Array, b0: Array) -> None:
    """Fill the one-sided sums at 0, ..., k for both labels."""
    k = q.size
    one, zero = 0.0, 0.0
    for s in range(k + 1):
        one = r * one + (q[s - 1] if s > 0 else 0.0)
        zero = r * zero + (q[s] if s < k else 0.0)
        a1[s], a0[s] = one, zero
    one, zero = 0.0, 0.0
    for s in range(k, -1, -1):
        one = r * one + (q[s - 1] if s > 0 else 0.0)
        zero = r * zero + (q[s] if s < k else 0.0)
        b1[s], b0[s] = one, zero


@nb.njit(cache=True)
def _split(others: Array, epsilon: float, ones: Array, zeros: Array, out: Array) -> None:
    k = others.shape[1]
    r, rest = math.exp(-epsilon), -math.expm1(-epsilon)
    a1, a0, b1, b0 = np.empty(k + 1), np.empty(k + 1), np.empty(k + 1), np.empty(k + 1)
    for i in range(others.shape[0]):
        x1, x0 = ones[i], zeros[i]
        _sums(others[i], r, a1, a0, b1, b0)
        row = out[i]  # positive part, negative part, mass of g_1 and of g_0 where the difference is positive
        for tail in range(2):
            one, zero = (0.5 * b1[0], 0.5 * b0[0]) if tail == 0 else (0.5 * a1[k], 0.5 * a0[k])
            gain = x1 * one - x0 * zero
            if gain > 0.0:
                row[0] += gain
                row[2] += one
                row[3] += zero
            else:
                row[1] -= gain
        for m in range(k):
            a = x1 * a1[m] - x0 * a0[m]
            b = x1 * b1[m + 1] - x0 * b0[m + 1]
            if a * r + b <= 0.0:
                row[1] -= 0.5 * rest * (a + b)
                continue
            up, down = 0.0, 0.0  # what of A and of B lies left of the place where the sign changes
            if a + b * r <= 0.0:
                t = min(1.0, max(0.0, 0.5 + 0.5 * math.log(-a / b) / epsilon))
                up, down = -math.expm1(-epsilon * t), r * math.expm1(epsilon * t)
                row[1] -= 0.5 * (a * up + b * down)
            row[0] += 0.5 * (a * (rest - up) + b * (rest - down))
            row[2] += 0.5 * (a1[m] * (rest - up) + b1[m + 1] * (rest - down))
            row[3] += 0.5 * (a0[m] * (rest - up) + b0[m + 1] * (rest - down))


def at_nodes(others: Array, epsilon: float) -> tuple[Array, Array]:
    r"""Return likelihoods at nodes on the line, times their weights, for integrals of smooth functions.

    A function of the likelihoods that is homogeneous of degree 1 is integrated over u by its sum over them.

    Args:
        others: Laws q of the sum of the other labels, shape (rows, k).
        epsilon: Label differential privacy, > 0 and finite.

    Returns:
        Weighted likelihoods for label 1 and for label 0, of shape (rows, nodes).
    """
    t, weights = interval_nodes(epsilon)
    k = others.shape[1]
    shape = (others.shape[0], k * t.size + 2)
    one, zero = np.empty(shape), np.empty(shape)
    falls, rises = (
        0.5 * epsilon * weights * np.exp(-epsilon * t),
        0.5 * epsilon * weights * np.exp(-epsilon * (1.0 - t)),
    )
    _fill_nodes(np.ascontiguousarray(others), math.exp(-epsilon), falls, rises, one, zero)
    return one, zero


def interval_nodes(epsilon: float) -> tuple[Array, Array]:
    r"""Return nodes and weights of $\int_0^1 f(t) dt$, f having the scales 1 and 1 / epsilon at both ends."""
    nodes, weights = _MANY if 2.0 < epsilon <= 8.0 else _FEW
    if epsilon <= 8.0:
        return 0.5 * (1.0 + nodes), 0.5 * weights
    # Both halves in v = exp(-epsilon t), the density of the mass; at the middle v has the scale of its least.
    least = math.exp(-0.5 * epsilon)
    t, w = [], []
    edges = (least, min(1.0, 5.0 * least), min(1.0, 30.0 * least), 1.0)
    for low, high in pairwise(edges):
        v = low + 0.5 * (high - low) * (1.0 + nodes)
        t.append(-np.log(v) / epsilon)
        w.append(0.5 * (high - low) * weights / (epsilon * v))
    half, half_weights = np.concatenate(t), np.concatenate(w)
    return np.concatenate([half, 1.0 - half]), np.concatenate([half_weights, half_weights])


@nb.njit(cache=True)
def _fill_nodes(others: Array, r: float, falls: Array, rises: Array, one: Array, zero: Array) -> None:
    k = others.shape[1]
    a1, a0, b1, b0 = np.empty(k + 1), np.empty(k + 1), np.empty(k + 1), np.empty(k + 1)
    for i in range(others.shape[0]):
        _sums(others[i], r, a1, a0, b1, b0)
        place = 0
        for m in range(k):
            for n in range(falls.size):
                one[i, place] = a1[m] * falls[n] + b1[m + 1] * rises[n]
                zero[i, place] = a0[m] * falls[n] + b0[m + 1] * rises[n]
                place += 1
        one[i, place], zero[i, place] = 0.5 * b1[0], 0.5 * b0[0]
        one[i, place + 1], zero[i, place + 1] = 0.5 * a1[k], 0.5 * a0[k]


def density_at(others: Array, epsilon: float, z: float) -> tuple[float, float]:
    r"""Return the densities of one noisy count z for label 1 and label 0, up to a common factor.

    $\sum_s w_y(s) e^{-\varepsilon (|z - s| - d)}$, where d is the distance of z from its nearest count.

    Args:
        others: Law q of the sum of the other labels, shape (k,).
        epsilon: Label differential privacy, > 0 and finite.
        z: What was released.
    """
    counts = np.arange(others.size + 1)
    distance = np.abs(z - counts)
    with np.errstate(under="ignore"):
        kernel = np.exp(-epsilon * (distance - distance.min()))
        return float(others @ kernel[1:]), float(others @ kernel[:-1])
