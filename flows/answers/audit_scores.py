"""Scores of canaries from one file with inclusion bits, or from two files, with the higher score for "in"."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from privcore import DomainError
from privcore.distributions.columns import read_columns

Array = NDArray[np.float64]

WORDS = {
    "in": 1.0,
    "out": 0.0,
    "member": 1.0,
    "nonmember": 0.0,
    "non-member": 0.0,
    "true": 1.0,
    "false": 0.0,
    "1": 1.0,
    "0": 0.0,
}
"""Words of a column of inclusion bits, in lower case."""


@dataclass(frozen=True, kw_only=True)
class Scored:
    """Scores of all randomised canaries and their inclusion bits.

    Attributes:
        scores: Scores, higher for canaries more likely to be in.
        included: 1 for the included canaries, 0 for the others.
        lower_is_member: Whether the scores are those of the file with the other sign.
    """

    scores: Array
    included: Array
    lower_is_member: bool = False

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
        scores, included = read_columns(
            file, [score_column, included_column], "numbers", {included_column: WORDS}
        )
    else:
        both = [
            _read_alike(each, score_column, included_column, state)
            for each, state in ((file, "included"), (out_file, "left out"))
        ]
        scores, included = np.concatenate(both), np.repeat([1.0, 0.0], [each.size for each in both])
    if not np.isfinite(scores).all():
        row = int(np.argmax(~np.isfinite(scores))) + 1
        raise DomainError(f"Expected finite scores, got {scores[row - 1]:g} in row {row}.")
    scores = -scores if lower_is_member else scores
    return Scored(scores=scores, included=included, lower_is_member=lower_is_member)


def _read_alike(file: Path, score_column: str, included_column: str, state: str) -> Array:
    """Return the scores of canaries that are all included, or all left out."""
    reason = (
        f"Expected no column {included_column} in {file}, since --scores-out means that all of its rows are "
        f"{state}: leave out --scores-out, so that the column decides, or remove the column."
    )
    refused = {} if score_column == included_column else {included_column: reason}
    return read_columns(file, [score_column], "numbers", refused=refused)[0]
