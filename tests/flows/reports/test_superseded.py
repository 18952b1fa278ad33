"""Answers of older versions of a method: reports and lookups rely on none of them."""

import shlex
from pathlib import Path

import pytest

from privcore import Answer, find, stored_names
from storage.table.lookup_table import write_lookup_table
from tests.flows.reports.made_up_labels import ADVANTAGE, RELEASED, RESPONDED
from tests.flows.small_store import Command
from tests.storage.made_up import claimed, put_each, table_of


def test_an_interval_of_an_older_version_is_imported_with_a_note_and_answers_nothing(
    privsweep: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = find("labels.sampling")
    likely = Answer.enclosure(1.3, 1.4, confidence=0.999)
    with monkeypatch.context() as earlier:
        earlier.setattr(method, "version", method.version - 1)
        earlier.setitem(stored_names.VERSIONS, method.name, method.version)
        theirs = claimed("label-ratio-quantile", method.name, likely, **RELEASED, level=0.9)
        write_lookup_table(table_of(Path("author"), theirs), Path("theirs.parquet"))
    put_each(Path("store"), [*RESPONDED, ADVANTAGE])
    assert privsweep("table", "import", "theirs.parquet") == 0
    assert "1 drawn row was not recomputed: label-ratio-quantile, labels.sampling" in privsweep.err
    assert f"an interval of version {method.version - 1} of the method" in privsweep.err
    assert privsweep("report", "compare-labels", "--out", "out", "--format", "md") == 1
    assert "1.3" not in Path("out/compare-labels.md").read_text()
    fields = [f"{name}={value}" for name, value in {**RELEASED, "level": 0.9}.items()]
    assert privsweep("lookup", "label-ratio-quantile", *fields) == 3
    assert "1.3" not in privsweep.err
    newer = Answer.enclosure(1.1, 1.9, confidence=0.999)
    put_each(Path("store"), [claimed("label-ratio-quantile", method.name, newer, **RELEASED, level=0.9)])
    assert privsweep("lookup", "label-ratio-quantile", *fields) == 3
    assert "1 stored interval with" in privsweep.err
    command = privsweep.err.partition("to print them: `")[2].partition("`")[0]
    assert privsweep(*shlex.split(command)[1:]) == 0
    assert "1.9" in privsweep.out
    assert "1.3" not in privsweep.out


def test_a_bracket_of_an_older_version_hides_no_proof_in_a_comparison(
    privsweep: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = find("membership.sharp")
    fields = {"claimed_epsilon": 1.0, "claimed_delta": 1e-5}
    kind = "membership-private-advantage"
    own = [
        claimed(kind, "membership.sharp", Answer.at_most(0.245), **fields),
        claimed(kind, "membership.published", Answer.at_most(0.4), **fields),
    ]
    put_each(Path("store"), own)
    with monkeypatch.context() as earlier:
        earlier.setattr(method, "version", method.version - 1)
        put_each(Path("store"), [claimed(kind, method.name, Answer.at_most(0.06), **fields)])
    assert privsweep("report", "compare-membership", "--out", "out", "--format", "md") == 0
    text = Path("out/compare-membership.md").read_text()
    assert "0.245" in text.partition("## How to read")[0]
    assert "0.06" not in text.partition("## Origin")[0]
