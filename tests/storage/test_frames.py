"""Frames of Arrow, pandas and polars: the same rows, in types that hold them exactly."""

import math
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from privcore import Answer, LimitError, UnknownNameError, find_problem
from privcore.extras import MissingPackageError
from storage import QueryError, Store, open_store
from tests.storage.made_up import NOON, epsilon, put, row, rows

pytestmark = pytest.mark.sampled(8)

KINDS = ("arrow", "pandas", "polars")
VALUES = """
    select 1.5::decimal(10, 3) as amount, sum(9007199254740993::bigint) as total,
           timestamptz '2026-01-01 00:00:00.123456+00' as instant, timestamp '2026-01-02 03:04:05' as local,
           date '2026-01-01' as day, 'clip'::enum('clip', 'add') as choice, 'a<b' as word,
           9007199254740993::bigint as odd, null::bigint as missing, null::double as unknown,
           'inf'::double as endless, '-inf'::double as least, 5e-324::double as tiny, true as flag,
           [1, 2] as list, {'a': 1} as record
"""
TYPES = {
    "amount": (pa.decimal128(10, 3), pl.Decimal(10, 3)),
    "total": (pa.decimal128(38, 0), pl.Decimal(38, 0)),
    "instant": (pa.timestamp("us", tz="UTC"), pl.Datetime("us", "UTC")),
    "local": (pa.timestamp("us"), pl.Datetime("us")),
    "day": (pa.date32(), pl.Date()),
    "choice": (pa.dictionary(pa.uint8(), pa.string()), pl.Categorical()),
    "word": (pa.string(), pl.String()),
    "odd": (pa.int64(), pl.Int64()),
    "missing": (pa.int64(), pl.Int64()),
    "unknown": (pa.float64(), pl.Float64()),
    "endless": (pa.float64(), pl.Float64()),
    "least": (pa.float64(), pl.Float64()),
    "tiny": (pa.float64(), pl.Float64()),
    "flag": (pa.bool_(), pl.Boolean()),
}
EXPECTED = {
    "amount": Decimal("1.5"),
    "total": Decimal(9007199254740993),
    "instant": datetime(2026, 1, 1, 0, 0, 0, 123456, UTC),
    "local": datetime(2026, 1, 2, 3, 4, 5),
    "day": datetime(2026, 1, 1).date(),
    "choice": "clip",
    "word": "a<b",
    "odd": 9007199254740993,
    "missing": None,
    "unknown": None,
    "endless": math.inf,
    "least": -math.inf,
    "tiny": 5e-324,
    "flag": True,
    "list": [1, 2],
    "record": {"a": 1},
}


@pytest.fixture
def store(root: Path) -> Iterator[Store]:
    put(root, rows(3))
    with open_store(root) as store:
        yield store


def content(frame: Any) -> list[dict[str, Any]]:
    """The rows of a frame as Python objects; a null is None."""
    if isinstance(frame, pa.Table):
        return list(frame.to_pylist())
    if isinstance(frame, pl.DataFrame):
        return frame.to_dicts()
    return list(pa.Table.from_pandas(frame, preserve_index=False).to_pylist())


def types(frame: Any) -> list[Any]:
    if isinstance(frame, pa.Table):
        return list(frame.schema.types)
    if isinstance(frame, pl.DataFrame):
        return frame.dtypes
    return [dtype.pyarrow_dtype for dtype in frame.dtypes]


@pytest.mark.parametrize("kind", KINDS)
def test_every_value_and_its_type_are_kept(store: Store, kind: Any) -> None:
    frame = store.frame(VALUES, kind)
    assert content(frame) == [EXPECTED]
    column = 1 if kind == "polars" else 0
    expected = [pair[column] for pair in TYPES.values()]
    assert types(frame)[: len(TYPES)] == expected


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_result_keeps_its_types(store: Store, kind: Any) -> None:
    frame, empty = store.frame(VALUES, kind), store.frame(f"from ({VALUES}) where not flag", kind)
    assert len(empty) == 0
    assert types(empty) == types(frame)
    assert list(empty.columns) == list(frame.columns) or kind == "arrow"


def test_integers_with_a_null_keep_their_digits_in_pandas(store: Store) -> None:
    frame = store.frame("from (values (9007199254740993), (null)) as t(n)", "pandas")
    assert int(frame["n"].iloc[0]) == 9007199254740993
    assert frame["n"].iloc[1] is pd.NA
    assert store.frame("select 'nan'::double as x", "pandas")["x"].isna().tolist() == [False]
    assert store.frame("select 1.5::double as x", "pandas")["x"].to_numpy().dtype == float


@pytest.mark.parametrize("kind", KINDS)
def test_the_name_of_a_view_or_of_a_problem_means_its_rows(store: Store, kind: Any) -> None:
    for name, query in {
        "best": "from best",
        "unamplified-epsilon": "from unamplified_epsilon",
        "unamplified_epsilon": "from unamplified_epsilon",
        "brackets.unamplified-epsilon": "from brackets.unamplified_epsilon",
    }.items():
        assert content(store.frame(name, kind)) == content(store.frame(query, kind)) != []


@pytest.mark.parametrize("kind", KINDS)
def test_the_best_brackets_of_one_problem_have_its_own_fields_only(store: Store, kind: Any) -> None:
    frame = store.best("unamplified-epsilon", kind)
    names = frame.column_names if kind == "arrow" else list(frame.columns)
    fields = list(find_problem("unamplified-epsilon").parameters)
    ends = ["lower", "upper", "lower_method", "upper_method", "lower_point", "upper_point"]
    assert names == ["problem_id", "problem", *fields, *ends]
    shown = ", ".join(names)
    where = "where problem = 'unamplified-epsilon' order by problem_id"
    assert sorted(content(frame), key=lambda r: r["problem_id"]) == content(
        store.frame(f"select {shown} from best {where}")
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_problem_without_rows_has_an_empty_frame_with_types(store: Store, kind: Any) -> None:
    frame = store.best("allocation-epsilon", kind)
    assert len(frame) == 0
    columns = dict(zip(frame.column_names if kind == "arrow" else frame.columns, types(frame), strict=True))
    assert columns["sigma"] == (pl.Float64() if kind == "polars" else pa.float64())
    assert columns["steps"] == (pl.Int64() if kind == "polars" else pa.int64())
    assert {"sampling_probability", "bag_size"}.isdisjoint(columns)


def test_infinite_ends_and_times_of_stored_rows_survive(root: Path) -> None:
    put(root, row(epsilon(), Answer(lower=0.5, upper=math.inf)))
    with open_store(root) as store:
        for kind in KINDS:
            (found,) = content(store.frame("select lower, upper, value, finished_at from results", kind))  # type: ignore[call-overload]
            assert found == {"lower": 0.5, "upper": math.inf, "value": None, "finished_at": NOON}


def test_misuse_is_refused_in_one_sentence(store: Store) -> None:
    with pytest.raises(UnknownNameError, match=r"^Unknown kind of frame panda\. Did you mean pandas\?$"):
        store.frame("best", "panda")  # type: ignore[call-overload]
    with pytest.raises(UnknownNameError, match=r"^Unknown problem alocation-epsilon\. Did you mean all"):
        store.best("alocation-epsilon")
    with pytest.raises(QueryError, match="nowhere"):
        store.frame("nowhere", "polars")
    with pytest.raises(QueryError, match=r"^Expected columns with different names, got a, a\.$"):
        store.frame("select 1 as a, 2 as a", "pandas")
    for value in ("interval 3 day", "[interval 3 day]", "union_value(a := 1)"):
        with pytest.raises(QueryError, match=r"^Polars has no type for .* in x; cast it to varchar\.$"):
            store.frame(f"select {value} as x", "polars")
    with pytest.raises(LimitError, match="took longer"):
        store.frame("select count(*) from range(100000000000)", "polars", limit_seconds=0.0)


@pytest.mark.thorough
def test_neither_package_is_imported_before_a_frame_is_asked_for() -> None:
    program = "import sys, storage, privsweep as ps; ps.Store; print({'pandas', 'polars'} & set(sys.modules))"
    ended = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert ended.stdout == "set()\n"


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_missing_package_is_named_in_one_sentence(
    store: Store, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, kind, None)  # Python does not find it then
    for ask in (store.frame, store.best):
        with pytest.raises(MissingPackageError) as caught:
            ask("unamplified-epsilon", kind)
        assert str(caught.value) == f"A frame of {kind} needs the package {kind}: pip install {kind}."
