"""Rows of a time to come are refused; the clock of their machine may be off by up to a day."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from storage import Row, open_store, publish, to_table
from storage.errors import StoreError
from storage.located import located
from storage.lookup_table import lookup_table
from storage.table_import import import_lookup_table
from storage.verify import verify
from tests.storage.made_up import epsilon, put, row

CENTURY = datetime(2199, 1, 1, tzinfo=UTC)


def at(moment: datetime) -> Row:
    return replace(row(epsilon()), finished_at=moment)


def test_a_part_of_a_time_to_come_is_not_sound(tmp_path: Path) -> None:
    put(tmp_path / "store", at(CENTURY))
    (finding,) = verify(located(tmp_path / "store")).findings
    assert (finding.kind, finding.harmless) == ("future", False)
    assert f"has row {row(epsilon()).point.id} finished on 2199-01-01, but this machine's clock shows 2" in (
        finding.detail
    )


def test_a_table_of_a_time_to_come_is_not_imported(tmp_path: Path) -> None:
    put(tmp_path / "theirs", [at(CENTURY), row(epsilon(sigma=2.0))])
    with open_store(tmp_path / "theirs") as store:
        table = lookup_table(store)
    with pytest.raises(
        StoreError, match=r"Cannot import version 2199\.01\.01-.* finished on 2199-01-01, but"
    ):
        import_lookup_table(table, located(tmp_path / "store"))
    assert not (tmp_path / "store").exists()


def test_a_clock_that_is_fast_by_hours_is_accepted(tmp_path: Path) -> None:
    put(tmp_path / "theirs", at(datetime.now(UTC) + timedelta(hours=23)))
    assert verify(located(tmp_path / "theirs")).sound
    with open_store(tmp_path / "theirs") as store:
        import_lookup_table(lookup_table(store), located(tmp_path / "store"))
    assert verify(located(tmp_path / "store")).sound


def test_a_time_beyond_the_calendar_is_shown(tmp_path: Path) -> None:
    rows = to_table([row(epsilon())])
    place = rows.column_names.index("finished_at")
    field = rows.schema.field("finished_at")
    late = pa.array([400_000_000_000_000_000]).cast(field.type)
    publish(located(tmp_path / "store"), rows.set_column(place, field, late))
    (finding,) = verify(located(tmp_path / "store")).findings
    assert "finished on 14645-06-30" in finding.detail
