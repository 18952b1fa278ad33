"""Cache of large objects that is limited by the bytes of their arrays and by their number."""

from collections import OrderedDict
from collections.abc import Callable
from functools import update_wrapper
from threading import Lock
from typing import Any, Generic, TypeVar

import numpy as np

MOST_BYTES = 200_000_000
"""Bytes of the arrays that a cache keeps; it keeps the last object in any case."""
MOST_VALUES = 64
"""Number of values that a cache keeps."""

V = TypeVar("V")


def kept(most_bytes: int = MOST_BYTES) -> Callable[[Callable[[str], V]], "Kept[V]"]:
    """Return a decorator that keeps the latest values of a function of a text.

    Args:
        most_bytes: Bytes above which the values that were used least recently are dropped, except the last.

    Example:
        >>> @kept(most_bytes=800)
        ... def zeros(count: str) -> np.ndarray:
        ...     return np.zeros(int(count))
        >>> [zeros(count).nbytes for count in ("60", "60", "70")], list(zeros.values)
        ([480, 480, 560], ['70'])
    """
    return lambda function: Kept(function, most_bytes)


class Kept(Generic[V]):
    """Function of a text whose latest values are kept.

    Attributes:
        values: Values that are kept, by text, from the least to the most recently used.
    """

    def __init__(self, function: Callable[[str], V], most_bytes: int) -> None:
        self.values: OrderedDict[str, V] = OrderedDict()
        self._function, self._most_bytes, self._lock = function, most_bytes, Lock()
        update_wrapper(self, function)

    def __call__(self, text: str) -> V:
        """Return the value for a text, computed only if it is not kept."""
        with self._lock:
            if text in self.values:
                self.values.move_to_end(text)
                return self.values[text]
        value = self._function(text)  # without the lock: it may need another value of this cache
        with self._lock:
            self.values[text] = value
            self.values.move_to_end(text)
            sizes = {each: held_bytes(one) for each, one in self.values.items()}
            total = sum(sizes.values())
            for oldest in list(self.values)[:-1]:
                if total <= self._most_bytes and len(self.values) <= MOST_VALUES:
                    break
                total -= sizes[oldest]
                del self.values[oldest]
        return value

    def cache_clear(self) -> None:
        """Drop all values."""
        with self._lock:
            self.values.clear()


def held_bytes(value: Any) -> int:
    """Return the bytes of the arrays in an object of ours and in its attributes, each counted once.

    Args:
        value: An array, a tuple, or an object; others count as 0.

    Example:
        >>> held_bytes((np.zeros(3), np.zeros(2), "text"))
        40
    """
    total, seen, waiting = 0, set(), [value]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            total += one.nbytes
        elif isinstance(one, tuple):
            waiting.extend(one)
        elif type(one).__module__.startswith("privcore."):
            waiting.extend(tuple(getattr(one, "__dict__", {}).values()))
    return total
