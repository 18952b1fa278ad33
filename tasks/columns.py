"""The fields of many points as one array for each field, which are small to send and quick to cut."""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self, overload

import numpy as np
from numpy.typing import NDArray

from privcore.parameter import Value

_CODES = {"f": "d", "i": "q"}


@dataclass(frozen=True)
class Columns(Sequence[tuple[Value, ...]]):
    """A sequence of points, each a tuple of the values of its fields.

    Attributes:
        values: For each field, its values at all points.
    """

    values: tuple[Sequence[Value], ...]

    @classmethod
    def of(cls, columns: Sequence[NDArray[Any]]) -> Self:
        """Return the points whose fields these arrays hold: floats, integers, or texts as objects.

        Example:
            >>> Columns.of([np.array([0.5, 1.0]), np.array([2, 3])])[1]
            (1.0, 3)
        """
        return cls(tuple(_compact(values) for values in columns))

    def __len__(self) -> int:
        """Number of points."""
        return len(self.values[0])

    def __iter__(self) -> Iterator[tuple[Value, ...]]:
        """Yield the points in order."""
        return zip(*self.values, strict=True)

    @overload
    def __getitem__(self, index: int) -> tuple[Value, ...]: ...

    @overload
    def __getitem__(self, index: slice) -> Self: ...

    def __getitem__(self, index: int | slice) -> tuple[Value, ...] | Self:
        """Return one point, or some of them."""
        if isinstance(index, slice):
            return type(self)(tuple(values[index] for values in self.values))
        return tuple(values[index] for values in self.values)


def _compact(values: NDArray[Any]) -> Sequence[Value]:
    """Return an array as values of Python that need few bytes."""
    if code := _CODES.get(values.dtype.kind):
        compact: array[Any] = array(code)
        compact.frombytes(np.ascontiguousarray(values).tobytes())
        return compact
    return tuple(values.tolist())
