"""Questions about the best of several runs: the price of tuning hyperparameters."""

from typing import Annotated

from privcore.problem import asked
from privcore.training.problems import InPhases
from privcore.training.tuning.repeats import REPEATS


class BestRun(InPhases):
    """The best of several runs; the class separates their fields from those of a quantity."""

    repeats: Annotated[str, REPEATS]


TunedEpsilon, TunedDelta = asked(
    "tuned",
    BestRun,
    "of the best of several training runs, chosen by any score of the outputs of each run.",
)
