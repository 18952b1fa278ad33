"""A noise multiplier for which the store, too, has an upper end of at most the target.

`privsweep epsilon` prints the bracket of the store if both of its ends are stored, although the computed one
may be narrower. So the search for noise goes on where a stored upper end exceeds the target. The ends that
are printed are computed.
"""

from collections.abc import Iterator
from dataclasses import replace

from flows.answers.ask import CONFLICT, Asked
from flows.answers.held import held
from flows.answers.noise import Noise
from flows.answers.noise_confirmed import Again, suffices
from flows.answers.sourced import Sourced
from flows.answers.tightened import disputed
from flows.printing import exactly, rounded_up
from privcore import Problem, intersect
from storage import Store


class LargerEnds:
    """Answers as another function, or as a store if that has a larger upper end."""

    def __init__(self, store: Store, again: Again) -> None:
        self._store, self._again = store, again
        self._computed: dict[Problem, Asked] = {}
        self._larger: dict[Problem, Sourced] = {}

    def __call__(self, problem: Problem) -> Asked:
        """Return the bracket of epsilon; contradicting brackets have the status of a conflict."""
        asked, found = self._again(problem), held(self._store, problem, any_width=False)
        self._computed[problem] = asked
        if found is None or not asked.ok or asked.confidence < 1.0:
            return asked
        both = intersect([asked, found.bracket], problem.largest)
        if both.crossed:
            return replace(asked, status=CONFLICT, detail=disputed(both, found))
        if found.bracket.upper <= asked.upper:
            return asked
        self._larger[problem] = found
        return replace(asked, upper=found.bracket.upper, upper_by=found.bracket.upper_by)

    def computed(self, found: Noise) -> Noise:
        """Return a result with the bracket that was computed, which is narrower."""
        return replace(found, enough=self._computed[found.enough.problem])

    def notes(self, target: float) -> Iterator[str]:
        """Yield a sentence about each stored upper end above the target where the computed one suffices."""
        for problem, found in self._larger.items():
            if found.bracket.upper > target and suffices(self._computed[problem], target):
                sigma = exactly(problem.as_fields()["sigma"])
                yield (
                    f"At sigma {sigma}, `privsweep epsilon` prints an upper end of "
                    f"{rounded_up(found.bracket.upper)} (source: {found.told}), so more noise is recommended."
                )
