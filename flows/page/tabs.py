"""The tabs of the page with stored answers."""

from dataclasses import dataclass

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
    Tab(
        name="table",
        title="Lookup table",
        sweep="quickstart",
        families=(
            "poisson",
            "allocation",
            "sampled-allocation",
            "laplace-allocation",
            "response-allocation",
            "renyi-allocation",
            "capped-response",
            "shuffling",
            *(word for word, sampler in SAMPLERS.items() if not sampler.family),
            "unamplified",
            "run",
            "matrix",
            "tuned",
        ),
    ),
    Tab(name="labels", title="Labels", sweep="labels-bounds"),
    Tab(name="auditing", title="Audits", sweep="audits-claims", families=("audit",)),
    Tab(name="membership", title="Membership", sweep="membership-claims"),
)
"""Tabs of stored answers, after the form of a training run; `static/index.html` names them."""

ENGINE = tuple(
    f"{family}-{asks}"
    for family in (
        "allocation",
        "sampled-allocation",
        "balls-in-bins",
        "poisson",
        "fixed-size",
        "unamplified",
        "shuffling",
        "run",
    )
    for asks in ("epsilon", "delta")
)
"""Problems that the engine of the page computes (`static/engine/questions.js`), so that they need no rows."""
