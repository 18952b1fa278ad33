"""What stands where on the page: tabs, the compared schemes, and which fields rule each other out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from privcore import PROBLEMS, Problem
from privcore.parameter import Value


@dataclass(frozen=True, kw_only=True)
class Tab:
    """A tab of the page.

    Attributes:
        name: The topic of its problems.
        title: What stands on the tab.
        sweep: An embedded sweep that asks for problems of this tab.
    """

    name: str
    title: str
    sweep: str

    @property
    def problems(self) -> list[type[Problem]]:
        """The problems of the registry that belong here."""
        return [kind for kind in PROBLEMS if kind.topic == self.name]


TABS = (
    Tab(name="allocation", title="Allocation", sweep="quickstart"),
    Tab(name="labels", title="Labels", sweep="labels-bounds"),
    Tab(name="auditing", title="Audits", sweep="audits-claims"),
    Tab(name="membership", title="Membership", sweep="membership-claims"),
)

COMPARED: Mapping[str, Any] = {
    "problem": "allocation-epsilon",
    "schemes": [
        {"title": "Random allocation", "problem": "allocation-epsilon"},
        {"title": "Poisson sampling", "problem": "poisson-epsilon", "ratio": "sampling_probability"},
        {"title": "Shuffling, one example a step", "problem": "shuffling-epsilon", "once": True},
        {"title": "No amplification", "problem": "unamplified-epsilon", "else": {"steps": "participations"}},
    ],
}
"""The schemes that the macro `compare` of the store puts side by side: `ratio` is participations / steps, and
`once` stands for one participation in one epoch. Where nothing is stored, `else` asks with one field in place
of another: without amplification only the steps that use the example count, and sweeps leave out the rest."""

_AT_MOST = (
    ("participations", "steps"),
    ("guesses", "canaries"),
    ("correct", "guesses"),
    ("true_positives", "runs_with"),
    ("false_positives", "runs_without"),
    ("true_positives", "members"),
    ("false_positives", "nonmembers"),
)
_LEAST_TARGET = 1e-3  # of the epsilon for which noise is searched in the problems on errors
_NOISELESS, _SINGLE = ("none", "llp"), ("none", "rr")


def rules(kind: type[Problem]) -> list[dict[str, Any]]:
    """Return what the fields of a problem must keep together, as far as a trend could answer against it.

    A question that breaks another rule of its problem differs from all that is stored in a field without a
    trend, so that nothing answers it anyway.

    Returns:
        `{"field": a, "at_most": b}` with another field b, `{"field": a, "at_least": number}`, or
        `{"field": a, "equals": value, "where": {"mechanism": words}}`; with `"differs"` for `"equals"` the
        field must not have the value, with `"counts": b` it is a whole number up to the length of the list b.
    """
    fields = kind.parameters
    found: list[dict[str, Any]] = [
        {"field": less, "at_most": more} for less, more in _AT_MOST if less in fields and more in fields
    ]
    if kind.asks == "error":
        found.append({"field": "epsilon", "at_least": _LEAST_TARGET})
    if "mechanism" in fields:
        words = tuple(str(word) for word in fields["mechanism"].typical_values())
        noisy = tuple(word for word in words if word not in _NOISELESS)
        if "label_epsilon" in fields:
            found.append(_where("label_epsilon", "equals", float("inf"), _NOISELESS))
            found.append(_where("label_epsilon", "differs", float("inf"), noisy))
        if "bag_size" in fields:
            found.append(_where("bag_size", "equals", 1, _SINGLE))
        if "released" in fields:
            counted = tuple(word for word in words if word not in ("none", "llp-laplace"))
            found.append(_where("released", "counts", "bag", counted))
    return found


def _where(field: str, relation: str, value: Value, mechanisms: tuple[str, ...]) -> dict[str, Any]:
    return {"field": field, relation: value, "where": {"mechanism": list(mechanisms)}}
