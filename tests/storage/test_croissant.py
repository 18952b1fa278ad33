"""The Croissant description of a lookup table, read by another program, mlcroissant."""

import hashlib
import json
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb
import mlcroissant
import pandas
import pytest

from privcore import Answer
from storage import open_store
from storage.table.croissant import ANSWERS, description, write_description
from storage.table.lookup_table import lookup_table, read_lookup_table, write_lookup_table
from storage.table.shipped import FOLDER
from tests.storage.made_up import epsilon, imported, put, row, rows

pytestmark = pytest.mark.sampled(2)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small table with its description; the path of the table."""
    folder = tmp_path_factory.mktemp("published")
    put(folder / "store", rows(5))
    put(folder / "store", row(epsilon(sigma=7.0), Answer(value=1.0)))
    with open_store(folder / "store") as store:
        table = lookup_table(store)
    path = folder / f"lookup-{table.version}.parquet"
    write_lookup_table(table, path)
    assert write_description(table, path) == described(path)
    return path


def described(path: Path) -> Path:
    return path.with_suffix(".croissant.json")


def opened(path: Path) -> Any:
    """A description that was read without an error and without a warning."""
    dataset = mlcroissant.Dataset(str(described(path)))
    issues = dataset.metadata.ctx.issues
    assert not issues.errors
    assert not issues.warnings
    return dataset


def loaded(path: Path, count: int) -> list[dict[str, Any]]:
    """The first records of a table, as mlcroissant loads them."""
    records = islice(opened(path).records(ANSWERS), count)
    return [{name.partition("/")[2]: plain(value) for name, value in record.items()} for record in records]


def plain(value: Any) -> Any:
    """A value of mlcroissant, which has bytes for texts, as DuckDB has it."""
    if isinstance(value, bytes):
        return value.decode()
    return None if pandas.isna(value) else value


def read(path: Path, count: int) -> list[dict[str, Any]]:
    """The same records, as DuckDB reads the file."""
    with duckdb.connect() as connection:
        found: list[dict[str, Any]] = (
            connection.sql(f"from '{path}' limit {count}").to_arrow_table().to_pylist()
        )
    return found


def test_another_program_validates_the_description_and_loads_the_same_records(published: Path) -> None:
    records = loaded(published, 6)
    assert len(records) == 6
    assert records == read(published, 6)


def test_every_column_has_a_type_and_a_description_and_some_have_a_unit(published: Path) -> None:
    dataset = opened(published)
    (answers,) = dataset.metadata.record_sets
    table = read_lookup_table(published)
    assert [field.name for field in answers.fields] == table.rows.column_names
    assert all(len(field.description) > 10 and field.data_types for field in answers.fields)
    content = json.loads(described(published).read_text())
    units = {field["name"]: field.get("unitText") for field in content["recordSet"][0]["field"]}
    assert units["sigma"] == "clipping norms"
    assert units["delta"] is None


def test_a_column_with_several_meanings_has_all_of_them(published: Path) -> None:
    table = read_lookup_table(published)
    renamed = table.rows.set_column(
        table.rows.column_names.index("problem"),
        "problem",
        [["allocation-epsilon", "shuffling-epsilon"] * 3],
    )
    content = description(type(table)(version=table.version, rows=renamed), published.name, b"")
    (text,) = (f["description"] for f in content["recordSet"][0]["field"] if f["name"] == "adjacency")
    assert text.startswith("In allocation-epsilon: Neighbouring relation: ")
    assert ". In shuffling-epsilon: Neighbouring relation: " in text


def test_the_description_names_the_file_its_bytes_its_version_and_its_licence(published: Path) -> None:
    content = json.loads(described(published).read_text())
    (file,) = content["distribution"]
    assert file["contentUrl"] == published.name
    assert file["sha256"] == hashlib.sha256(published.read_bytes()).hexdigest()
    day, _, digest = read_lookup_table(published).version.partition("-")
    year, month, date = day.split(".")
    assert content["version"] == f"{int(year)}.{int(month)}.{int(date)}+{digest}"
    assert content["datePublished"] == day.replace(".", "-")
    assert content["license"].endswith("/Apache-2.0.html")


def test_a_description_of_another_file_than_that_of_its_columns_is_refused(
    published: Path, tmp_path: Path
) -> None:
    content = json.loads(described(published).read_text())
    content["distribution"][0]["@id"] = "elsewhere"
    (tmp_path / "croissant.json").write_text(json.dumps(content))
    with pytest.raises(mlcroissant.ValidationError, match="table"):
        mlcroissant.Dataset(str(tmp_path / "croissant.json"))


@pytest.mark.thorough
def test_the_shipped_table_has_its_description() -> None:
    (path,) = FOLDER.glob("*.parquet")
    kept = json.loads(described(path).read_text())
    assert kept == description(read_lookup_table(path), path.name, path.read_bytes())
    assert set(FOLDER.glob("lookup-*")) == {path, described(path)}


@pytest.mark.thorough
def test_another_program_loads_the_shipped_table() -> None:
    (path,) = FOLDER.glob("*.parquet")
    assert loaded(path, 300) == read(path, 300)


def test_the_description_of_a_table_with_imported_rows_says_so(tmp_path: Path) -> None:
    put(tmp_path / "store", rows(2, first=9))
    theirs = imported(tmp_path / "store", rows(1)).version
    with open_store(tmp_path / "store") as store:
        table = lookup_table(store)
    said = description(table, "table.parquet", b"")["description"]
    assert f"1 of the answers were imported and not recomputed, from the lookup table {theirs}." in said
