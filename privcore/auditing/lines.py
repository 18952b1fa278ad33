"""The trade-off function of a pair whose likelihood ratio is known, as an envelope of lines."""

import numpy as np

from privcore.auditing.recursion import Array, Lines
from privcore.likelihood_ratio.distribution import Law
from privcore.likelihood_ratio.profile import delta_upper

_LARGEST_EPSILON = 300.0
"""The slopes e^epsilon of the lines stay far within the range of doubles."""


def supporting_lines(epsilons: Array, deltas: Array) -> Lines:
    r"""Return supporting lines of the inverse of 1 - f for a symmetric f with this privacy profile.

    $$g(y) = \sup_\varepsilon \max(e^{-\varepsilon} (y - \delta), 1 - \delta - e^\varepsilon (1 - y))$$

    Finitely many lines stay below g, and a profile that is rounded up moves them down: an audit with them
    refutes less, and stays valid.

    Args:
        epsilons: Values >= 0, shape (n,).
        deltas: Privacy profile at them, the worse of both directions, shape (n,).

    Returns:
        Slopes, rising, and values at 0 of the lines on the upper envelope.

    Reference:
        Dong, Roth and Su, arXiv:1905.02383, Proposition 2.12; arXiv:2410.22235v1, Algorithm 3.

    Example:
        >>> slopes, offsets = supporting_lines(np.array([0.0]), np.array([0.0]))
        >>> slopes.tolist(), abs(offsets).tolist()
        ([1.0], [0.0])
    """
    falls, rises = np.exp(-epsilons), np.exp(epsilons)
    slopes = np.concatenate([falls, rises])
    offsets = np.concatenate([-falls * deltas, -np.expm1(epsilons) - deltas])
    order = np.lexsort((offsets, slopes))
    kept: list[tuple[float, float]] = []
    for line in zip(slopes[order].tolist(), offsets[order].tolist(), strict=True):
        if kept and kept[-1][0] == line[0]:
            kept.pop()  # the other one is lower
        while len(kept) > 1 and _hides(kept[-2], line, kept[-1]):
            kept.pop()
        kept.append(line)
    return np.array([slope for slope, _ in kept]), np.array([offset for _, offset in kept])


def _hides(a: tuple[float, float], c: tuple[float, float], b: tuple[float, float]) -> bool:
    """Return whether lines of smaller and larger slope hide the one between them."""
    return (c[1] - a[1]) * (b[0] - a[0]) >= (b[1] - a[1]) * (c[0] - a[0])


def lines_of(law: Law) -> Lines:
    """Return lines below g for every pair, added and removed, that a law dominates.

    The profile of a law bends at its atoms only, so that lines through them lose nothing.
    """
    bends = np.abs(np.log(law.x[law.x > 0.0]))
    epsilons = np.append(0.0, np.unique(bends[bends < _LARGEST_EPSILON]))
    deltas = np.array([delta_upper(law, epsilon, "add-remove") for epsilon in epsilons.tolist()])
    return supporting_lines(epsilons, deltas)
