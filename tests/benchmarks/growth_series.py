"""Series of the section `growth`: the number that grows, the computation, and its units of work."""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from privcore import Point, evaluate, find, find_problem
from privcore.auditing import recursion
from privcore.labels.sums.poisson_binomial import SMALLEST, Array, leave_one_out, pmf
from tests.work import counted, noted

Work = Callable[[float], object]
Count = Callable[[float], float]

_DELTA = 1e-8
_MEMBERS_AT_ONCE = 8  # largest bag whose distributions are filled one by one


@dataclass(frozen=True, kw_only=True)
class Series:
    """Work as a function of one number.

    Attributes:
        topic: Name of the number that grows, of its chart and of the horizontal axis.
        name: Name of the computation.
        values: Increasing values of the number.
        work: Function that does the computation once.
        count: Function that returns the units of work of a value.
        unit: Name of the unit of work.
        limit: Peak of the machine that bounds the units.
        each: Least number of operations of that peak for each unit.
    """

    topic: str
    name: str
    values: tuple[float, ...]
    work: Work
    count: Count
    unit: str = "pairs"
    limit: str = "multiply_adds"
    each: float = 3.0


def _answer(problem: str, method: str, fields: Mapping[str, Any], **knobs: Any) -> object:
    question = find_problem(problem).from_fields(fields)
    answer = evaluate(Point(problem=question, method=find(method).from_knobs(knobs)))
    assert answer.ok, answer.detail
    return answer


def _allocation(**fields: Any) -> object:
    tolerance = fields.pop("tolerance", 0.01)
    given = {"sigma": 1.0, "steps": 10_000, "delta": _DELTA} | fields
    return _answer("allocation-epsilon", "allocation.certified", given, tolerance=tolerance)


def _chosen(**fields: Any) -> object:
    given = {"sigma": 1.0, "delta": _DELTA} | fields
    return _answer("allocation-epsilon", "allocation.conditional", given)


def _poisson(**fields: Any) -> object:
    tolerance = fields.pop("tolerance", 0.01)
    given = {"sigma": 1.0, "steps": 10_000, "delta": _DELTA} | fields
    given |= {"sampling_probability": 1.0 / given["steps"]}
    return _answer("poisson-epsilon", "poisson.certified", given, tolerance=tolerance)


def _pairs(work: Work) -> Count:
    """Return a counter of the combined pairs of atoms."""

    def count(value: float) -> float:
        with counted() as done:
            work(value)
        return float(done.pairs)

    return count


def _transformed(work: Work) -> Count:
    """Return a counter of the values in Fourier transforms."""

    def count(value: float) -> float:
        with counted() as done:
            work(value)
        return float(done.transformed)

    return count


@cache
def _etas(size: int) -> Any:
    return np.random.default_rng(size).beta(2.0, 30.0, size)


def _products(size: float) -> float:
    """Return the number of products of probabilities in the distributions of a bag, except underflows."""

    def below(outside: Array, etas: Array) -> float:
        if etas.size <= _MEMBERS_AT_ONCE:
            return float(etas.size * sum(outside.size + k for k in range(etas.size - 1)))
        halves = np.array_split(etas, 2)[::-1]  # the larger half is last in the tree of products
        laws = [pmf(half) for half in halves]
        total = sum(0.5 * half.size * np.count_nonzero(law) for half, law in zip(halves, laws, strict=True))
        for law, other in zip(laws, reversed(halves), strict=True):
            few, many = sorted((outside, law), key=len)
            product = np.convolve(few, many)
            product[product < SMALLEST] = 0.0
            total += np.count_nonzero(few) * many.size + below(product, other)
        return float(total)

    return below(np.ones(1), _etas(int(size)))


def _audit(canaries: float) -> object:
    fields = {"canaries": int(canaries), "guesses": int(canaries) // 10, "delta": 1e-5}
    return _answer("audit-epsilon", "auditing.gaussian", fields | {"correct": int(canaries) * 8 // 100})


def _audit_steps(canaries: float) -> float:
    """Return the number of steps of the recursion of an audit, by running its loops."""
    steps = 0

    def step(*_: Any) -> None:
        nonlocal steps
        steps += 1

    plain = {name: getattr(recursion, name).py_func for name in ("unlikely", "largest_refuted")}
    counts = canaries, canaries // 10, canaries * 8 // 100, 2.0
    with noted(recursion, "inverse", step):
        kept = recursion.unlikely
        recursion.unlikely = plain["unlikely"]
        try:
            plain["largest_refuted"](recursion.GAUSSIAN, 0.0, counts, 0.05, 60.0)
        finally:
            recursion.unlikely = kept
    return float(steps)


def _membership(odds: float, atoms: float) -> object:
    fields = {"law": f"zipf(1,{int(atoms)})", "records": 10**9, "odds": odds}
    return _answer("membership-advantage", "membership.exact", fields)


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


def _column(rows: float) -> str:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(_folder().name) / f"{int(rows)}.parquet"
    if not path.exists():
        values = np.random.default_rng(1).beta(2.0, 30.0, int(rows))
        pq.write_table(pa.table({"p": values}), path)
    return f"column({path},p)"


def _prior(rows: float) -> object:
    fields = {"mechanism": "rr", "prior": _column(rows), "label_epsilon": 1.0}
    return _answer("label-advantage", "labels.response", fields)


def _decades(first: int, last: int) -> tuple[float, ...]:
    return tuple(float(10**k) for k in range(first, last + 1))


def _of(answer: Callable[..., object], of: Callable[[float], dict[str, Any]], value: float) -> object:
    return answer(**of(value))


def _certified(topic: str, values: tuple[float, ...], of: Callable[[float], dict[str, Any]]) -> list[Series]:
    """Return the series of both certified brackets along one number."""
    both: tuple[tuple[str, Callable[..., object]], ...] = (("allocation", _allocation), ("Poisson", _poisson))
    found = []
    for name, answer in both:
        work: Work = partial(_of, answer, of)
        found.append(Series(topic=topic, name=name, values=values, work=work, count=_pairs(work)))
    return found


def _of_chosen(
    topic: str, name: str, values: tuple[float, ...], of: Callable[[float], dict[str, Any]]
) -> Series:
    """Return the series of the bracket of k of t along one number."""
    work: Work = partial(_of, _chosen, of)
    return Series(
        topic=topic,
        name=name,
        values=values,
        work=work,
        count=_transformed(work),
        unit="transformed values",
        each=40.0,  # 5/2 log2 of 2^16 values
    )


SERIES: tuple[Series, ...] = (
    *_certified("steps t", _decades(0, 8), lambda t: {"steps": int(t)}),
    *_certified("1 / tolerance", (10.0, 30.0, 100.0, 300.0, 1e3, 3e3, 1e4), lambda x: {"tolerance": 1 / x}),
    *_certified("k E", _decades(0, 4), lambda epochs: {"epochs": int(epochs)}),
    _of_chosen(
        "k E",
        "k of 10,000",
        (2.0, 5.0, 10.0, 30.0, 100.0, 300.0, 1e3, 3e3, 9e3),
        lambda k: {"steps": 10_000, "participations": int(k)},
    ),
    _of_chosen(
        "steps t",
        "t / 10 of t",
        (20.0, *_decades(2, 6)),
        lambda t: {"steps": int(t), "participations": int(t) // 10},
    ),
    Series(
        topic="bag size",
        name="leave-one-out distributions",
        values=tuple(2.0**k for k in range(1, 13)),
        work=lambda size: leave_one_out(_etas(int(size))),
        count=_products,
        unit="products",
        each=1.0,
    ),
    Series(
        topic="canaries",
        name="Gaussian family",
        values=_decades(2, 8),
        work=_audit,
        count=_audit_steps,
        unit="steps",
        limit="exponentials",
        each=3.0,
    ),
    *(
        Series(
            topic="atoms",
            name=f"membership, odds {odds:g}",
            values=_decades(1, 6),
            work=partial(_membership, odds),
            count=lambda atoms: atoms,
            unit="atoms",
            limit="exponentials",
            each=1.0,
        )
        for odds in (1.0, 1.01)
    ),
    Series(
        topic="atoms",
        name="prior of a column",
        values=_decades(1, 6),
        work=_prior,
        count=lambda rows: 8.0 * rows,
        unit="bytes",
        limit="bytes",
        each=2.0,
    ),
)
