"""Caches of distributions are bounded by bytes: files with large columns do not fill the memory."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privcore.distributions.record_notation import canonical_law, law
from privcore.numerics.kept import MOST_VALUES, held_bytes, kept


def test_the_least_recently_used_values_are_dropped_first() -> None:
    made = []

    @kept(most_bytes=80)
    def zeros(text: str) -> np.ndarray:
        made.append(text)
        return np.zeros(int(text))

    for text in ("4", "5", "4", "2", "5"):
        zeros(text)
    assert made == ["4", "5", "2", "5"], "5 was used before 4"
    assert list(zeros.values) == ["2", "5"]


def test_a_value_that_is_larger_than_the_limit_is_kept_alone() -> None:
    @kept(most_bytes=80)
    def zeros(text: str) -> np.ndarray:
        return np.zeros(int(text))

    zeros("3")
    assert zeros("100") is zeros("100")
    assert list(zeros.values) == ["100"]


def test_small_values_are_limited_in_number() -> None:
    @kept()
    def same(text: str) -> str:
        return text

    for number in range(3 * MOST_VALUES):
        same(str(number))
    assert len(same.values) == MOST_VALUES


def test_distributions_of_large_files_are_counted_by_their_arrays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    law.cache_clear()
    monkeypatch.setattr(law, "_most_bytes", 100_000)
    for number in range(4):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table({"c": np.arange(1, 5001 + number)}), path)
        text = canonical_law(f"counts({path},c)")
        assert text is not None
        assert held_bytes(law(text)) >= 40_000
    assert len(law.values) < 4
    law.cache_clear()
