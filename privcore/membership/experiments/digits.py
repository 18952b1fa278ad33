"""Handwritten digits with a fixed split, quantised to cluster centres that are fitted on separate images."""

from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

CLASSES = 10
CLUSTERED, POOL, TESTED = 397, 1000, 400
"""Number of images for the clusters, of images from which training records are drawn, and of test images."""

_SEED = 2310
_ROUNDS = 100
"""Passes of k-means over its images; early stopping would depend on the last bits of a sum."""


@dataclass(frozen=True, kw_only=True)
class Codes:
    """Images by their code: the number of the cluster, or of the image itself for raw images.

    Attributes:
        centres: Pixels in [0, 1] of every code, shape (codes, 64).
        pool: Codes of the images in the pool, shape (1000,).
        pool_digits: Digits of the images in the pool.
        tested: Codes of the test images, shape (400,).
        tested_digits: Digits of the test images.
    """

    centres: NDArray[np.float32]
    pool: NDArray[np.int64]
    pool_digits: NDArray[np.int64]
    tested: NDArray[np.int64]
    tested_digits: NDArray[np.int64]

    def cells(self) -> NDArray[np.int64]:
        """Return the number of images of the pool with each code and digit, shape (codes, 10)."""
        return self._count(self.pool, self.pool_digits)

    def purity(self) -> float:
        """Return the largest accuracy on the test images of any classifier whose input is the code."""
        cells = self._count(self.tested, self.tested_digits)
        return float(cells.max(axis=1).sum() / len(self.tested))

    def _count(self, codes: NDArray[np.int64], digits: NDArray[np.int64]) -> NDArray[np.int64]:
        places = codes * CLASSES + digits
        return np.bincount(places, minlength=len(self.centres) * CLASSES).reshape(-1, CLASSES)


def refusal() -> str | None:
    """Return the reason why the images are not available, or None."""
    return None if _bundled() else "The images come with scikit-learn: pip install 'privsweep[learn]'."


@lru_cache(maxsize=8)
def codes(clusters: int) -> Codes:
    """Return the images by their code; the result is deterministic.

    The clusters are computed by mini-batch k-means, as in the paper, with a fixed seed. They are fitted on
    images that are used neither for training nor for testing, so a code reveals nothing about other training
    records.

    Args:
        clusters: Number K of clusters, at most 397; for 0 every image has its own code.

    Reference:
        arXiv:2310.13786v6, Section 6.2 and Appendix D, on other digits.

    Example:
        >>> quantised = codes(20)
        >>> quantised.centres.shape, int(quantised.cells().sum()), len(quantised.tested)
        ((20, 64), 1000, 400)
    """
    from sklearn.cluster import MiniBatchKMeans
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    pixels, digits = _images()
    apart, images = pixels[:CLUSTERED], pixels[CLUSTERED:]
    centres, code = images, np.arange(len(images))
    if clusters:
        means = MiniBatchKMeans(
            clusters, batch_size=256, max_iter=_ROUNDS, max_no_improvement=None, n_init=1, random_state=_SEED
        )
        with threadpool_limits(1):  # several threads would take longer
            means.fit(apart)
            centres, code = means.cluster_centers_, means.predict(images)
    code, shown = code.astype(np.int64), digits[CLUSTERED:]
    return Codes(
        centres=centres.astype(np.float32),
        pool=code[:POOL],
        pool_digits=shown[:POOL],
        tested=code[POOL:],
        tested_digits=shown[POOL:],
    )


def counts(clusters: int, attributes: str) -> NDArray[np.int64]:
    """Return the counts of the records in the pool; a record is a code, or a code with a label.

    Args:
        clusters: Number of clusters.
        attributes: One of `params.ATTRIBUTES`.

    Returns:
        Positive counts that sum to 1000, in decreasing order.

    Example:
        >>> counts(2, "cluster").tolist(), counts(2, "cluster-and-label")[:3].tolist()
        ([602, 398], [109, 99, 99])
    """
    cells = codes(clusters).cells()
    found = cells.sum(axis=1) if attributes == "cluster" else cells.ravel()
    return np.sort(found[found > 0])[::-1]


@cache
def _images() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the images and their digits, in the order of the split."""
    from sklearn.datasets import load_digits

    pixels, shown = load_digits(return_X_y=True)
    order = np.random.default_rng(_SEED).permutation(len(shown))
    return pixels[order] / 16.0, shown[order].astype(np.int64)


@cache
def _bundled() -> bool:
    """Return whether the package with the images is installed."""
    return find_spec("sklearn") is not None
