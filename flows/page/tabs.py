"""The tabs of the page, and the schemes of its comparison."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from privcore import PROBLEMS, Problem


@dataclass(frozen=True, kw_only=True)
class Tab:
    """A tab of the page.

    Attributes:
        name: The topic of its problems.
        title: Text on the tab.
        sweep: An embedded sweep with problems of this tab.
    """

    name: str
    title: str
    sweep: str

    @property
    def problems(self) -> list[type[Problem]]:
        """The registered problems of this topic."""
        return [kind for kind in PROBLEMS if kind.topic == self.name]


TABS = (
    Tab(name="allocation", title="Allocation", sweep="quickstart"),
    Tab(name="labels", title="Labels", sweep="labels-bounds"),
    Tab(name="auditing", title="Audits", sweep="audits-claims"),
    Tab(name="membership", title="Membership", sweep="membership-claims"),
)

WITHOUT_TAB = ("training",)
"""Topics whose problems are not on the page: the phases of a run need an editor."""

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
