"""Scores of canaries from one file with inclusion bits, or from two files, with the higher score for "in"."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from privcore import DomainError
from privcore.distributions.columns import read_columns, read_integers

Array = NDArray[np.float64]

WORDS = {
    **dict.fromkeys(("in", "member", "yes", "y", "true", "t", "1", "+1"), 1.0),
    **dict.fromkeys(("out", "non-member", "nonmember", "no", "n", "false", "f", "0"), 0.0),
    "-1": -1.0,
}
"""Words of a column of inclusion bits, in lower case."""

_EXACT = 2.0**53
"""Doubles hold all integers up to here."""


@dataclass(frozen=True, kw_only=True)
class Scored:
    """Scores of all randomised canaries and their inclusion bits.

    Attributes:
        scores: Scores, higher for canaries more likely to be in; possibly infinite.
        included: 1 for the included canaries, 0 for the others.
        ranks: Ranks of the scores, if they are integers that are too large for doubles.
        lower_is_member: Whether the scores are those of the file with the other sign.
    """

    scores: Array
    included: Array
    ranks: Array | None = None
    lower_is_member: bool = False

    @property
    def order(self) -> Array:
        """Numbers in the order of the scores."""
        return self.scores if self.ranks is None else self.ranks

    @property
    def inside(self) -> Array:
        """Scores of the included canaries."""
        return np.asarray(self.scores[self.included == 1.0])

    @property
    def outside(self) -> Array:
        """Scores of the canaries that were left out."""
        return np.asarray(self.scores[self.included == 0.0])


def read_scores(
    file: Path,
    score_column: str,
    included_column: str,
    *,
    out_file: Path | None = None,
    lower_is_member: bool = False,
) -> Scored:
    """Return the scores of canaries.

    Args:
        file: File with scores and inclusion bits, or only with the scores of included canaries.
        score_column: Name of the column of scores, in each file.
        included_column: Name of the column of inclusion bits, which neither of two files may have.
        out_file: File with the scores of the canaries that were left out.
        lower_is_member: Whether a lower score, such as a loss, means more likely included.

    Raises:
        DomainError: A file cannot be read, or its columns are not valid.
    """
    if out_file is None:
        if score_column == included_column:
            raise DomainError(f"Expected two columns, got {score_column} for scores and inclusion bits.")
        scores, bits = read_columns(
            file, [score_column, included_column], "numbers", {included_column: WORDS}
        )
        included = _included(file, included_column, bits)
    else:
        both = [
            _read_alike(each, score_column, included_column, state)
            for each, state in ((file, "included"), (out_file, "left out"))
        ]
        scores, included = np.concatenate(both), np.repeat([1.0, 0.0], [each.size for each in both])
    sign, ranks = -1.0 if lower_is_member else 1.0, None
    if np.abs(scores[np.isfinite(scores)]).max(initial=0.0) >= _EXACT:
        ranks = sign * _ranks([each for each in (file, out_file) if each is not None], score_column)
    return Scored(scores=sign * scores, included=included, ranks=ranks, lower_is_member=lower_is_member)


def _ranks(files: Sequence[Path], column: str) -> Array:
    """Return the rank of each number, from 0 on, with all digits of integers; ties have equal ranks."""
    numbers = np.array([number for file in files for number in read_integers(file, column)], dtype=object)
    return np.unique(numbers, return_inverse=True)[1].astype(np.float64)


def _included(file: Path, column: str, bits: Array) -> Array:
    """Return inclusion bits 1 and 0, given these or 1 and -1."""
    out = -1.0 if (bits == -1.0).any() else 0.0
    wrong = (bits != 1.0) & (bits != out)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DomainError(
            f"Expected inclusion bits 1 and {out:g} in the column {column} of {file}, got {bits[row]:g} in "
            f"row {row + 1}."
        )
    return np.asarray((bits == 1.0).astype(np.float64))


def _read_alike(file: Path, score_column: str, included_column: str, state: str) -> Array:
    """Return the scores of canaries that are all included, or all left out."""
    reason = (
        f"Expected no column {included_column} in {file}, since --scores-out means that all of its rows are "
        f"{state}: leave out --scores-out, so that the column decides, or remove the column."
    )
    refused = {} if score_column == included_column else {included_column: reason}
    return read_columns(file, [score_column], "numbers", refused=refused)[0]
