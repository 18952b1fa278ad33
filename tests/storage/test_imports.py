"""Imported rows are marked, shown as imported, checked, and can be taken back."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from privcore import Answer, find_problem
from storage import Manifest, StoreError, open_store, publish, to_table, write_manifest
from storage.compaction import compact, remove
from storage.export import write_store_sql
from storage.garbage import collect, find_garbage
from storage.manifest import manifests
from storage.parts import parts
from storage.place.folder import Folder
from storage.place.located import located
from storage.sql.views import marked, source_of
from storage.table.lookup_table import LookupTable, import_lookup_table, rows_of
from tests.storage.contents import row_hashes
from tests.storage.made_up import Claims, claimed, epsilon, manifest, put, row, rows, table_of
from tests.storage.plain import plainly


@pytest.fixture
def table(tmp_path: Path) -> LookupTable:
    """A table of three brackets."""
    return table_of(tmp_path / "theirs", rows(3))


def test_an_imported_row_is_marked_with_its_table_and_a_bracket_says_so(
    root: Path, table: LookupTable
) -> None:
    import_lookup_table(table, located(root))
    put(root, rows(1, first=9))
    with open_store(root) as store:
        (source,) = store.sql("select distinct source from imported")["source"].to_pylist()
        assert source == table.version
        imported, own, between = (store.lookup(epsilon(sigma=s)) for s in (1.01, 1.09, 1.05))
    assert imported is not None
    assert own is not None
    assert between is not None
    assert imported.tables == (table.version,)
    assert own.tables == ()
    assert between.tables == (table.version,), "its upper end is that of an imported row"


def test_a_forged_mark_of_any_length_is_shown_short_and_can_be_taken_back(root: Path) -> None:
    publish(located(root), marked(to_table(rows(1)), "x" * 6000))
    with open_store(root) as store:
        found = store.lookup(epsilon())
        assert found is not None
        assert found.tables == ("x" * 100,)
        assert store.sql("select source from imported")["source"].to_pylist() == ["x" * 100]
    assert remove(located(root), "x" * 100) == 1


@pytest.mark.thorough
def test_the_macros_name_the_tables_of_imported_rows(root: Path, table: LookupTable) -> None:
    import_lookup_table(table, located(root))
    put(root, rows(1, first=9))
    given = "delta := 1e-5"
    with open_store(root) as store:
        for asked, named in ((f"sigma := 1.01, {given}", [table.version]), (f"sigma := 1.09, {given}", [])):
            (said,) = store.sql(f"from unamplified_epsilon_at({asked})").to_pylist()
            assert said["imported"] == named
        upper = store.lookup(epsilon(sigma=1.01)).upper  # type: ignore[union-attr]
        (least,) = store.sql(f"from unamplified_epsilon_noise(epsilon := {upper!r}, {given})").to_pylist()
    assert least["imported"] == [table.version]


@pytest.mark.thorough
def test_the_mark_outlives_a_compaction(root: Path, table: LookupTable) -> None:
    import_lookup_table(table, located(root))
    put(root, rows(1, first=9))
    compact(located(root))
    with open_store(root) as store:
        assert store.sql("from imported").num_rows == 3


@pytest.mark.parametrize(
    "versions",
    [
        {"a": {"imported": "2026.11.23-c8364101"}},
        {"a": {"imported": ""}},
        {'a "imported":"2026.11.23-c8364101': ""},
        {"a": '"imported":"2026.11.23-c8364101"'},
    ],
)
def test_a_mark_that_would_hide_the_mark_of_the_import_is_refused(versions: dict[str, object]) -> None:
    table = to_table(rows(1))
    place = table.column_names.index("versions")
    forged = pa.array([json.dumps(versions)]).cast(table.schema.field("versions").type)
    with pytest.raises(StoreError, match="expected versions of packages, got"):
        marked(table.set_column(place, table.schema.field(place), forged), "theirs")


@pytest.mark.parametrize(
    ("text", "source"),
    [
        (r'{"A \"imported":"x"}', ""),
        (r'{"A \"imported":"x","imported":"y"}', "y"),
        (r'{"A":",\"imported\":\"x","imported":"y"}', "y"),
        ('{"imported" : "x"}', ""),
        ('{"imported":""}', ""),
        ('{"imported":1}', ""),
        ('{"imported":"x","imported":"y"}', "x"),
        ('{"a":{"imported":"x"}}', "x"),
        ('{"a":{"imported":"x"},', "x"),
        ('{"imported":"' + "\N{MUSICAL SYMBOL G CLEF}" * 101, "\N{MUSICAL SYMBOL G CLEF}" * 100),
        ("", ""),
    ],
)
def test_views_lookups_and_removals_agree_on_the_source_of_a_row(root: Path, text: str, source: str) -> None:
    table = to_table(rows(1))
    place, field = table.column_names.index("versions"), table.schema.field("versions")
    publish(located(root), table.set_column(place, field, pa.array([text]).cast(field.type)))
    write_store_sql(located(root))
    sources = [source] if source else []
    with open_store(root) as store:
        found = store.lookup(epsilon())
        assert found is not None
        assert found.tables == tuple(sources)
        assert store.sql("select source from imported")["source"].to_pylist() == sources
    assert plainly(root, "select source from imported") == [[[each] for each in sources]]
    assert source_of(text) == source
    for other in {"x", "y", text} - {source}:
        with pytest.raises(StoreError, match="has no rows imported from the table"):
            remove(located(root), other)
    if source:
        assert remove(located(root), source) == 1


def test_an_empty_version_removes_no_row(root: Path) -> None:
    put(root, rows(2))
    with pytest.raises(StoreError, match="Expected the version of a lookup table, got an empty text"):
        remove(located(root), "")
    with open_store(root) as store:
        assert store.sql("from results").num_rows == 2


@pytest.mark.parametrize(
    ("method", "answer", "lacks"),
    [
        ("poisson.pld", Answer.at_most(0.5), "ends"),
        ("poisson.renyi", Answer.enclosure(0.1, 0.5), "lower end"),
        ("shuffling.largest", Answer.enclosure(0.1, 0.5), "upper end"),
    ],
)
def test_ends_that_a_method_does_not_claim_to_give_are_refused(
    root: Path, tmp_path: Path, method: str, answer: Answer, lacks: str
) -> None:
    problem = f"{method.partition('.')[0]}-epsilon"
    fields = {name: 0.01 for name in find_problem(problem).parameters if name == "sampling_probability"}
    claim = claimed(problem, method, answer, sigma=1.0, delta=1e-5, steps=100, **fields)
    table = table_of(tmp_path / "theirs", claim)
    with pytest.raises(StoreError, match=rf"Cannot import .* {method} gives no {lacks}"):
        import_lookup_table(table, located(root))
    assert not root.exists()


def test_a_row_of_an_unknown_method_is_refused(root: Path, tmp_path: Path) -> None:
    table = table_of(tmp_path / "theirs", [row(epsilon(), method=Claims())])
    with pytest.raises(StoreError, match=r"Cannot import .*: Unknown method test\.claims"):
        import_lookup_table(table, located(root))
    assert not root.exists()


def test_a_point_that_the_store_computed_is_not_replaced_by_an_imported_one_with_an_old_date(
    root: Path, tmp_path: Path
) -> None:
    put(root, row(epsilon(), Answer.enclosure(1.0, 2.0), seconds_later=100))
    theirs = [row(epsilon(), Answer.enclosure(1.0, 1.5)), row(epsilon(sigma=3.0))]
    import_lookup_table(table_of(tmp_path / "theirs", theirs), located(root))
    with open_store(root) as store:
        assert store.sql("from results").num_rows == 2
        found = store.lookup(epsilon())
    assert found is not None
    assert (found.upper, found.tables) == (2.0, ())


def test_an_own_answer_that_is_finished_after_an_import_counts_and_stays_when_the_import_is_taken_back(
    root: Path, table: LookupTable
) -> None:
    import_lookup_table(table, located(root))
    own = put(root, rows(1, seconds_later=60))  # its run was computing the point at the time of the import
    assert own_parts(root) == [str(own.relative_to(root / "data"))]
    write_store_sql(located(root))
    chosen = "select part from results where point_id not in (select point_id from imported)"
    assert plainly(root, chosen) == [[[str(own.relative_to(root / "data"))]]]
    compact(located(root))
    collect(located(root), find_garbage(located(root)))
    assert remove(located(root), table.version) == 2
    with open_store(root) as store:
        assert store.lookup(epsilon()) is not None
        assert store.sql("from results").num_rows == 1
        assert store.verify() == []


def own_parts(root: Path) -> list[str]:
    """The parts of the rows that count and are not imported; a lookup finds one of them."""
    with open_store(root) as store:
        found = store.lookup(epsilon())
        assert found is not None
        assert found.tables == ()
        query = "select distinct part from results where point_id not in (select point_id from imported)"
        parts_of: list[str] = store.sql(query)["part"].to_pylist()
        return parts_of


def test_a_table_that_contradicts_a_computed_row_is_refused_by_the_row(root: Path, tmp_path: Path) -> None:
    put(root, row(epsilon(), Answer.enclosure(1.0, 2.0)))
    table = table_of(tmp_path / "theirs", [row(epsilon(), Answer.enclosure(0.1, 0.5))])
    with pytest.raises(StoreError) as error:
        import_lookup_table(table, located(root))
    assert row(epsilon()).point.id in str(error.value)
    assert table.version in str(error.value)
    assert len(parts(located(root))) == 1


def test_a_table_that_contradicts_an_earlier_import_is_refused_and_the_earlier_one_is_named(
    root: Path, tmp_path: Path
) -> None:
    first, second = (
        table_of(tmp_path / f"{k}", row(epsilon(), Answer.enclosure(1.0 + k, 1.5 + k))) for k in (0, 1)
    )
    import_lookup_table(first, located(root))
    with pytest.raises(StoreError) as error:
        import_lookup_table(second, located(root))
    assert f"version {second.version}: its row {row(epsilon()).point.id} is [2.0, 2.5]" in str(error.value)
    assert f"has [1.0, 1.5] from the lookup table {first.version}; " in str(error.value)
    assert f"`privsweep table remove {first.version}`" in str(error.value)
    remove(located(root), first.version)
    import_lookup_table(second, located(root))


def test_a_contradiction_names_the_imported_row_and_how_to_take_it_back(root: Path, tmp_path: Path) -> None:
    theirs = table_of(tmp_path / "theirs", [row(epsilon(sigma=2.0), Answer.enclosure(5.0, 6.0))])
    put(root, row(epsilon(sigma=1.0), Answer.enclosure(1.0, 2.0)))
    import_lookup_table(theirs, located(root))
    with open_store(root) as store, pytest.raises(StoreError) as error:
        store.lookup(epsilon(sigma=1.5))
    assert f"unamplified.exact (imported from the table {theirs.version}) has at least 5.0 for" in str(
        error.value
    )
    assert f"`privsweep table remove {theirs.version}`" in str(error.value)


def test_a_contradiction_by_convexity_names_the_imported_row_between_whose_neighbours_it_arises(
    root: Path, tmp_path: Path
) -> None:
    put(
        root,
        [row(epsilon(delta=d), Answer.enclosure(e - 1e-3, e)) for d, e in ((1e-6, 4.887), (1e-3, 3.139))],
    )
    false = row(epsilon(delta=1.1e-3), Answer.enclosure(0.0001, 0.0002))
    theirs = table_of(tmp_path / "theirs", false)
    import_lookup_table(theirs, located(root))
    with open_store(root) as store, pytest.raises(StoreError) as error:
        store.lookup(epsilon(delta=5e-4))
    assert "for a point between {'sigma': 1.0, 'delta': 0.001, " in str(error.value)
    assert f"unamplified.exact (imported from the table {theirs.version}) has at least" in str(error.value)
    assert " and {'sigma': 1.0, 'delta': 0.0011, " in str(error.value)
    assert str(error.value).count(f"`privsweep table remove {theirs.version}`") == 1


@pytest.mark.thorough
def test_a_contradiction_of_two_tables_at_one_point_is_found_with_both_names(
    root: Path, tmp_path: Path
) -> None:
    tables = [
        table_of(
            tmp_path / f"{k}",
            [row(epsilon(), Answer.enclosure(1.0 + 4.0 * k, 2.0 + 4.0 * k), seconds_later=k)],
        )
        for k in (0, 1)
    ]
    for table in tables:  # as earlier releases imported them
        publish(located(root), marked(rows_of(table, find_problem("unamplified-epsilon")), table.version))
    (complaint,) = open_store(root).verify()
    assert all(f"`privsweep table remove {table.version}`" in complaint for table in tables)


@pytest.mark.thorough
@pytest.mark.parametrize("merged", [False, True], ids=["apart", "compacted"])
def test_an_import_that_is_taken_back_leaves_the_store_as_it_was(
    root: Path, table: LookupTable, merged: bool
) -> None:
    put(root, rows(4, first=9))
    before = row_hashes(root)
    import_lookup_table(table, located(root))
    if merged:
        compact(located(root))
    assert remove(located(root), table.version) == 3
    assert row_hashes(root) == before
    with open_store(root) as store:
        assert store.verify() == []
        assert store.sql("from imported").num_rows == 0
    with pytest.raises(StoreError, match="has no rows imported from the table"):
        remove(located(root), table.version)


@pytest.mark.parametrize("tidied", ["", "compacted", "collected"])
def test_an_import_that_is_taken_back_leaves_the_equal_rows_of_another(
    root: Path, tmp_path: Path, table: LookupTable, tidied: str
) -> None:
    larger = table_of(tmp_path / "larger", rows(5))
    import_lookup_table(table, located(root))
    before = row_hashes(root)
    import_lookup_table(larger, located(root))
    if tidied == "compacted":
        compact(located(root))
    if tidied == "collected":
        collect(located(root), find_garbage(located(root), older_than=-1.0))
    assert remove(located(root), larger.version) == 5
    assert row_hashes(root) == before
    with open_store(root) as store:
        assert store.verify() == []
        assert store.sql("select distinct source from imported")["source"].to_pylist() == [table.version]


@pytest.mark.parametrize("at_once", ["before", "after"])
def test_a_compaction_that_had_read_the_imported_rows_does_not_bring_them_back(
    root: Path, table: LookupTable, monkeypatch: pytest.MonkeyPatch, at_once: str
) -> None:
    own = put(root, rows(4, first=9))
    write_manifest(located(root), manifest(own, *import_lookup_table(table, located(root))))
    removed: list[int] = []

    def late(place: Folder, merged: pa.Table) -> Path:
        """Publish a merged part; the import is taken back right before, or between publication and check."""
        if at_once == "before" and not removed:
            removed.append(remove(place, table.version))
        path = publish(place, merged)
        if at_once == "after" and not removed:
            removed.append(0)
            removed.append(remove(place, table.version))
        return path

    monkeypatch.setattr("storage.compaction.publish", late)
    compact(located(root))
    compact(located(root))
    assert removed[-1] == 3
    with open_store(root) as store:
        assert store.verify() == []
        assert store.sql("from imported").num_rows == 0
        assert store.sql("from results").num_rows == 4


@pytest.mark.thorough
@pytest.mark.parametrize("merged", [False, True], ids=["apart", "compacted"])
def test_a_sweep_that_used_imported_rows_is_incomplete_when_they_are_gone(
    root: Path, table: LookupTable, merged: bool
) -> None:
    made = import_lookup_table(table, located(root))
    if merged:
        made = [*made, put(root, rows(1, first=9))]
    write_manifest(located(root), manifest(*made))
    if merged:
        compact(located(root))
    remove(located(root), table.version)
    (left,) = manifests(located(root))
    assert isinstance(left, Manifest)
    assert (left.status, left.counts) == ("incomplete", {})
    with open_store(root) as store:
        assert store.verify() == []
        assert store.sql("from results").num_rows == int(merged)


def test_a_table_that_is_imported_again_after_a_compaction_and_a_removal_stays(
    root: Path, table: LookupTable, tmp_path: Path
) -> None:
    """The new part has the rows of a part whose name a record says was replaced."""
    other = table_of(tmp_path / "others", rows(3, first=5))
    place = located(root)
    for each in (table, other):
        import_lookup_table(each, place)
    compact(place)
    remove(place, table.version)
    import_lookup_table(table, place)
    compact(place)
    collect(place, find_garbage(place))
    with open_store(root) as store:
        assert len(store.sql("from results")) == 6
        assert store.verify() == []
