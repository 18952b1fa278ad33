"""Base of the phases of a training run, and the neighbouring relations."""

import math
from abc import abstractmethod
from collections.abc import Iterable
from typing import Annotated

from privcore import params
from privcore.allocation.problems import MORE_NOISE
from privcore.problem import Checked, falls, grows, proved
from privcore.training import params as training_params
from privcore.training.samplers import Bounds

RELATIONS = {
    "add-remove": "add-remove",
    "remove": "add-remove",
    "add": "add-remove",
    "zero-out": "zero-out",
    "zero-out-remove": "zero-out",
    "zero-out-add": "zero-out",
    "replace-one": "replace-one",
}
"""Neighbouring relation of every adjacency; some are directions of a relation."""


class Phase(Checked):
    """Base of the phases of a run: noise, steps, and the ratios that bound one example or one owner."""

    about = ""
    """Documentation of the problems about a run of this phase alone, after the name of the quantity."""
    monotone = proved(
        sigma=falls(MORE_NOISE),
        epochs=grows("Leaving out the outputs of the last epoch is post-processing."),
    )

    sigma: Annotated[float, params.SIGMA]

    @property
    def owned(self) -> int:
        """Number of examples of one owner."""
        return 1

    @property
    def s(self) -> float:
        """Inverse noise multiplier."""
        return 1.0 / self.sigma

    @property
    @abstractmethod
    def uses(self) -> int:
        """Largest number of steps that use an example."""

    def distance(self, relation: str) -> float:
        """Return the largest change of the sum of a step that uses the examples, in clipping norms."""
        return self.owned * (2.0 if relation == "replace-one" else 1.0)

    def unamplified(self, relation: str) -> float:
        """Return the distance mu of the Gaussian mechanism that reveals the steps of the examples."""
        return self.distance(relation) * math.sqrt(self.uses) * self.s

    def reason(self, relation: str) -> str | None:
        """Return the reason why no theorem covers this relation, or None."""
        if relation == "replace-one" and self.owned > 1:
            return "No theorem about replacing several examples is implemented; use add-remove or zero-out."
        return None

    @abstractmethod
    def bounds(self, relation: str, scale: float) -> Bounds:
        """Return the ratios of the phase.

        Args:
            relation: `add-remove`, `zero-out` or `replace-one`.
            scale: Size of the delta in question; it affects only the tightness.
        """


class Owned(Phase):
    """Base of the phases that also cover an owner of several examples."""

    group: Annotated[int, training_params.GROUP] = 1

    @property
    def owned(self) -> int:
        return self.group


def unamplified(run: Iterable[Phase], relation: str) -> float:
    """Return the distance mu of the Gaussian mechanism that reveals the steps of all phases."""
    return math.sqrt(math.fsum(phase.unamplified(relation) ** 2 for phase in run))
