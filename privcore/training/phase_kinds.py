"""Kinds of phases by name."""

from privcore.training.batches import FixedSize, Poisson, Public, TruncatedPoisson, WithReplacement
from privcore.training.epochs import Allocation, BallsInBins, Shuffling
from privcore.training.phase import Phase

PHASES: dict[str, type[Phase]] = {
    kind.name: kind
    for kind in (
        Allocation,
        BallsInBins,
        FixedSize,
        Poisson,
        Public,
        Shuffling,
        TruncatedPoisson,
        WithReplacement,
    )
}
"""Kinds of phases by name; the names are the words of `--sampling`."""
