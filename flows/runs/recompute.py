"""Recompute stored rows, drawn or all, and compare their answers with the stored ones.

Equal points have equal answers, bit for bit, so an answer of the current version of a method is reproduced,
except on another kind of processor, whose rounding may also lead to another bracket. Two proofs that do
not intersect contradict one another. A stored answer that only claims more than the recomputed one is not
refuted, but its method does not give it.
"""

import hashlib
import math
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from flows.runs.progress import LINE_EVERY
from privcore import (
    METHODS,
    PROBLEMS,
    Answer,
    Bracket,
    Direction,
    Point,
    Problem,
    evaluate,
    find_problem,
    intersect,
    methods_for,
)
from privcore.answer import Status, attributed, tables_of
from privcore.errors import DomainError, PrivsweepError
from storage.errors import StoreError
from storage.schema import import_text, object_in, provenance
from storage.sql.views import ROUNDING, source_of
from tasks.guard import Limits, estimate

if TYPE_CHECKING:
    from storage import Store
    from storage.table.lookup_table import LookupTable

PATIENCE = 1.0
"""Estimated seconds of the other methods that judge a row, or that of the row itself if it is larger."""

_COMPARED = ("lower", "upper", "value", "confidence")


@dataclass
class Recomputed:
    """The comparison of stored rows with recomputed ones.

    Attributes:
        rows: Rows that were recomputed.
        equal: Rows whose recomputed answer has the same ends and estimate, bit for bit.
        wider: Rows whose stored bracket is wider than the recomputed one, and contains it.
        apart: Sentences about stored brackets that a proof contradicts.
        not_reproduced: Sentences about rows that claim more than their method gives.
        skipped: Sentences about rows that this installation lacks the code or a package for, or that would
            exceed the limits of a point.
    """

    rows: int = 0
    equal: int = 0
    wider: int = 0
    apart: list[str] = field(default_factory=list)
    not_reproduced: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> list[str]:
        """The sentences about rows that cannot be believed: those contradicted, then those not reproduced."""
        return self.apart + self.not_reproduced


def compare(found: Recomputed, row: Mapping[str, Any], problem: Problem | None, point: Point | None) -> None:
    """Recompute a row, and enter the comparison.

    Args:
        found: The comparison of all rows.
        row: The row, with the columns of its answer, method and origin.
        problem: Its problem; None if this release rejects the fields.
        point: Its point in this release; None if this release lacks the method or an option.
    """
    words = f"{row['problem']}, {row['method']}, row {row['point_id']}"
    if why := _not_comparable(row, problem, point):
        if problem is not None and (other := _contradiction(row, problem, PATIENCE)):
            found.apart.append(f"{words}{_stored(row)}, {other}")
        else:
            found.skipped.append(f"{words}: {why}")
        return
    assert point is not None
    answer = evaluate(point)
    if answer.status is Status.NOT_APPLICABLE and "pip install" in answer.detail:
        found.skipped.append(f"{words}: {answer.detail}")
        return
    if answer.status is Status.FAILED and point.problem.assumption():
        found.skipped.append(f"{words}: its file cannot be read: {answer.detail}")
        return
    found.rows += 1
    words += _stored(row)
    if not answer.ok:
        found.not_reproduced.append(f"{words}, now {answer.status.value}: {answer.detail}")
    elif _apart(row, answer):
        found.apart.append(f"{words}, now {_shown(answer)}")
    elif row["confidence"] == 1.0 and not answer.rigorous:
        found.apart.append(f"{words} as proved, now with confidence {answer.confidence!r}")
    elif point.method.version == row["method_version"] and (more := _excess(row, answer)):
        if _proved_by_smaller_tolerance(row, point):
            found.wider += 1
            return
        other = _contradiction(row, point.problem, max(PATIENCE, estimate(point).seconds))
        found.apart += [f"{words}, {other}"] if other else []
        now = f"{words}, now {_shown(answer)}: {more}{_changed_packages(row)}"
        found.not_reproduced += [] if other else [now]
    else:
        same = all(getattr(answer, name) == row[name] for name in _COMPARED)
        found.equal += same
        found.wider += not same and not _alike(row, answer)


def _not_comparable(row: Mapping[str, Any], problem: Problem | None, point: Point | None) -> str:
    """Return the reason why a row is not recomputed, or ""."""
    if problem is None:
        return "this release rejects the fields"
    if point is None:
        return "this release lacks the method or an option"
    own, version = row["method_version"], point.method.version
    if own > version:
        return f"version {own} of the method is newer than that of this release, {version}"
    if own < version and row["confidence"] < 1.0:
        return f"an interval of version {own} of the method, which is now at {version}"
    refusal = Limits().refusal(estimate(point))
    return refusal.detail if refusal else ""


def _apart(row: Mapping[str, Any], answer: Answer) -> bool:
    """Return whether two proved brackets do not intersect; two intervals with a confidence may not."""
    proofs = row["confidence"] == 1.0 and answer.rigorous
    return proofs and (answer.lower > row["upper"] or row["lower"] > answer.upper)


def _excess(row: Mapping[str, Any], answer: Answer) -> str:
    """Return the claims of a row beyond the answer of its method, as a clause, or ""."""
    ends = []
    if row["lower"] > answer.lower and not _close(row["lower"], answer.lower):
        ends.append("lower end")
    if row["upper"] < answer.upper and not _close(row["upper"], answer.upper):
        ends.append("upper end")
    if row["value"] is not None and not (answer.value is not None and _close(row["value"], answer.value)):
        ends.append("estimate")
    if row["confidence"] > answer.confidence and not _close(row["confidence"], answer.confidence):
        ends.append("confidence")
    return f"the method does not give the stored {' and '.join(ends)}" if ends else ""


def _proved_by_smaller_tolerance(row: Mapping[str, Any], point: Point) -> bool:
    """Return whether the method proves a stored bracket with a tenth or a hundredth of its tolerance.

    If processors round differently, a method may refine other cells, and a bracket of the same tolerance then
    has other ends. A narrower bracket inside the stored one proves it in any case.
    """
    tolerance = getattr(point.method, "tolerance", None)
    if tolerance is None or row["confidence"] < 1.0 or row["value"] is not None:
        return False
    for share in (0.1, 0.01):
        try:
            options = {**point.method.identity(), "tolerance": share * tolerance}
            finer = Point(problem=point.problem, method=point.method.from_knobs(options))
        except DomainError:
            return False
        if Limits().refusal(estimate(finer)):
            return False
        answer = evaluate(finer)
        if answer.rigorous and row["lower"] <= answer.lower and answer.upper <= row["upper"]:
            return True
    return False


def _alike(row: Mapping[str, Any], answer: Answer) -> bool:
    """Return whether two answers differ by rounding only."""
    ends = _close(row["lower"], answer.lower) and _close(row["upper"], answer.upper)
    return ends and _close(row["confidence"], answer.confidence)


def _close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=ROUNDING)


def _contradiction(row: Mapping[str, Any], problem: Problem, seconds: float) -> str:
    """Return the proof of other methods that contradicts a row stored as proved, or "".

    The cheapest methods are used, in the given number of estimated seconds.
    """
    if row["confidence"] < 1.0:
        return ""
    points = [
        Point(problem=problem, method=method())
        for method, reason in methods_for(problem).items()
        if reason is None and method.direction is not Direction.ESTIMATE and method.name != row["method"]
    ]
    proofs: list[Bracket] = []
    for cost, point in sorted(((estimate(each).seconds, each) for each in points), key=lambda pair: pair[0]):
        seconds -= cost
        if seconds >= 0.0 and (answer := evaluate(point)).rigorous:
            proofs.append(answer.said_by(point.method.name))
    best = intersect([Bracket(), *proofs])
    if row["lower"] > best.upper:
        return f"but {best.upper_by} proves at most {best.upper!r}"
    if row["upper"] < best.lower:
        return f"but {best.lower_by} proves at least {best.lower!r}"
    return ""


def _stored(row: Mapping[str, Any]) -> str:
    """Return the stored answer in words, with the published table of the row."""
    return f"{import_text(tables_of(row['method']), ' {}')}: stored {_text(row)}"


def _shown(answer: Answer) -> str:
    """Return the bracket of an answer, with an estimate and a confidence below 1."""
    return _text({name: getattr(answer, name) for name in _COMPARED})


def _text(answer: Mapping[str, Any]) -> str:
    text = f"[{answer['lower']!r}, {answer['upper']!r}]"
    text += f" about {answer['value']!r}" if answer["value"] is not None else ""
    return text if answer["confidence"] == 1.0 else f"{text} with confidence {answer['confidence']!r}"


def _changed_packages(row: Mapping[str, Any]) -> str:
    """Return the packages whose versions differ from those that the row names, as the end of a sentence."""
    try:
        ours, theirs = object_in(provenance().versions), object_in(row["versions"])
    except StoreError:
        return ""
    changed = [
        f"{name} {str(theirs[name])[:20]} instead of {ours[name]}"
        for name in ours
        if name in theirs and theirs[name] != ours[name]
    ]
    return f"; it was computed with {', '.join(changed)}" if changed else ""


def sample_size(text: str) -> int | None:
    """Return the number of rows of a sample; None for `all`.

    Raises:
        DomainError: The text is neither a whole number of at least 1 nor `all`.

    Example:
        >>> sample_size("20"), sample_size("all")
        (20, None)
    """
    if text == "all":
        return None
    if text.isascii() and text.isdigit() and 0 < int(text) <= 10**9:
        return int(text)
    raise DomainError(f"Expected a number of rows, at least 1, or all, got {text[:60]!r}.")


def recompute(
    store: "Store",
    count: int | None,
    seed: int = 0,
    watch: Callable[[int, int], None] = lambda done, total: None,
) -> Recomputed:
    """Recompute answered rows of a store, with their methods and options, in this process.

    The random numbers of a method are a function of the point, so intervals with a confidence are
    reproduced, too. Points that are estimated to exceed the usual limits of a sweep are left out.

    Args:
        store: The store.
        count: Size of the sample; None for all rows.
        seed: Seed of the sample.
        watch: Called every ten seconds with the number of finished rows and of all rows of the sample.
    """
    ids = _sample(store, count, seed)
    missed = {(problem, point) for problem, points in ids.items() for point in points}
    total, shown = len(missed), time.monotonic()
    found = Recomputed()
    for row in _rows(store, ids):
        if time.monotonic() - shown >= LINE_EVERY:
            shown = time.monotonic()
            watch(total - len(missed), total)
        missed.discard((row["problem"], row["point_id"]))
        problem = _problem(row)
        compare(found, row, problem, _point(row, problem))
    found.skipped += [
        f"{problem}, row {point}: this release lacks the problem, or the row is gone"
        for problem, point in sorted(missed)
    ]
    return found


QUICK = 1e-2
"""Estimated seconds of a row whose method is quick: all of these rows of an import are recomputed."""
QUICK_TOTAL = 10.0
"""Estimated seconds of all quick rows that are recomputed at most."""
SLOW = 30.0
"""Estimated seconds above which a row of an import is not drawn."""


def check_import(table: "LookupTable", count: int, seed: int = 0) -> Recomputed:
    """Recompute drawn rows of a lookup table, and all rows whose method is quick.

    Rows that this release cannot compute are left out.

    Args:
        table: The table.
        count: Number of drawn rows, >= 0.
        seed: Seed of the draw.
    """
    from storage.table.lookup_table import answered_rows

    rows = sorted(answered_rows(table), key=lambda row: _drawn(row["point_id"], seed)) if count else []
    found, drawn, spent = Recomputed(), 0, 0.0
    for row in rows:
        problem = _problem(row)
        point = _point(row, problem)
        seconds = float("inf") if point is None else estimate(point).seconds
        if seconds <= QUICK and spent + seconds <= QUICK_TOTAL:
            spent += seconds
        elif seconds <= SLOW and drawn < count:
            drawn += 1
        else:
            continue
        compare(found, row, problem, point)
    return found


def new_seed() -> int:
    """Return a seed that the maker of the rows could not predict."""
    return secrets.randbelow(2**32)


def _drawn(point: str, seed: int) -> str:
    """Return a key that sorts points in an order of the seed."""
    return hashlib.md5(f"{point}{seed}".encode(), usedforsecurity=False).hexdigest()


def _sample(store: "Store", count: int | None, seed: int) -> dict[str, list[str]]:
    """Return the ids of the rows of the sample, by problem."""
    limit = "" if count is None else f"limit {count}"
    drawn = store.sql(
        f"""
        select problem::varchar as problem, point_id from results where status = 'ok'
        order by md5(point_id || '{seed}') {limit}
        """
    ).to_pylist()
    ids: dict[str, list[str]] = {}
    for row in drawn:
        ids.setdefault(row["problem"], []).append(row["point_id"])
    return ids


def _rows(store: "Store", ids: dict[str, list[str]]) -> Iterator[dict[str, Any]]:
    """Yield rows, with the fields of their problems."""
    for kind in PROBLEMS:
        fields = ", ".join(f'"{name}"' for name in kind.parameters)
        wanted = ids.get(kind.name, [])
        for start in range(0, len(wanted), 1000):
            chosen = ", ".join(f"'{each}'" for each in wanted[start : start + 1000])
            rows = store.sql(
                f"""
                select '{kind.name}' as problem, point_id, method::varchar as method, method_version,
                    knobs::varchar as knobs, {fields}, lower, upper, value, confidence,
                    versions::varchar as versions
                from "{kind.name.replace("-", "_")}" where point_id in ({chosen}) order by point_id
                """
            )
            for row in rows.to_pylist():
                yield row | {"method": attributed(row["method"], source_of(row["versions"]))}


def _problem(row: dict[str, Any]) -> Problem | None:
    """Return the problem of a row; None if this release rejects the fields."""
    try:
        kind = find_problem(row["problem"])
        return kind.from_fields({name: row[name] for name in kind.parameters if row[name] is not None})
    except (PrivsweepError, ValueError, LookupError, TypeError):
        return None


def _point(row: dict[str, Any], problem: Problem | None) -> Point | None:
    """Return the point of a row; None if this release lacks the method, or rejects fields or options."""
    method = METHODS.get(row["method"])
    if method is None or problem is None:
        return None
    try:
        return Point(problem=problem, method=method.from_knobs(object_in(row["knobs"])))
    except (PrivsweepError, ValueError, LookupError, TypeError):
        return None
