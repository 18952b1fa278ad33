"""The tabs of the page, and the schemes of its comparison."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from privcore import PROBLEMS, Problem
from privcore.stored_names import SAMPLERS


@dataclass(frozen=True, kw_only=True)
class Tab:
    """A tab of the page.

    Attributes:
        name: Its name in links.
        title: Text on the tab.
        sweep: An embedded sweep with problems of this tab.
        families: Names of problems without the quantity, such as `poisson` for `poisson-epsilon`; if empty,
            the tab has all problems of the topic with its name.
    """

    name: str
    title: str
    sweep: str
    families: tuple[str, ...] = ()

    @property
    def problems(self) -> list[type[Problem]]:
        """The registered problems of this tab."""
        return [kind for kind in PROBLEMS if self._has(kind)]

    def _has(self, kind: type[Problem]) -> bool:
        if self.families:
            return any(kind.name.startswith(f"{family}-") for family in self.families)
        return kind.topic == self.name


TABS = (
    Tab(name="poisson", title="Poisson", sweep="quickstart", families=("poisson",)),
    Tab(
        name="allocation",
        title="Allocation",
        sweep="quickstart",
        families=(
            "allocation",
            "sampled-allocation",
            "laplace-allocation",
            "response-allocation",
            "renyi-allocation",
            "capped-response",
        ),
    ),
    Tab(name="shuffling", title="Shuffling", sweep="figure1", families=("shuffling",)),
    Tab(
        name="samplers",
        title="Other samplers",
        sweep="training-runs",
        families=(*(word for word, sampler in SAMPLERS.items() if not sampler.family), "unamplified"),
    ),
    Tab(name="runs", title="Training runs", sweep="training-runs", families=("run",)),
    Tab(name="labels", title="Labels", sweep="labels-bounds"),
    Tab(name="auditing", title="Audits", sweep="audits-claims", families=("audit",)),
    Tab(name="membership", title="Membership", sweep="membership-claims"),
)

ENGINE = tuple(
    f"{family}-{asks}"
    for family in ("allocation", "sampled-allocation", "balls-in-bins", "poisson", "unamplified", "run")
    for asks in ("epsilon", "delta")
)
"""Problems that the engine of the page computes (`static/engine/questions.js`), so that they need no rows."""

COMPARED: Mapping[str, Any] = {
    "problem": "allocation-epsilon",
    "schemes": [
        {"title": "Random allocation", "problem": "allocation-epsilon"},
        {"title": "Poisson sampling", "problem": "poisson-epsilon", "ratio": "sampling_probability"},
        {
            "title": "Shuffling, zero-out",
            "problem": "shuffling-epsilon",
            "once": True,
            "redraw": {"one": "one-epoch", "several": "each-epoch"},
            "adjacency": {"add-remove": "zero-out"},
        },
        {"title": "No amplification", "problem": "unamplified-epsilon"},
    ],
}
"""The schemes that the macro `compare` of the store shows side by side: `ratio` is participations / steps,
`once` means one participation in an epoch, `redraw` has the words for one and for several epochs, and
`adjacency` the words that replace others."""
