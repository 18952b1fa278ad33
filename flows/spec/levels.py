"""The distinct values of a column, in order, with their ranks as codes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Column = NDArray[Any]


class Levels:
    """The distinct values of a field in their order, each with its rank as a code.

    Args:
        column: Values of the field.

    Attributes:
        values: The distinct ones, in order.
    """

    def __init__(self, column: Column) -> None:
        self._ranks: dict[Any, int] | None = None
        if column.dtype == object:
            words = sorted(set(column.tolist()))
            self.values: Column = np.array(words, object)
            self._ranks = {word: rank for rank, word in enumerate(words)}
        else:
            self.values = np.unique(column)

    def __len__(self) -> int:
        """Number of distinct values."""
        return len(self.values)

    def codes(self, column: Column) -> Numbers:
        """Return the code of each value, or -1."""
        if self._ranks is not None:
            return np.fromiter((self._ranks.get(word, -1) for word in column), np.int64, len(column))
        return place(self.values, column)

    def meets(self, other: "Levels") -> bool:
        """Return whether they have a value in common."""
        few, many = sorted((self, other), key=len)
        return bool((many.codes(few.values) >= 0).any())


def place(known: Column, values: Column) -> Numbers:
    """Return the places of values among sorted distinct ones, or -1."""
    found: Numbers = np.searchsorted(known, values)
    found[found == len(known)] = 0
    found[known[found] != values] = -1
    return found
