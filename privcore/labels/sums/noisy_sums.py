"""Likelihoods of a sum of labels with geometric or Laplace noise."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from privcore.labels.sums.poisson_binomial import Array
from privcore.numerics.compiled import compiled
from privcore.numerics.sums import dot


def released(others: Array, epsilon: float) -> tuple[Array, Array]:
    r"""Return the likelihoods of a noisy clipped count given the label of one member.

    $g_y(u) = \sum_s q(s) K(u | s + y)$ with $K(u | s) = \frac{1 - r}{1 + r} r^{|u - s|}$ inside and
    $r^{|u - s|} / (1 + r)$ at $u = 0, k$, where $r = e^{-\varepsilon}$; two one-sided recursions take O(k).

    Args:
        others: Distributions q of the sum of the other labels, shape (..., k).
        epsilon: Label differential privacy, > 0; infinity for no noise.

    Returns:
        Likelihoods of u = 0, ..., k for label 1 and for label 0, each of shape (..., k + 1).

    Example:
        >>> one, zero = released(np.array([1.0]), 1.0)  # a bag of one: randomized response
        >>> one.round(6).tolist()
        [0.268941, 0.731059]
    """
    shape = (*others.shape[:-1], others.shape[-1] + 1)
    one, zero = np.zeros(shape), np.zeros(shape)
    one[..., 1:], zero[..., :-1] = others, others
    if math.isfinite(epsilon):
        for law in (one, zero):
            _blur(law.reshape(-1, shape[-1]), math.exp(-epsilon), -math.expm1(-epsilon))
    return one, zero


@compiled()
def _blur(rows: Array, r: float, rest: float) -> None:
    """Replace the distribution in every row by that of the noisy clipped sum; `rest` is 1 - r."""
    k = rows.shape[1] - 1
    above = np.empty(k + 1)
    for i in range(rows.shape[0]):
        row = rows[i]
        b = 0.0
        for u in range(k, -1, -1):
            above[u] = b
            b = r * (b + row[u])
        a = 0.0
        for u in range(k + 1):
            a = r * a + row[u]
            row[u] = (a + above[u]) / (1.0 + r)
            if 0 < u < k:
                row[u] *= rest


FEWEST = 3
"""Number of nodes between two counts that suffices for slowly changing likelihoods."""
_FLAT = 1e-7
"""Epsilon below which the likelihoods between two counts differ by less than rounding."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)


def sides(others: Array, epsilon: float, one: float, zero: float) -> Array:
    r"""Return integrals over the half-lines left and right of the root of $x_1 g_1(u) - x_0 g_0(u)$.

    The density of u given label y is, at $u = m + t$ with $0 \le t \le 1$,
    $\frac\varepsilon2 (A_y(m) e^{-\varepsilon t} + B_y(m + 1) e^{-\varepsilon (1 - t)})$ with one-sided sums
    A and B. The ratio $g_1 / g_0$ rises with u, since the distributions of the sum and of the noise are
    log-concave, so the difference changes its sign at most once, from negative to positive.

    Args:
        others: Distributions q of the sum of the other labels, shape (rows, k).
        epsilon: Label differential privacy, > 0 and finite.
        one: Weight $x_1 \ge 0$.
        zero: Weight $x_0 \ge 0$.

    Returns:
        Shape (rows, 6): the integrals of the positive and of the negative part of the difference, the masses
        of $g_1$ and of $g_0$ over its positive side, and their masses over the other side. All are sums of
        positive terms.

    Example:
        >>> sides(np.array([[1.0]]), 1.0, 0.5, 0.5)[0].round(6).tolist()  # a single label
        [0.196735, 0.196735, 0.696735, 0.303265, 0.303265, 0.696735]
    """
    out = np.zeros((others.shape[0], 6))
    ones, zeros = np.full(others.shape[0], one), np.full(others.shape[0], zero)
    _split(np.ascontiguousarray(others), epsilon, ones, zeros, out)
    return out


def advantages(others: Array, epsilon: float, etas: Array, more: float = 0.0) -> Array:
    """Return the advantage of every member of a bag, without bounds of its error.

    Args:
        others: Distributions of the sum of the labels of all others, one row for each member, shape (k, k).
        epsilon: Label differential privacy, > 0 and finite.
        etas: Probabilities of label 1 of the members, shape (k,).
        more: Relative increase of the rarer label's probability, and decrease of the other one's.
    """
    out, change = np.zeros((others.shape[0], 6)), np.where(etas <= 0.5, more, -more)
    _split(np.ascontiguousarray(others), epsilon, etas * (1.0 + change), (1.0 - etas) * (1.0 - change), out)
    return np.asarray(np.where(etas <= 0.5, out[:, 0], out[:, 1]))


@compiled()
def one_sided(q: Array, r: float, a1: Array, a0: Array, b1: Array, b0: Array) -> None:
    """Fill the one-sided sums at 0, ..., k for both labels."""
    k, one, zero = q.size, 0.0, 0.0
    for s in range(k + 1):
        one = r * one + (q[s - 1] if s > 0 else 0.0)
        zero = r * zero + (q[s] if s < k else 0.0)
        a1[s], a0[s] = one, zero
    one, zero = 0.0, 0.0
    for s in range(k, -1, -1):
        one = r * one + (q[s - 1] if s > 0 else 0.0)
        zero = r * zero + (q[s] if s < k else 0.0)
        b1[s], b0[s] = one, zero


@compiled()
def _split(others: Array, epsilon: float, ones: Array, zeros: Array, out: Array) -> None:
    k = others.shape[1]
    r, rest = math.exp(-epsilon), -math.expm1(-epsilon)
    a1, a0, b1, b0 = np.empty(k + 1), np.empty(k + 1), np.empty(k + 1), np.empty(k + 1)
    for i in range(others.shape[0]):
        x1, x0 = ones[i], zeros[i]
        one_sided(others[i], r, a1, a0, b1, b0)
        row = out[i]
        for tail in range(2):
            one, zero = (0.5 * b1[0], 0.5 * b0[0]) if tail == 0 else (0.5 * a1[k], 0.5 * a0[k])
            gain = x1 * one - x0 * zero
            if gain > 0.0:
                row[0] += gain
                row[2] += one
                row[3] += zero
            else:
                row[1] -= gain
                row[4] += one
                row[5] += zero
        for m in range(k):
            a = x1 * a1[m] - x0 * a0[m]
            b = x1 * b1[m + 1] - x0 * b0[m + 1]
            if a + b * r > 0.0 or min(a, b) >= 0.0:  # both conditions, since r may underflow
                left, right, fall = 0.0, rest, 1.0
                row[0] += 0.5 * rest * (a + b)
            elif a * r + b <= 0.0 or max(a, b) <= 0.0:
                left, right, fall = rest, 0.0, r
                row[1] -= 0.5 * rest * (a + b)
            else:  # a < 0 < b; the sign changes at exp(-2 epsilon t) = -r b / a
                # the quotients are differences of roots; their squares underflow only below the floor
                above = (b + a * r) / (math.sqrt(b) + math.sqrt(-a * r))
                below = (a + b * r) / (math.sqrt(-a) + math.sqrt(b * r))
                row[0] += 0.5 * above * above
                row[1] += 0.5 * below * below
                half = 0.5 * math.log(-a / b)
                before = min(epsilon, max(0.0, 0.5 * epsilon + half))
                after = min(epsilon, max(0.0, 0.5 * epsilon - half))
                left, right, fall = -math.expm1(-before), -math.expm1(-after), math.exp(-before)
            # on the left exp(-epsilon t) falls from 1 to `fall`, and the other exponential rises to r / fall
            rise = r / fall if left > 0.0 else r
            row[2] += 0.5 * right * (a1[m] * fall + b1[m + 1])
            row[3] += 0.5 * right * (a0[m] * fall + b0[m + 1])
            row[4] += 0.5 * left * (a1[m] + b1[m + 1] * rise)
            row[5] += 0.5 * left * (a0[m] + b0[m + 1] * rise)


def at_nodes(others: Array, epsilon: float, nodes: int) -> tuple[Array, Array]:
    r"""Return likelihoods at quadrature nodes, times the weights, for integrals of smooth functions.

    For a function G of the likelihoods that is homogeneous of degree 1, the integral over u is approximated
    by the sum of G over the returned pairs. Between two counts the likelihoods are a multiple of
    $(1 - x) A + x B$ with $x = \sigma(\varepsilon (2 t - 1))$, so $G((1 - x) A + x B)$ is integrated over x
    with respect to a known measure, by Gauss quadrature for this measure.

    Args:
        others: Distributions q of the sum of the other labels, shape (rows, k).
        epsilon: Label differential privacy, > 0 and finite.
        nodes: Number of nodes between two counts.

    Returns:
        Weighted likelihoods for label 1 and for label 0, of shape (rows, nodes); their sums over the nodes
        are 1 up to rounding.
    """
    k = others.shape[1]
    x, weights = interval_rule(epsilon, nodes)
    shape = (others.shape[0], k * x.size + 2)
    one, zero = np.empty(shape), np.empty(shape)
    falls, rises = weights * (1.0 - x), weights * x
    _fill_nodes(np.ascontiguousarray(others), math.exp(-epsilon), falls, rises, one, zero)
    return one, zero


@lru_cache(maxsize=64)
def interval_rule(epsilon: float, number: int) -> tuple[Array, Array]:
    r"""Return the Gauss quadrature of the measure of $x = \sigma(\varepsilon (2 t - 1))$ between two counts.

    The measure has the density $\frac\varepsilon2 (e^{-\varepsilon t} + e^{-\varepsilon (1 - t)})$ over t in
    [0, 1], and therefore the mass $1 - e^{-\varepsilon}$. It is discretised, and its recurrence coefficients
    are computed by the Lanczos process.

    Args:
        epsilon: Label differential privacy, > 0 and finite.
        number: Number of nodes, >= 1.

    Returns:
        Nodes in (0, 1) and weights.
    """
    if epsilon < _FLAT:
        return np.full(number, 0.5), np.full(number, -math.expm1(-epsilon) / number)
    # Both halves as integrals over v = exp(-epsilon t), in panels that grow from the least value of v.
    least = math.exp(-0.5 * epsilon)
    edges = np.geomspace(least, 1.0, max(24, math.ceil(epsilon)))
    half = np.diff(edges)[:, None] / 2.0
    v = (edges[:-1, None] + half * (1.0 + _NODES)).ravel()
    mass = (0.5 * half * _WEIGHTS).ravel() * (1.0 + (least / v) ** 2)
    small = (least / v) ** 2 / (1.0 + (least / v) ** 2)
    y = np.concatenate([small - 0.5, 0.5 - small])  # x - 1/2
    measure = np.concatenate([mass, mass])
    root = np.sqrt(measure)
    basis = [root / np.linalg.norm(root)]
    diagonal, beside = [], []
    for _ in range(number):
        image = y * basis[-1]
        diagonal.append(float(dot(image, basis[-1])))
        for vector in (*basis, *basis):  # twice, since rounding would spoil the orthogonality
            image -= dot(image, vector) * vector
        beside.append(float(np.linalg.norm(image)))
        basis.append(image / beside[-1] if beside[-1] > 0.0 else image)
    jacobi = np.diag(diagonal) + np.diag(beside[:-1], 1) + np.diag(beside[:-1], -1)
    nodes, vectors = np.linalg.eigh(jacobi)
    # x and 1 - x are symmetric, and both masses are known exactly
    x, weights = np.clip(0.5 + 0.5 * (nodes - nodes[::-1]), 0.0, 1.0), vectors[0] ** 2
    weights = 0.5 * (weights + weights[::-1])
    return x, -math.expm1(-epsilon) * weights / weights.sum()


@compiled()
def _fill_nodes(others: Array, r: float, falls: Array, rises: Array, one: Array, zero: Array) -> None:
    k = others.shape[1]
    a1, a0, b1, b0 = np.empty(k + 1), np.empty(k + 1), np.empty(k + 1), np.empty(k + 1)
    for i in range(others.shape[0]):
        one_sided(others[i], r, a1, a0, b1, b0)
        place = 0
        for m in range(k):
            for n in range(falls.size):
                one[i, place] = a1[m] * falls[n] + b1[m + 1] * rises[n]
                zero[i, place] = a0[m] * falls[n] + b0[m + 1] * rises[n]
                place += 1
        one[i, place], zero[i, place] = 0.5 * b1[0], 0.5 * b0[0]
        one[i, place + 1], zero[i, place + 1] = 0.5 * a1[k], 0.5 * a0[k]


def density_at(others: Array, epsilon: float, z: float) -> tuple[float, float]:
    r"""Return the densities of a noisy count z given label 1 and label 0, up to a common factor.

    $\sum_s w_y(s) e^{-\varepsilon (|z - s| - d)}$, where d is the distance of z from its nearest count. The
    differences of distances are whole numbers on either side of z, and $1 - 2 d$ across it, so that no
    rounding of z is multiplied by $\varepsilon$.

    Args:
        others: Distribution q of the sum of the other labels, shape (k,).
        epsilon: Label differential privacy, > 0 and finite.
        z: The released value.

    Returns:
        Both densities, to the relative error of a sum of products of this size and `density_error`.

    Example:
        >>> one, zero = density_at(np.array([0.5, 0.5]), 1.0, -1e9)  # the same ratio for all z below 0
        >>> round(one / zero, 12) == round(math.exp(-1.0), 12)
        True
    """
    k = others.size
    counts = np.arange(k + 1.0)
    below = math.floor(min(max(z, 0.0), float(k)))  # the nearest count on the left, or an end
    part = min(max(z - below, 0.0), 1.0)  # exact
    left, right = (0.0, (1.0 - part) - part) if part <= 0.5 else ((part - 0.5) * 2.0, 0.0)
    steps = np.where(counts <= below, below - counts, counts - below - 1.0)
    across = np.where(counts <= below, left, right)
    if z <= 0.0 or below == k:
        steps, across = np.abs(counts - below), np.zeros(k + 1)
    with np.errstate(under="ignore"):
        kernel = np.exp(-epsilon * steps) * np.exp(-epsilon * across)
        return float(dot(others, kernel[1:])), float(dot(others, kernel[:-1]))


def density_error(members: int, epsilon: float) -> float:
    """Return a bound of the relative error of the kernel of `density_at` for a bag of this size.

    Its exponent is at most k epsilon, and e^-746 is 0 already; each exponent has at most three roundings.
    """
    return (min(epsilon * members, 746.0) + epsilon + 4.0) * 2.0**-51


RATES = np.geomspace(0.01, 8.0, 64)
"""Parameters of Chernoff's bounds."""

Complex = NDArray[np.complexfloating]


@dataclass(frozen=True, kw_only=True)
class CountNoise:
    r"""Noise of the sum of the labels, as mixtures of kernels on the whole numbers.

    Attributes:
        kernels: Transforms of the kernels, $E e^{-i t n}$ at angles t.
        finer: Coefficients of the kernels, shape (outputs, kernels), that reveal no less than the noisy sum.
        coarser: Coefficients that reveal no more.
        logs: Upper bounds of the logarithms of the moment generating functions of the kernels, at `RATES`
            and their negatives.
    """

    kernels: tuple[Callable[[Array], Complex | Array], ...]
    finer: Array
    coarser: Array
    logs: Array


def noise_of(mechanism: str, epsilon: float, parts: int) -> CountNoise:
    r"""Return the noise of a mechanism with bags.

    With $r = e^{-\varepsilon}$ the density of a count with Laplace noise at $m + t$, $0 \le t \le 1$, is
    $\frac\varepsilon2 (e^{-\varepsilon t} A(m) + e^{-\varepsilon (1 - t)} B(m))$, with kernels A and B of
    weights $r^n$ at $n \ge 0$ and $r^{-n - 1}$ at $n < 0$. Its integrals over N equal parts of [0, 1] are an
    output that is cut, and reveal less. Two-sided geometric noise of ratio $e^{-\varepsilon / N}$ on the
    multiples of 1 / N reveals more: it moves the density inside each part to the two ends of the part, with
    the same mean, and the advantage is convex in the coefficients of A and B.

    Args:
        mechanism: A mechanism with bags.
        epsilon: Label differential privacy of the noise; infinity for no noise.
        parts: Number N of parts between two counts; for Laplace noise only.
    """
    if mechanism != "llp-laplace":
        only = np.ones((1, 1))
        kernels = (partial(noise_transform, epsilon),)
        return CountNoise(kernels=kernels, finer=only, coarser=only, logs=_noise_logs(epsilon))
    r, rest = np.exp(-np.longdouble(epsilon)), -np.expm1(-np.longdouble(epsilon))

    def above(angles: Array) -> Complex:
        return np.asarray(rest / (1 - r * np.exp(-1j * angles)))

    def below(angles: Array) -> Complex:
        turn = np.exp(1j * angles)
        return np.asarray(rest * turn / (1 - r * turn))

    t = np.arange(parts) / parts
    falls, rises = np.exp(-epsilon * t), np.exp(-epsilon * (1.0 - t))
    cut = -0.5 * math.expm1(-epsilon / parts) / -math.expm1(-epsilon)
    return CountNoise(
        kernels=(above, below),
        finer=math.tanh(0.5 * epsilon / parts) / -math.expm1(-epsilon) * np.stack([falls, rises], axis=1),
        coarser=cut * np.stack([falls, falls[::-1]], axis=1),
        # a = above, which is at most 1 + r times two-sided geometric noise, and below is -1 - a
        logs=_noise_logs(epsilon) + RATES + math.log(2.0),
    )


def _noise_logs(epsilon: float) -> Array:
    """Return the logarithms of the moment generating function of two-sided geometric noise."""
    if math.isinf(epsilon):
        return np.zeros(RATES.size)
    allowed = 0.9 * epsilon > RATES
    r = math.exp(-epsilon)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        value = 2.0 * math.log1p(-r) - np.log1p(-r * np.exp(RATES)) - np.log1p(-r * np.exp(-RATES))
    return np.asarray(np.where(allowed, value, math.inf))


def noise_transform(epsilon: float, angles: Array) -> Array:
    r"""Return the characteristic function of two-sided geometric noise, $(1-r)^2 / |1 - r e^{i t}|^2$."""
    if math.isinf(epsilon):
        return np.ones(angles.shape, dtype=np.longdouble)
    r = np.exp(-np.longdouble(epsilon))
    return np.asarray((1 - r) ** 2 / ((1 - r) ** 2 + 4 * r * np.sin(angles / 2) ** 2))
