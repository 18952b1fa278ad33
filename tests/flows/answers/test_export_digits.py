"""Digits of exported ends: four, rounded outwards, in tables for readers; all in files for programs."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flows.answers.export import FORMATS

LOWER, UPPER, SIGMA = 0.8783123456789012, 0.88479123456789012, 1.2345678901234567
TABLE = pa.table(
    {
        "sigma": [SIGMA, 1.0],
        "lower": [LOWER, float("nan")],
        "epsilon_upper": [UPPER, float("inf")],
        "steps_lower": [234567, 3],
        "lower_method": ["a.b", None],
    }
)


def written(form: str) -> bytes:
    file = io.BytesIO()
    FORMATS[form](iter([TABLE]), file)
    return file.getvalue()


@pytest.mark.parametrize("form", ["md", "tex"])
def test_tables_for_readers_round_ends_outwards_to_four_digits(form: str) -> None:
    text = written(form).decode()
    assert " 0.8783 " in text
    assert " 0.8848 " in text
    assert f" {SIGMA!r} " in text or f"\n{SIGMA!r} " in text, "a parameter is not an end"
    assert " 234567 " in text, "nor is a count"
    assert " inf " in text
    assert repr(LOWER) not in text


@pytest.mark.parametrize("form", ["csv", "json"])
def test_files_for_programs_keep_all_digits(form: str) -> None:
    text = written(form).decode()
    for number in (LOWER, UPPER, SIGMA):
        assert repr(number) in text


def test_parquet_keeps_all_digits() -> None:
    read = pq.read_table(io.BytesIO(written("parquet")))
    assert read["lower"].to_pylist()[0] == LOWER
