"""Taking back an import deletes its rows and no others, wherever it is killed."""

from pathlib import Path

import pytest

from storage import StoreError, open_store, write_manifest
from storage.compaction import compact, remove
from storage.place.located import located
from storage.table.lookup_table import LookupTable, import_lookup_table
from tests.faults import disk
from tests.faults.children import run, value_of
from tests.faults.tally import Tally
from tests.storage.made_up import manifest, put, rows, table_of
from tests.suites import some

pytestmark = pytest.mark.thorough

OWN = {row.point.id for row in rows(4, first=9)}
THEIRS = {row.point.id for row in rows(3)}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> LookupTable:
    """A table of three brackets."""
    return table_of(tmp_path_factory.mktemp("theirs"), rows(3))


def fill(root: Path, table: LookupTable, merged: bool) -> None:
    """Create a store with rows of its own and imported ones, in parts of their own or in one together."""
    own = put(root, rows(4, first=9))
    write_manifest(located(root), manifest(own, *import_lookup_table(table, located(root))))
    if merged:
        compact(located(root))


def points_of(root: Path, source: str) -> list[str]:
    passed = disk.watch(root, lambda _k, _operation, _path: None)
    remove(located(root), source)
    return list(passed)


def killed_at(number: int, root: Path, source: str) -> None:
    disk.watch(root, disk.kill_at(number))
    remove(located(root), source)


def removed_again(root: Path, source: str) -> None:
    """Remove the rest of an import; nothing is left if the process was killed after its last deletion."""
    try:
        remove(located(root), source)
    except StoreError as error:
        if "has no rows imported" not in str(error):
            raise


def stored(root: Path) -> set[str]:
    """The points of a store without damage."""
    with open_store(root) as store:
        assert store.verify() == []
        return set(store.stored("unamplified-epsilon"))


@pytest.mark.parametrize("merged", [False, True], ids=["apart", "compacted"])
def test_killed_at_any_operation_no_own_row_is_lost_and_the_next_removal_ends_it(
    faults: Tally, tmp_path: Path, table: LookupTable, merged: bool
) -> None:
    """T34: `table remove` killed at every operation on the disk."""
    fill(tmp_path / "whole", table, merged)
    points = value_of(points_of, tmp_path / "whole", table.version)
    assert len(points) > 4
    assert stored(tmp_path / "whole") == OWN
    for k, point in some(list(enumerate(points)), 3, f"remove {merged}"):
        root = tmp_path / f"{k}"
        fill(root, table, merged)
        with faults.trial():
            assert run(killed_at, k, root, table.version).killed, point
            assert OWN <= stored(root) <= OWN | THEIRS, point
            with faults.recovery():
                value_of(removed_again, root, table.version)
            assert stored(root) == OWN, point
            with open_store(root) as store:
                assert store.sql("from imported").num_rows == 0, point
        faults.compare(root, OWN)
