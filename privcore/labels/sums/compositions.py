"""Compositions of bags with few different etas, each with the distribution of the sum of the labels."""

import math
from collections.abc import Iterator
from itertools import combinations_with_replacement, islice, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcore.labels.sums.poisson_binomial import Array, binomial, pmf

Counts = NDArray[np.int64]

_CHUNK = 2**19
"""Number of probabilities that are held in memory at a time."""


class Rows(NamedTuple):
    """Some compositions of a bag.

    Attributes:
        members: Number of members with each eta, shape (rows, atoms), or index of the eta of each member,
            shape (rows, members).
        weights: Probabilities of the compositions, shape (rows,).
        laws: Distributions of the sum of the labels, shape (rows, members + 1).
    """

    members: Counts
    weights: Array
    laws: Array


def number(atoms: int, members: int, counts: Counts | None = None) -> float:
    """Return the number of compositions of a bag with this many members.

    Args:
        atoms: Number of different etas.
        members: Members of the bag, >= 0.
        counts: Numbers of rows of a file with each eta, if the members are different rows of it.

    Example:
        >>> number(2, 3), number(2, 3, np.array([1, 5]))
        (4, 2.0)
    """
    if counts is None:
        return math.comb(members + atoms - 1, atoms - 1)
    members = min(members, int(counts.sum()) - members)  # a choice of rows leaves out the others
    if members < 0:
        return 0.0
    ways = np.zeros(members + 1)
    ways[0] = 1.0
    for most in counts:
        total = np.cumsum(ways)
        total[most + 1 :] -= np.cumsum(ways)[: max(0, members - most)]
        ways = total
    return float(ways[-1])


def work(atoms: int, members: int, counts: Counts | None = None) -> float:
    """Return the approximate number of products for the distributions of all compositions."""
    each = 1.0 if atoms == 1 else 1.0 + min(1.0, (members + 1.0) / atoms) * members / 6.0 * (atoms - 1)
    if counts is None:
        each = 1.0 if atoms == 1 else 1.0 + members / 6.0 * (atoms - 1)
    return number(atoms, members, counts) * (members + 1.0) * each


def compositions(values: Array, weights: Array, members: int, counts: Counts | None = None) -> Iterator[Rows]:
    """Yield all compositions of members whose etas have few possible values, in chunks.

    The members are independent, or different rows of a file, whose numbers with each eta have a multivariate
    hypergeometric distribution.

    Args:
        values: The etas, shape (atoms,).
        weights: Their probabilities, shape (atoms,).
        members: Members of the bag, >= 0.
        counts: Numbers of rows of a file with each eta, shape (atoms,), if the members are different rows.
    """
    atoms = values.size
    limits = [members] * atoms if counts is None else [min(members, int(n)) for n in counts]
    powers = [
        [binomial(n, float(v)) for n in range(limit + 1)] if atoms > 1 else []
        for v, limit in zip(values, limits, strict=True)
    ]
    found = _counts(atoms, members) if counts is None else _limited(limits, members)
    rows = max(1, _CHUNK // (members + 1))
    while some := list(islice(found, rows)):
        table = np.array(some, dtype=np.int64).reshape(len(some), atoms)
        probabilities = _multinomial(table, weights) if counts is None else _hypergeometric(table, counts)
        yield Rows(table, probabilities, _laws(table, values, powers))


def multisets(values: Array, weights: Array, members: int) -> Iterator[Rows]:
    """Yield the same as `compositions`, listed by the value of each member, for more values than members.

    Args:
        values: The etas, shape (atoms,).
        weights: Probabilities of the etas, or weights of a quadrature, shape (atoms,).
        members: Members of the bag, >= 0.
    """
    rows = max(1, _CHUNK // (members + 1))
    chosen = combinations_with_replacement(range(values.size), members)
    while some := list(islice(chosen, rows)):
        places = np.array(some, dtype=int).reshape(len(some), members)
        orders = math.factorial(members) / _repetitions(places)
        yield Rows(places, orders * weights[places].prod(axis=1), pmf(values[places]))


def _repetitions(places: Array) -> Array:
    """Return, for sorted rows, the product of the factorials of the multiplicities of the values."""
    product, run = np.ones(places.shape[0]), np.ones(places.shape[0])
    for column in range(1, places.shape[1]):
        run = np.where(places[:, column] == places[:, column - 1], run + 1.0, 1.0)
        product *= run
    return product


def _counts(atoms: int, members: int) -> Iterator[tuple[int, ...]]:
    """Yield all ways to write `members` as an ordered sum of `atoms` counts."""
    for bars in combinations_with_replacement(range(members + 1), atoms - 1):
        yield tuple(b - a for a, b in pairwise((0, *bars, members)))


def _limited(limits: list[int], members: int) -> Iterator[tuple[int, ...]]:
    """Yield all ways to write `members` as an ordered sum of counts within their limits."""
    if not limits:
        yield ()
        return
    rest = sum(limits[1:])
    for first in range(max(0, members - rest), min(limits[0], members) + 1):
        for others in _limited(limits[1:], members - first):
            yield (first, *others)


def _laws(table: Counts, values: Array, powers: list[list[Array]]) -> Array:
    """Return the distributions of the sums of labels."""
    members = int(table[0].sum())
    if values.size == 1:
        return binomial(members, float(values[0]))[None, :]
    laws = np.zeros((table.shape[0], members + 1))
    for row, count in enumerate(table.tolist()):
        law = powers[0][count[0]]
        for power, n in zip(powers[1:], count[1:], strict=True):
            if n:
                law = np.convolve(law, power[n])
        laws[row] = law
    return laws


def _hypergeometric(table: Counts, counts: Counts) -> Array:
    """Return the probabilities of the compositions of different rows, one atom after the other."""
    probability = np.ones(table.shape[0])
    left, rest = table.sum(axis=1), int(counts.sum())
    for column, size in enumerate(counts.tolist()):
        rest -= size
        laws = {n: _of_one_kind(int(n), size, rest) for n in np.unique(left)}
        probability *= np.array([laws[n][c] for n, c in zip(left, table[:, column], strict=True)])
        left = left - table[:, column]
    return probability


def _of_one_kind(drawn: int, size: int, rest: int) -> Array:
    """Return the hypergeometric distribution of the rows of a kind with `size` rows among `drawn` rows.

    The probabilities have the same relative error as those of `binomial`, for the same reason.
    """
    least, most = max(0, drawn - rest), min(drawn, size)
    law = np.zeros(most + 1)
    mode = min(most, max(least, (drawn + 1) * (size + 1) // (size + rest + 2)))
    c = np.arange(least, most, dtype=float)
    up = (size - c) / (c + 1.0) * ((drawn - c) / (rest - drawn + c + 1.0))
    with np.errstate(under="ignore", over="ignore"):
        law[mode] = 1.0
        law[mode + 1 :] = np.cumprod(up[mode - least :])
        law[least:mode] = np.cumprod(1.0 / up[: mode - least][::-1])[::-1]
    return np.asarray(law / law.sum())


def _multinomial(counts: Counts, weights: Array) -> Array:
    """Return the probabilities of counts as products of binomial probabilities, one atom after the other."""
    left = counts.sum(axis=1)
    probability = np.ones(counts.shape[0])
    for column in range(counts.shape[1] - 1):
        rest = math.fsum(weights[column + 1 :])
        share = float(weights[column]) + rest
        p, other = (float(weights[column]) / share, rest / share) if share > 0.0 else (0.0, 1.0)
        laws = {n: binomial(int(n), p, other) for n in np.unique(left)}
        probability *= np.array([laws[n][c] for n, c in zip(left, counts[:, column], strict=True)])
        left = left - counts[:, column]
    return probability
