"""Counts of the work of an answer: combinations of distributions, pairs of atoms, evaluations of a profile.

The functions of the product are wrapped while a block runs; the product itself counts nothing.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import update_wrapper
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np

from privcore.allocation import certified, poisson, reduction
from privcore.likelihood_ratio import distribution as law
from privcore.likelihood_ratio import profile, questions
from privcore.likelihood_ratio.allocated import symmetric


@dataclass
class Work:
    """Work that was done while a block ran.

    Attributes:
        builds: Resolutions at which distributions were built.
        combinations: Sums or products of two brackets; each combines the lower and the upper distributions.
        pairs: Pairs of atoms in these; half of them if a distribution is combined with itself.
        terms: The same for k-of-t distributions, whose pairs have a mean for every participation.
        transformed: Values in Fourier transforms, for the sums of losses of k of t.
        readings: Evaluations of a privacy profile.
        answers: Brackets that were enclosed.
    """

    builds: int = 0
    combinations: int = 0
    pairs: int = 0
    terms: int = 0
    transformed: int = 0
    readings: int = 0
    answers: int = 0


@contextmanager
def counted() -> Iterator[Work]:
    """Count into the yielded object until the block ends, with empty caches."""
    work = Work()
    clear_caches()

    def combination(a: law.RatioBracket, b: law.RatioBracket, *_: Any) -> None:
        work.combinations += 1
        for one, other in ((a.lower, b.lower), (a.upper, b.upper)):
            n = one.x.size
            work.pairs += n * (n + 1) // 2 if a is b else n * other.x.size

    def chosen(one: Any, other: Any, edges: Any, split: Any, skipped: int, size: int, twin: bool) -> None:
        work.combinations += 1
        n, m = one[0].size, other[0].size
        work.terms += (n * (n + 1) // 2 if twin else n * m) * other[1].shape[1]

    def transformed(values: Any) -> None:
        work.transformed += values.size

    def read(*_: Any) -> None:
        work.readings += 1

    def enclosed(build: Any, *_: Any) -> None:
        work.answers += 1

    def built(*_: Any) -> None:
        work.builds += 1

    with ExitStack() as wrapped:
        for module, name, note in (
            (law, "combine", combination),
            (reduction, "combine", combination),
            (symmetric, "_collect", chosen),
            (np.fft, "fft", transformed),
            (profile, "delta_upper", read),
            (profile, "delta_lower", read),
            (questions, "Resolution", built),
            (certified, "enclose", enclosed),
            (poisson, "enclose", enclosed),
        ):
            wrapped.enter_context(noted(module, name, note))
        yield work


def noted(module: ModuleType, name: str, note: Callable[..., None]) -> Any:
    """Return a context in which `note` first gets the positional arguments of every call of a function."""
    function = getattr(module, name)

    def wrapper(*args: Any, **options: Any) -> Any:
        note(*args)
        return function(*args, **options)

    return patch.object(module, name, update_wrapper(wrapper, function))


def clear_caches() -> None:
    """Clear the caches of the numerics, so that all work is counted or measured."""
    for name, module in list(sys.modules.items()):
        if name.startswith("privcore."):
            for kept in vars(module).values():
                if hasattr(kept, "cache_clear") and not isinstance(kept, type):
                    kept.cache_clear()
