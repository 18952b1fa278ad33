r"""Strategy matrices C of matrix mechanisms, which release $C x + z$: their notation, norms and products.

Row i of x is the sum of the clipped gradients of step i, and z has independent entries of standard deviation
sigma. C has no negative entry and is lower triangular. With b steps in an epoch and E epochs, an example that
is in the steps j, j + b, ... adds at most $m_j = \sum_e c_{j + e b}$ to the outputs, with the columns c of C.
The products $\langle m_i, m_j \rangle$ are the Gram matrix of the bins.
"""

import hashlib
import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import scipy
from numpy.typing import NDArray

from privcore.distributions.notation import CALL, absolute, number, spelled
from privcore.errors import DomainError
from privcore.numerics.rounding import SUMMED

Array = NDArray[np.float64]

SMALLEST, LARGEST = 1e-6, 1e6
"""Range of the largest entry of a matrix."""
MOST_BANDS = 100_000
MOST_INVERSE_BANDS = 1000
MOST_BYTES = 5e8
"""Largest file of a matrix."""
MOST_BINS = 2048
"""Largest number of bins whose Gram matrix is computed."""
MOST_PRODUCTS = 4e8
"""Largest number of products in a Gram matrix."""
MOST_STEPS = 20_000_000
"""Largest number of steps of a run whose columns overlap."""
_HASHED = re.compile(r"(.*),sha256:([0-9a-f]{64})", re.DOTALL)


class Strategy(ABC):
    """Base of the strategy matrices."""

    norm = 0.0
    """Norm of every whole column, correctly rounded, or 0 if it is unknown."""

    def reason(self, steps: int, epochs: int) -> str | None:
        """Return the reason why a run of this many steps and epochs cannot have this matrix, or None."""
        return None

    @abstractmethod
    def sensitivity(self, steps: int, epochs: int) -> float:
        """Return the largest norm of a mean $m_j$, without the rounding of sums (`SUMMED`)."""

    @abstractmethod
    def gram(self, steps: int, epochs: int) -> Array:
        """Return the Gram matrix of the means, without the rounding of sums (`SUMMED`)."""

    def gram_reason(self, steps: int, epochs: int) -> str | None:
        """Return the reason why the Gram matrix is not computed, or None."""
        if steps > MOST_BINS:
            return f"The Gram matrix of the bins is computed for at most {MOST_BINS} steps, got {steps}."
        return None

    def columns(self, steps: int, epochs: int) -> tuple[tuple[float, ...], ...] | None:
        """Return the norms of the columns of the groups that may be the worst; None if they are unknown."""
        return None

    def disjoint(self, steps: int) -> bool:
        """Return whether the columns of one group have no common row: at most `steps` bands."""
        return False


@dataclass(frozen=True)
class Toeplitz(Strategy):
    """Toeplitz matrix with the coefficients on its diagonals, of T = b E rows: the last columns are cut.

    Attributes:
        coefficients: The first column, up to its last positive entry.
        scale: Factor on the coefficients; the norm of a whole column is `norm`.
        norm: Norm of a whole column, correctly rounded.
    """

    coefficients: tuple[float, ...]
    scale: float
    norm: float

    def reason(self, steps: int, epochs: int) -> str | None:
        if len(self.coefficients) > steps and steps * epochs > MOST_STEPS:
            return f"Expected at most {MOST_STEPS} steps in all if the matrix has more bands than an epoch."
        return None

    def gram_reason(self, steps: int, epochs: int) -> str | None:
        if steps * steps * epochs > MOST_PRODUCTS:
            return f"Expected steps * steps * epochs <= {MOST_PRODUCTS:g} for the Gram matrix of the bins."
        return super().gram_reason(steps, epochs)

    def sensitivity(self, steps: int, epochs: int) -> float:
        if self.disjoint(steps):
            return math.sqrt(epochs) * self.norm
        return self.scale * float(np.linalg.norm(self._mean(steps, epochs)))

    def gram(self, steps: int, epochs: int) -> Array:
        mean = self._mean(steps, epochs) * self.scale
        found = np.zeros((steps, steps))
        rows = np.arange(steps)
        for apart in range(steps):
            sums = np.cumsum(mean[: mean.size - apart] * mean[apart:])
            later = rows[apart:]  # of the two bins; the end of the run cuts its mean
            found[later, later - apart] = found[later - apart, later] = sums[mean.size - 1 - later]
        return found

    def columns(self, steps: int, epochs: int) -> tuple[tuple[float, ...], ...]:
        """Return the norms of the first group, whose columns are at least as long as those of any other."""
        total = steps * epochs
        squares = self.scale**2 * np.cumsum(np.square(self.coefficients))
        left = [total - e * steps for e in range(epochs)]  # rows of each column of the group
        cut = [math.sqrt(float(squares[rows - 1])) for rows in left if rows < squares.size]
        return ((self.norm,) * (epochs - len(cut)) + tuple(cut),)

    def disjoint(self, steps: int) -> bool:
        return len(self.coefficients) <= steps

    def _mean(self, steps: int, epochs: int) -> Array:
        """Return the mean $m_0$ without the scale; that of bin j is the same, j steps later."""
        total = steps * epochs
        found, c = np.zeros(total), np.array(self.coefficients)
        for e in range(epochs):
            begin = e * steps
            size = min(c.size, total - begin)
            found[begin : begin + size] += c[:size]
        return found


@dataclass(frozen=True)
class StoredMatrix(Strategy):
    """Matrix of a file in the format NPY: C itself, or the Gram matrix of the bins.

    Attributes:
        kind: `matrix` or `gram`.
        path: Absolute path of the file.
        sha256: Hash of the matrix.
    """

    kind: str
    path: str
    sha256: str

    @property
    def values(self) -> Array:
        """The matrix.

        Raises:
            DomainError: The file cannot be read, or has changed since it was first used.
        """
        found, digest = _read(self.kind, self.path)
        if digest != self.sha256:
            raise DomainError(
                f"The matrix of {self.path} has changed since it was first used; restore the file, or name "
                "it again without the hash."
            )
        return found

    def reason(self, steps: int, epochs: int) -> str | None:
        try:
            size = self.values.shape[0]
        except DomainError as error:
            return str(error)
        expected = steps if self.kind == "gram" else steps * epochs
        if size != expected:
            factors = "steps" if self.kind == "gram" else "steps * epochs"
            return f"Expected a matrix with {expected} rows ({factors}) in the file, got {size}."
        return None

    def sensitivity(self, steps: int, epochs: int) -> float:
        if self.kind == "gram":
            return math.sqrt(float(np.max(np.diag(self.values))))
        return float(np.sqrt(np.max(np.sum(np.square(self._means(steps)), axis=0))))

    def gram(self, steps: int, epochs: int) -> Array:
        if self.kind == "gram":
            return self.values
        means = self._means(steps)
        found: Array = means.T @ means
        return 0.5 * (found + found.T)

    def columns(self, steps: int, epochs: int) -> tuple[tuple[float, ...], ...] | None:
        if self.kind == "gram":
            return None
        norms = np.sqrt(np.sum(np.square(self.values), axis=0)).reshape(epochs, steps)
        return tuple(sorted({tuple(sorted(group, reverse=True)) for group in norms.T.tolist()}, reverse=True))

    def disjoint(self, steps: int) -> bool:
        return self.kind == "matrix" and not np.any(np.tril(self.values, -steps))

    def _means(self, steps: int) -> Array:
        """Return the means of the bins as columns."""
        total = self.values.shape[0]
        found: Array = self.values.reshape(total, total // steps, steps).sum(axis=1)
        return found


def _read(kind: str, path: str) -> tuple[Array, str]:
    """Return the matrix of a file, after its checks, and its hash; the array is shared."""
    file = Path(path)
    if not file.is_file():
        raise DomainError(f"Expected a file with a matrix, but {path} is not a file.")
    seen = file.stat()
    if seen.st_size > MOST_BYTES:
        raise DomainError(f"Expected a file of at most {MOST_BYTES:g} bytes, but {path} is larger.")
    return _checked(kind, path, seen.st_mtime_ns, seen.st_size)


@lru_cache(maxsize=2)
def _checked(kind: str, path: str, *_: int) -> tuple[Array, str]:
    """Return the matrix of a file and its hash, for a time of change and a size of the file."""
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        raise DomainError(f"Expected an NPY file with a matrix, but {path} cannot be read as one.") from None
    if not isinstance(found, np.ndarray) or found.dtype.kind not in "fiu":
        raise DomainError(f"Expected an NPY file with a matrix of real numbers, but {path} has none.")
    if found.ndim != 2 or found.shape[0] != found.shape[1] or found.size == 0:
        raise DomainError(f"Expected a square matrix in {path}, got the shape {found.shape}.")
    matrix = np.array(found, dtype=np.float64)
    if not np.all(np.isfinite(matrix)):
        raise DomainError(f"Expected finite numbers in {path}, got NaN or infinity.")
    if np.any(matrix < 0.0):
        raise DomainError(
            f"Expected no negative entry in {path}, got {spelled(float(matrix.min()))}: the worst signs of "
            "the gradients are then unknown."
        )
    if not SMALLEST <= float(matrix.max()) <= LARGEST:
        largest = spelled(float(matrix.max()))
        raise DomainError(f"Expected a largest entry in [1e-6, 1e6] in {path}, got {largest}.")
    if kind == "matrix" and np.any(np.triu(matrix, 1)):
        raise DomainError(
            f"Expected a lower triangular matrix in {path}, got an entry above the diagonal: an output would "
            "depend on a later step."
        )
    if kind == "gram":
        _check_gram(path, matrix)
    matrix.setflags(write=False)
    return matrix, _digest(matrix)


def _check_gram(path: str, matrix: Array) -> None:
    """Refuse a matrix that is not the Gram matrix of any vectors."""
    largest = float(matrix.max())
    if not np.allclose(matrix, matrix.T, rtol=0.0, atol=SUMMED * largest):
        raise DomainError(f"Expected a symmetric Gram matrix in {path}.")
    if matrix.shape[0] > MOST_BINS:
        raise DomainError(f"Expected a Gram matrix of at most {MOST_BINS} bins in {path}.")
    if float(np.linalg.eigvalsh(matrix)[0]) < -1e-9 * largest * matrix.shape[0]:
        raise DomainError(f"Expected a Gram matrix in {path}, got a matrix with a negative eigenvalue.")


def _digest(matrix: Array) -> str:
    """Return the SHA-256 of the shape and the entries of a matrix."""
    return hashlib.sha256(repr(matrix.shape).encode() + matrix.astype("<f8").tobytes()).hexdigest()


def square_root(bands: int) -> tuple[float, ...]:
    r"""Return the coefficients $\binom{2k}{k} / 4^k$, k < w, of the banded square root, before scaling.

    They are the first entries of the square root of the matrix of prefix sums.

    Example:
        >>> square_root(4)
        (1.0, 0.5, 0.375, 0.3125)
    """
    k = np.arange(1, bands)
    return (1.0, *np.cumprod((2.0 * k - 1.0) / (2.0 * k)).tolist())


def inverse_square_root(bands: int) -> tuple[float, ...]:
    r"""Return the coefficients of the matrix C whose inverse is banded, before scaling.

    $C^{-1}$ has the first w coefficients $d = 1, -1/2, -1/8, \dots$ of $\sqrt{1 - x}$. All but the first are
    negative and sum to $-s > -1$, so those of C are positive and fall geometrically. The squares beyond the
    60 w coefficients that are kept add less than 1e-34. Roundings by 4 w u of each coefficient move a column
    by at most $4 w u / (1 - s)$ of its norm, which is below 3e-11 for w <= 1000.

    Example:
        >>> inverse_square_root(2)[:4], inverse_square_root(100)[:4] == square_root(4)
        ((1.0, 0.5, 0.25, 0.125), True)
    """
    j = np.arange(1, bands)
    d = np.append(1.0, np.cumprod((2.0 * j - 3.0) / (2.0 * j)))
    found = scipy.signal.lfilter([1.0], d, np.eye(1, 60 * bands)[0])
    last = float(found[1 - bands :].max()) if bands > 1 else 0.0  # the next w - 1 are at most s times this
    assert bands * last**2 <= 1e-34 * (1.0 - float(d[1:].sum()) ** 2)
    return tuple(np.trim_zeros(found, "b").tolist())


def _coefficients(inside: str) -> tuple[float, ...]:
    """Return the coefficients of a Toeplitz matrix, or raise the error about the first impossible one."""
    found = [number(word) for word in inside.split(",")]
    if None in found:
        wrong = inside.split(",")[found.index(None)].strip()
        raise DomainError(f"Expected numbers as the coefficients of a Toeplitz matrix, got {wrong[:40]!r}.")
    values = [value for value in found if value is not None]
    if min(values) < 0.0:
        raise DomainError(
            f"Expected no negative coefficient, got {spelled(min(values))}: the worst signs of the gradients "
            "are then unknown."
        )
    if values[0] == 0.0 or not SMALLEST <= max(values) <= LARGEST:
        raise DomainError("Expected the first coefficient above 0, and the largest one in [1e-6, 1e6].")
    if len(values) > MOST_BANDS:
        raise DomainError(f"Expected at most {MOST_BANDS} coefficients, got {len(values)}.")
    while values[-1] == 0.0:
        values.pop()
    return tuple(values)


def _bands(name: str, inside: str) -> int:
    """Return the number of bands of a square root or of its inverse, or raise the error about it."""
    word = inside.strip()
    if not re.fullmatch(r"[0-9]{1,9}", word) or not 1 <= int(word) <= ROOTS[name][1]:
        raise DomainError(f"Expected {name}(w) with w in {{1, ..., {ROOTS[name][1]}}}, got {word[:40]!r}.")
    return int(word)


ROOTS = {
    "banded-sqrt": (square_root, MOST_BANDS),
    "banded-inverse-sqrt": (inverse_square_root, MOST_INVERSE_BANDS),
}
"""Coefficients of a number of bands, and the largest number, by the name of the strategy."""


def canonical(text: str) -> str | None:
    """Return the canonical spelling of a strategy, or None for a text of another grammar.

    Raises:
        DomainError: The text matches, but the matrix is not covered.

    Example:
        >>> canonical(" toeplitz( 1, .50, 0)"), canonical("banded-sqrt(08)"), canonical("identity")
        ('toeplitz(1,0.5)', 'banded-sqrt(8)', None)
    """
    call = CALL.fullmatch(text.strip())
    if call is None or not call[2].strip():
        return None
    if call[1] == "toeplitz":
        return f"toeplitz({','.join(map(spelled, _coefficients(call[2])))})"
    if call[1] in ROOTS:
        return f"{call[1]}({_bands(call[1], call[2])})"
    if call[1] not in ("matrix", "gram"):
        return None
    given = _HASHED.fullmatch(call[2])
    if given:
        return f"{call[1]}({absolute(given[1], 'a matrix')},sha256:{given[2]})"
    path = absolute(call[2].strip(), "a matrix")
    return f"{call[1]}({path},sha256:{_read(call[1], path)[1]})"


@lru_cache(maxsize=64)
def strategy(text: str) -> Strategy:
    """Return the strategy of a canonical text.

    Example:
        >>> strategy("toeplitz(3,4)").sensitivity(steps=2, epochs=4)
        10.0
    """
    call = CALL.fullmatch(text)
    assert call is not None
    if call[1] in ("matrix", "gram"):
        given = _HASHED.fullmatch(call[2])
        assert given is not None
        return StoredMatrix(call[1], given[1], given[2])
    if call[1] in ROOTS:
        root = ROOTS[call[1]][0](_bands(call[1], call[2]))
        return Toeplitz(root, 1.0 / math.sqrt(math.fsum(c * c for c in root)), 1.0)
    c = _coefficients(call[2])
    largest = max(c)
    return Toeplitz(c, 1.0, largest * math.sqrt(math.fsum((each / largest) ** 2 for each in c)))
