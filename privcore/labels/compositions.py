"""Compositions of bags with few different etas, each with the distribution of the sum of the labels."""

import math
from collections.abc import Iterator
from itertools import combinations_with_replacement, islice, pairwise
from typing import NamedTuple

import numpy as np

from privcore.labels.poisson_binomial import Array, binomial, pmf

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

    members: Array
    weights: Array
    laws: Array


def number(atoms: int, members: int) -> int:
    """Return the number of compositions of a bag with this many members."""
    return math.comb(members + atoms - 1, atoms - 1)


def work(atoms: int, members: int) -> float:
    """Return the approximate number of products for the distributions of all compositions."""
    return (
        number(atoms, members) * (members + 1.0) * (1.0 if atoms == 1 else 1.0 + members / 6.0 * (atoms - 1))
    )


def compositions(values: Array, weights: Array, members: int) -> Iterator[Rows]:
    """Yield all compositions of independent members, whose etas have few possible values, in chunks.

    Args:
        values: The etas, shape (atoms,).
        weights: Their probabilities, shape (atoms,).
        members: Members of the bag, >= 0.
    """
    atoms = values.size
    powers = [[binomial(n, float(v)) for n in range(members + 1)] if atoms > 1 else [] for v in values]
    rows = max(1, _CHUNK // (members + 1))
    counts: list[tuple[int, ...]] = []
    for count in _counts(atoms, members):
        counts.append(count)
        if len(counts) == rows:
            yield _rows(counts, values, weights, powers)
            counts = []
    if counts:
        yield _rows(counts, values, weights, powers)


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


def _rows(counts: list[tuple[int, ...]], values: Array, weights: Array, powers: list[list[Array]]) -> Rows:
    members = sum(counts[0])
    table = np.array(counts)
    if values.size == 1:
        return Rows(table, np.ones(1), binomial(members, float(values[0]))[None, :])
    laws = np.zeros((len(counts), members + 1))
    for row, count in enumerate(counts):
        law = powers[0][count[0]]
        for power, n in zip(powers[1:], count[1:], strict=True):
            law = np.convolve(law, power[n])
        laws[row] = law
    return Rows(table, _multinomial(table, weights), laws)


def _multinomial(counts: Array, weights: Array) -> Array:
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
