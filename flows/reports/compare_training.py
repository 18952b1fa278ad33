"""Comparison of allocation, Poisson sampling, shuffling and no amplification, from stored answers."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from flows.answers.ask import UncoveredError
from flows.answers.parse import SAMPLING
from flows.answers.training.palette import NAMES
from flows.reports.comparison import Entry, lacking, methods_of, side_by_side
from flows.reports.document import Block, Document, Heading, Paragraph
from flows.reports.stored import brackets, check_exists, provenance, source, stored
from flows.reports.summary import summary_of_schemes
from flows.reports.tables import contradictions_about
from privcore import Bracket, find_problem
from privcore.parameter import Value
from storage import Store

NAME = "compare-training"
SCHEMES = {NAMES[word]: SAMPLING[word] for word in ("allocation", "poisson", "shuffling", "none")}
_SAME = 1e-9
"""Largest relative difference of a sampling probability from participations / steps, by rounding."""

Row = Mapping[str, Any]
Setting = dict[str, Value]


def compare_training(store: Store) -> Document:
    """Return the comparison of the schemes that choose the examples of a step.

    Args:
        store: Opened with `missing_ok`.

    Raises:
        UncoveredError: The store has no two schemes at equal settings.
        StoreError: The store cannot be read.
    """
    check_exists(store)
    entries = list(scheme_entries(lambda problem: brackets(store, find_problem(problem))))
    rows = [row for problem in SCHEMES.values() for row in stored(store, find_problem(problem))]
    contradicted = contradictions_about(store, SCHEMES.values())
    present = {row.problem for row in rows if row.proved}
    absent = [_lack(scheme) for scheme, problem in SCHEMES.items() if problem not in present]
    shown = list(side_by_side(NAME, "epsilon", entries, ("sigma", "steps")))
    if not shown and not contradicted.blocks:
        raise UncoveredError(" ".join(["The store has no two schemes at equal settings.", *absent]))
    used = [row for row in rows if row.proved]
    blocks: list[Block] = [
        Heading(
            text="Random allocation compared with Poisson sampling, shuffling and no amplification", level=1
        ),
        *(summary_of_schemes(find_problem("allocation-epsilon"), entries) if entries else ()),
        Heading(text="Question"),
        Paragraph(
            text="Epsilon of DP-SGD at the same noise, number of steps and number of uses of an example. "
            "With Poisson sampling, a step includes an example with probability participations / steps. "
            "Shuffling permutes the examples again for each epoch, and one data set has the gradient 0 in "
            "the place of the example (zero-out, instead of add-remove). Without amplification, the steps "
            "that use an example are public, so the number of steps does not matter."
        ),
        *(Paragraph(text=sentence) for sentence in absent),
        Heading(text="Epsilon"),
        *shown,
        methods_of(entries),
        *contradicted.blocks,
        *provenance(used, degraded=store.degraded),
    ]
    return Document(
        name=NAME, blocks=blocks, incomplete=[*absent, *contradicted.incomplete], source=source(used)
    )


def _lack(scheme: str) -> str:
    return lacking(
        f"answers for the sampler {scheme} ({SCHEMES[scheme]})", lambda problem, _: problem == SCHEMES[scheme]
    )


def scheme_entries(known: Callable[[str], Iterable[tuple[Row, Bracket]]]) -> Iterator[Entry]:
    """Yield the brackets of all schemes; without amplification, repeated at each other number of steps.

    Args:
        known: Function that returns the fields and the brackets of a problem.
    """
    seen: dict[tuple[Value, ...], list[Setting]] = {}
    read: tuple[tuple[str, Callable[[Row], Setting | None]], ...] = (
        ("random allocation", _allocation),
        ("Poisson", _poisson),
        ("shuffled", _shuffling),
    )
    for scheme, setting_of in read:
        for row, bracket in known(SCHEMES[scheme]):
            if (setting := setting_of(row)) is not None:
                others = seen.setdefault(_public(setting), [])
                others += [setting] if setting not in others else []
                yield Entry(scheme=scheme, fields=setting, bracket=bracket)
    done: set[tuple[Value, ...]] = set()
    for row, bracket in known(SCHEMES[NAMES["none"]]):
        key = _public(row)
        if key not in done:
            done.add(key)
            for setting in seen.get(key, []):
                yield Entry(scheme="no amplification", fields=setting, bracket=bracket)


def _public(row: Row) -> tuple[Value, ...]:
    """Return the fields that matter if the steps of an example are public."""
    return (row["sigma"], row["delta"], row["participations"], row["epochs"], row["adjacency"])


def _allocation(row: Row) -> Setting:
    names = ("sigma", "steps", "delta", "participations", "epochs", "adjacency")
    return {name: row[name] for name in names}


def _poisson(row: Row) -> Setting | None:
    """Return the setting with the expected number of uses of an example, or None if it is not an integer."""
    expected = row["sampling_probability"] * row["steps"]
    uses = max(1, round(expected))
    if not math.isclose(expected, uses, rel_tol=_SAME):
        return None
    return _allocation({**row, "participations": uses})


def _shuffling(row: Row) -> Setting | None:
    """Return the setting with add-remove for zero-out; None for an order that is kept, and replace-one."""
    if row["redraw"] == "once" or row["adjacency"] == "replace-one":
        return None
    relation = "add-remove" if row["adjacency"] == "zero-out" else row["adjacency"]
    return _allocation({**row, "participations": 1, "adjacency": relation})
