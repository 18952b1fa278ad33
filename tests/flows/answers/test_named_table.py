"""The table that PRIVSWEEP_TABLE names is read by its content, and never believed over a proof."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from privcore import Answer
from storage import Row
from storage.schema import origin_text
from storage.table.lookup_table import LookupTable, write_lookup_table
from storage.table.shipped import FOLDER, VARIABLE
from tests.flows.small_store import Command
from tests.storage.made_up import claimed, epsilon, imported, put, row, table_of

WORDS = ("unamplified-epsilon", "sigma=1", "delta=1e-5")
BETWEEN = ("unamplified-epsilon", "sigma=1.5", "delta=1e-5")


class Named:
    """A folder in which commands read the table that the variable names."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.monkeypatch = folder, monkeypatch
        monkeypatch.chdir(folder)
        monkeypatch.setenv("PRIVSWEEP_CACHE", str(folder / "cache"))

    def write(self, content: LookupTable, name: str = "t.parquet") -> Path:
        """Write a table into a file, and name it."""
        file = self.folder / name
        file.parent.mkdir(exist_ok=True)
        write_lookup_table(content, file)
        self.monkeypatch.setenv(VARIABLE, str(file))
        return file

    def of(self, content: Row | list[Row], name: str = "t.parquet") -> LookupTable:
        """Write the table of these rows, and name it."""
        table = table_of(self.folder / f"author of {name}", content)
        self.write(table, name)
        return table


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Named:
    return Named(tmp_path, monkeypatch)


def test_a_named_table_counts_as_imported_and_unknown_methods_are_refused(
    privsweep: Command, named: Named
) -> None:
    table = named.of(row(epsilon(sigma=1.0), Answer.enclosure(0.5, 0.50001)))
    assert privsweep.told("lookup", *WORDS)["kind"] == "enclosure, imported and not recomputed"
    assert privsweep.json["imported"] == [table.version]
    unknown = pa.array(["oracle.unknown"]).cast(table.rows.schema.field("method").type)
    place = table.rows.column_names.index("method")
    rows = table.rows.set_column(place, table.rows.schema.field(place), unknown)
    named.write(replace(table, rows=rows), "forged.parquet")
    assert privsweep("lookup", *WORDS) == 2
    assert "oracle.unknown" in privsweep.err


def test_a_named_table_is_read_by_its_content_and_not_by_its_name(privsweep: Command, named: Named) -> None:
    (shipped,) = FOLDER.glob("*.parquet")
    name = shipped.name
    for k in range(2):
        table = named.of(row(epsilon(), Answer.enclosure(0.5 + k, 0.51 + k)), f"{k}/{name}")
        assert privsweep("lookup", *WORDS, "--json") == 0
        assert (privsweep.json["lower"], privsweep.json["imported"]) == (0.5 + k, [table.version])
        assert privsweep("lookup", *WORDS) == 0
        assert f"table {table.version} that PRIVSWEEP_TABLE names" in privsweep.out
    (named.folder / "1" / name).unlink()
    assert privsweep("lookup", *WORDS) == 2
    assert name in privsweep.err


def test_a_contradiction_within_a_named_table_advises_to_unset_the_variable(
    privsweep: Command, named: Named
) -> None:
    named.of([row(epsilon(sigma=1.0), Answer.at_most(0.5)), row(epsilon(sigma=2.0), Answer.at_least(0.6))])
    assert privsweep("lookup", *BETWEEN) == 2
    assert "unset PRIVSWEEP_TABLE" in privsweep.err
    assert "table remove" not in privsweep.err


@pytest.mark.parametrize("option", [[], ["--compute"]], ids=["stored", "computed"])
def test_a_named_table_replaces_no_proof_of_the_store(
    privsweep: Command, named: Named, option: list[str]
) -> None:
    named.of(row(epsilon(sigma=1.5), Answer.enclosure(0.1, 0.1005)))
    own = [row(epsilon(sigma=s), Answer.enclosure(4 / s, 4.4 / s)) for s in (1.0, 2.0)]
    put(named.folder / "store", own)
    assert privsweep("lookup", *BETWEEN, *option) == 2
    assert "contradict each other about unamplified-epsilon: the store has [2.0, 4.4]" in privsweep.err
    assert "unset PRIVSWEEP_TABLE" in privsweep.err


def test_a_query_that_computes_by_a_named_table_ends_with_a_note_although_a_store_exists(
    privsweep: Command, named: Named
) -> None:
    fields = {"sigma": 1.0, "steps": 100, "sampling_probability": 0.01, "delta": 1e-6}
    false = Answer.enclosure(0.153, 0.1537)
    table = named.of(claimed("poisson-epsilon", "poisson.certified", false, **fields))
    imported(named.folder / "store", row(epsilon(), Answer.enclosure(4.0, 5.0)))
    given = ", ".join(f"{name} := {value!r}" for name, value in fields.items())
    query = f"select certified_epsilon(sampling := 'poisson', {given}).upper as epsilon"
    note = f"1 answer of certified_epsilon is {origin_text([table.version])}."
    for words in (("sql", query), ("export", query, "--format", "csv")):
        assert privsweep(*words) == 0
        assert "0.1537" in privsweep.out
        assert privsweep.err == f"privsweep: {note}\n"


def test_an_imported_bracket_without_amplification_gives_no_note_on_other_samplers(
    privsweep: Command, named: Named
) -> None:
    fields = {"sigma": 1.0, "steps": 100, "delta": 1e-5}
    named.of(
        claimed(
            "unamplified-epsilon", "unamplified.exact", Answer.enclosure(0.609, 0.61), sigma=1.0, delta=1e-5
        )
    )
    own = Answer.enclosure(0.619692, 0.623487)
    put(named.folder / "store", claimed("allocation-epsilon", "allocation.certified", own, **fields))
    words = [word for name, value in fields.items() for word in (f"--{name}", value)]
    assert privsweep("compare", *words, "--stored-only") == 0
    assert "imported and not recomputed" in privsweep.out
    assert "that of no amplification" not in privsweep.out
