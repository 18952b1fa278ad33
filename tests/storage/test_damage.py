import hashlib
import math
import os
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privcore import Answer
from storage import StoreError, open_store, write_manifest
from storage.errors import DegradedWarning
from storage.place.located import located
from storage.verify import set_aside
from tests.storage.made_up import Claims, epsilon, manifest, put, row, rows
from tests.storage.test_parts import republish


def flip_a_bit(part: Path, *, seed: int) -> None:
    content = bytearray(part.read_bytes())
    bit = random.Random(seed).randrange(8 * len(content))
    content[bit // 8] ^= 1 << bit % 8
    part.write_bytes(content)


def test_every_flipped_bit_is_found_by_name(root: Path) -> None:
    made = [put(root, rows(20, first=20 * i)) for i in range(60)]
    for seed, part in enumerate(made):
        flip_a_bit(part, seed=seed)
    complaints = open_store(root).verify()
    assert len(complaints) == 60
    for part, complaint in zip(sorted(made), complaints, strict=True):
        assert complaint.startswith(f"{part} is damaged: its bytes do not match the SHA-256 in its name")


def test_a_part_that_a_disk_enlarged_is_refused_unread_and_repaired(root: Path) -> None:
    part, sound = put(root, rows(5)), put(root, rows(5, first=5))
    os.truncate(part, 8 * 10**12)  # 8 TB of zeros, which need no room
    with open_store(root) as store:
        (complaint,) = store.verify()
        assert complaint.startswith(f"{part} is damaged: it has more than 2147 MB; `privsweep repair` will")
        with pytest.raises(StoreError, match="it has more than 2147 MB"):
            store.sql("from results")
    with pytest.warns(DegradedWarning), open_store(root, degraded=True) as store:
        assert store.sql("from results").num_rows == 5
    set_aside(located(root), [part])
    with open_store(root) as store:
        assert store.sql("from results").num_rows == 5
    assert (part.exists(), sound.exists()) == (False, True)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("harm", ["flip", "truncate", "empty", "append"])
@pytest.mark.parametrize("opened", [False, True], ids=["before-opening", "after-a-query"])
def test_a_damaged_part_is_refused_by_name_wherever_rows_are_read(
    root: Path, harm: str, opened: bool
) -> None:
    part, sound = put(root, rows(5)), put(root, rows(5, first=5))
    if opened:
        with open_store(root) as store:
            assert store.sql("from results").num_rows == 10
    content = part.read_bytes()
    if harm == "flip":
        flip_a_bit(part, seed=1)
    else:
        part.write_bytes({"truncate": content[:-7], "empty": b"", "append": content + b"x"}[harm])
    with open_store(root) as store:
        (complaint,) = store.verify()
        assert str(part) in complaint
        for read in (
            lambda: store.sql("select count(*) from results"),
            lambda: store.stored("unamplified-epsilon"),
            lambda: store.lookup(epsilon()),
        ):
            with pytest.raises(StoreError) as caught:
                read()
            assert str(caught.value) == complaint
    part.unlink()  # as the sentence advises
    with open_store(root) as store:
        assert store.verify() == []
        assert store.sql("select distinct part from results")["part"].to_pylist() == [
            str(sound.relative_to(root / "data"))
        ]


def test_a_part_that_was_deleted_is_missed_by_the_manifest_that_lists_it(root: Path) -> None:
    kept, lost = put(root, rows(2)), put(root, rows(2, first=2))
    write_manifest(located(root), manifest(kept, lost))
    with open_store(root) as store:
        assert store.verify() == []
        assert store.sql("from results").num_rows == 4
        lost.unlink()
        sentence = (
            f"{lost} of sweep made-up is missing: restore it, or run `privsweep repair` to compute it again."
        )
        assert store.verify() == [sentence]
        with pytest.raises(StoreError) as caught:
            store.sql("from results")
        assert str(caught.value) == sentence
        assert len(store.stored("unamplified-epsilon")) == 2, (
            "a sweep can still find the points to compute again"
        )
        again = put(root, rows(2, first=2))
        write_manifest(located(root), manifest(kept, again))
        assert store.sql("from results").num_rows == 4


def test_a_part_whose_points_are_not_those_of_its_name_is_found(root: Path) -> None:
    part = put(root, rows(2))
    moved = part.with_name("0" * 32 + part.name[32:])
    part.rename(moved)
    assert open_store(root).verify() == [
        f"{moved} has points that do not match the hash in its name; `privsweep repair` will quarantine it."
    ]


def exchanged(part: Path, column: str) -> Path:
    """Exchange the values of a column between two rows of a part, under the right name for its bytes."""
    table = pq.read_table(part, partitioning=None)
    values = pa.chunked_array([table[column].combine_chunks().take(pa.array([1, 0]))])
    return republish(part, table.set_column(table.column_names.index(column), column, values))


@pytest.mark.parametrize("column", ["sigma", "problem_id", "method"])
def test_rows_with_the_fields_of_other_rows_are_found_though_name_and_bytes_agree(
    root: Path, column: str
) -> None:
    part = exchanged(put(root, [row(epsilon()), row(epsilon(sigma=2), method=Claims(number=3))]), column)
    (complaint,) = open_store(root).verify()
    assert complaint.startswith(f"{part} has other fields in row ")
    with open_store(root, degraded=True) as store, pytest.warns(DegradedWarning, match="has other fields"):
        assert store.stored("unamplified-epsilon") == {}


def test_a_part_whose_rows_name_another_problem_than_its_folder_is_refused_by_every_reader(
    root: Path,
) -> None:
    part = put(root, rows(2))
    table = pq.read_table(part, partitioning=None)
    place, kind = table.column_names.index("problem"), table.schema.field("problem").type
    forged = pa.array(["unamplified-epsilon", "poisson-epsilon"]).cast(kind)
    part = republish(part, table.set_column(place, table.schema.field(place), forged))
    (complaint,) = open_store(root).verify()
    assert complaint.startswith(
        f"{part} holds rows of 'poisson-epsilon' in the folder of unamplified-epsilon"
    )
    with open_store(root) as store:
        with pytest.raises(StoreError) as caught:
            store.lookup(epsilon())
        assert str(caught.value) == complaint
        with pytest.raises(StoreError) as caught:
            store.stored("unamplified-epsilon")
        assert str(caught.value) == complaint
    with open_store(root, degraded=True) as store, pytest.warns(DegradedWarning, match="holds rows of"):
        assert store.stored("unamplified-epsilon") == {}


def changed(part: Path, column: str, value: object) -> Path:
    """A part with another value of a column in all rows, and the name of its new bytes."""
    table = pq.read_table(part, partitioning=None)
    kind = table.schema.field(column).type
    if isinstance(value, bytes):
        texts = pa.StringArray.from_buffers(
            1, pa.py_buffer(np.array([0, len(value)], "i4").tobytes()), pa.py_buffer(value)
        )
        values = pa.DictionaryArray.from_arrays(pa.array([0] * len(table), pa.int32()), texts, safe=False)
        return republish(part, table.set_column(table.column_names.index(column), column, values))
    values = pa.array([value] * len(table)).cast(kind)
    return republish(part, table.set_column(table.column_names.index(column), column, values))


@pytest.mark.parametrize(
    ("column", "value", "sentence"),
    [
        ("sigma", math.nan, "has NaN in the column sigma"),
        ("finished_at", -(10**17), "has a row that was finished before 1970"),
        ("finished_at", 4 * 10**17, "has a row that was finished on 14645-06-30, after the year 9999"),
        *(
            (name, b"\xff", f"has text that is not UTF-8 in the column {name}; `privsweep repair`")
            for name in ("detail", "host", "knobs", "method", "status", "problem_id", "adjacency", "versions")
        ),
    ],
)
def test_a_value_that_no_method_stores_damages_its_part_for_every_reader(
    root: Path, column: str, value: object, sentence: str
) -> None:
    part = changed(put(root, rows(2)), column, value)
    (complaint,) = open_store(root).verify()
    assert complaint.startswith(str(part))
    assert sentence in complaint
    with open_store(root) as store, pytest.raises(StoreError) as caught:
        store.lookup(epsilon())
    assert str(caught.value) == complaint
    with open_store(root, degraded=True) as store, pytest.warns(DegradedWarning, match=sentence):
        assert store.stored("unamplified-epsilon") == {}


def test_a_part_with_a_column_whose_name_is_not_text_is_damaged(root: Path) -> None:
    part = put(root, rows(2))
    table = pq.read_table(part, partitioning=None).append_column("other", pa.array([1, 2]))
    made = republish(part, table)
    content = made.read_bytes().replace(b"other", b"othe\xff")
    made.unlink()
    digest = hashlib.sha256(content).hexdigest()
    damaged = made.with_name(f"{made.name[:32]}-{digest}.parquet")
    damaged.write_bytes(content)
    (complaint,) = open_store(root).verify()
    assert complaint.startswith(f"{damaged} is not a readable Parquet file: ")
    with open_store(root) as store, pytest.raises(StoreError) as caught:
        store.lookup(epsilon())
    assert str(caught.value) == complaint


def test_a_manifest_with_a_name_that_is_no_text_is_found(root: Path) -> None:
    made = replace(manifest(put(root, rows(1))), name="\ud800")
    path = write_manifest(located(root), made)
    with open_store(root) as store:
        (complaint,) = store.verify()
        assert complaint.startswith(f"{path} is damaged: ")
        with pytest.raises(StoreError) as caught:
            store.sql("from sweeps")
        assert str(caught.value) == complaint


def test_every_row_that_a_release_has_written_has_the_fields_of_its_id(repository: Path) -> None:
    assert open_store(repository / "tests" / "storage" / "data" / "store-1").verify() == []


def test_a_damaged_manifest_is_found_by_name(root: Path) -> None:
    path = write_manifest(located(root), manifest(put(root, rows(1))))
    path.write_text(path.read_text()[:-20])
    with open_store(root) as store:
        (complaint,) = store.verify()
        assert complaint == f"{path} is damaged: expected a sweep's manifest; run the sweep again."
        with pytest.raises(StoreError) as caught:
            store.sql("from sweeps")
        assert str(caught.value) == complaint


def test_one_point_with_two_different_answers_is_found(root: Path) -> None:
    made = [put(root, row(epsilon(), Answer.enclosure(1.0, 2.0), seconds_later=s)) for s in (0, 5)]
    with open_store(root) as store:
        assert store.verify() == []
        made.append(put(root, row(epsilon(), Answer.enclosure(2.5, 3.0), seconds_later=9)))
        (complaint,) = store.verify()
    point = row(epsilon()).point.id
    assert complaint == f"Point {point} has different answers in {min(made)} and {max(made)}."


def test_a_point_computed_on_two_kinds_of_processor_is_no_contradiction(root: Path) -> None:
    put(root, row(epsilon(), Answer.enclosure(1.0, 2.0)))
    put(root, row(epsilon(), Answer.enclosure(1.001, 2.001), seconds_later=5))
    with open_store(root) as store:
        assert [finding.kind for finding in store.examine().findings] == ["duplicate"]


@pytest.mark.parametrize(
    ("upper", "kinds"), [(2.000000001, ["duplicate"]), (2.1, ["contradiction", "duplicate"])]
)
def test_two_intervals_of_a_point_agree_up_to_rounding(root: Path, upper: float, kinds: list[str]) -> None:
    put(root, row(epsilon(), Answer.enclosure(1.0, 2.0, confidence=0.9)))
    put(root, row(epsilon(), Answer.enclosure(1.0, upper, confidence=0.9), seconds_later=5))
    with open_store(root) as store:
        assert [finding.kind for finding in store.examine().findings] == kinds
