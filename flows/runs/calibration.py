"""The calibration of estimates: measured seconds of stored points over the estimates of their methods."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privcore.errors import PrivsweepError
from privcore.point import Point
from privcore.problem import Problem
from privcore.registry import find
from storage.schema import object_in
from tasks.limits import estimate

if TYPE_CHECKING:
    from storage import Store

SAMPLE = 2000  # rows of a method and a kind of problem, at most
UNUSUAL = 10.0
"""Multiple of the usual ratio above which a row took longer for a reason that most points do not have.

Measured: the first point of a worker took 12.8 s and others took 0.02 s, since the code was compiled for the
first. In 200 rows from two workers, the two first rows made the ratio six times too large.
"""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Measured over estimated seconds of one method on one kind of problem.

    Attributes:
        ratio: Sum of the measured over the sum of the estimated seconds; a row that took unusually long
            counts with at most `UNUSUAL` times the usual ratio.
        points: Number of stored points in the sums.
    """

    ratio: float
    points: int


def calibration(store: "Store", kinds: Iterable[type[Problem]]) -> Mapping[tuple[str, str], Calibration]:
    """Return measured over estimated seconds by names of problem and method; empty without a store.

    Options are not distinguished, since a method's estimate should depend on them.

    Args:
        store: Opened with `missing_ok`.
        kinds: The kinds of problems.

    Raises:
        StoreError: The store cannot be read.
    """
    from storage.views import view_name

    found: dict[tuple[str, str], Calibration] = {}
    stored = [kind for kind in kinds if store.names(kind.name)]
    for kind in stored:
        view = view_name(kind.name)  # a query over all problems takes 30 times as long
        query = f"select distinct method from {view} where status = 'ok'"
        for name in sorted(row["method"] for row in store.sql(query).to_pylist()):
            fields = ", ".join(f'"{field}"' for field in kind.parameters)
            rows = store.sql(
                f"select knobs, seconds, {fields} from {view} "
                f"where method = '{name}' and status = 'ok' order by point_id limit {SAMPLE}"
            ).to_pylist()  # ids are hashes: the first of them are a sample
            if one := _compared(kind, name, rows):
                found[kind.name, name] = one
    return found


def _compared(kind: type[Problem], name: str, rows: list[Mapping[str, object]]) -> Calibration | None:
    took: list[float] = []
    estimated: list[float] = []
    for row in rows:
        fields = {field: row[field] for field in kind.parameters if row[field] is not None}
        try:
            method = find(name).from_knobs(object_in(str(row["knobs"])))
            cost = estimate(Point(problem=kind.from_fields(fields), method=method))
        except (PrivsweepError, ValueError, TypeError):
            continue  # of another release
        if cost.seconds > 0:
            took.append(float(str(row["seconds"])))
            estimated.append(cost.seconds)
    if not sum(took):
        return None
    return Calibration(ratio=_usual(np.array(took), np.array(estimated)), points=len(took))


def _usual(took: NDArray[np.float64], estimated: NDArray[np.float64]) -> float:
    """Return measured over estimated seconds, with unusual rows clipped by the median of estimated work."""
    ratios = took / estimated
    order = np.argsort(ratios)
    work = np.cumsum(estimated[order])
    median = ratios[order][np.searchsorted(work, work[-1] / 2)]
    return float(np.minimum(took, UNUSUAL * median * estimated).sum() / estimated.sum())
