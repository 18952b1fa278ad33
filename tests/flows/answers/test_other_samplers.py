"""Without --sampling, epsilon prints the sampler of its number, and the numbers of two others."""

from pathlib import Path
from typing import Any

import pytest

from tests.flows.small_store import Command, point, store_of

pytestmark = pytest.mark.sampled(4)

RUN = ("--sigma", 1.1, "--steps", 100, "--delta", 1e-5)


@pytest.fixture
def privsweep(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.chdir(tmp_path)
    return Command(capsys)


def others(privsweep: Command, *words: object) -> dict[str, Any]:
    assert privsweep("epsilon", *words, "--json") == 0, privsweep.err
    found: dict[str, Any] = privsweep.json["sampling"]["others"]
    return found


@pytest.mark.parametrize(
    "words",
    [
        RUN,
        (*RUN, "--epochs", 3),
        ("--sigma", 2, "--delta", 1e-6, "--examples", 1000, "--batch-size", 30),
        (*RUN, "--adjacency", "remove"),
    ],
)
def test_the_numbers_of_other_samplers_are_those_of_compare(
    privsweep: Command, words: tuple[object, ...]
) -> None:
    found = others(privsweep, *words)
    assert privsweep("compare", *words, "--json") == 0
    rows = {row["sampling"]: row for row in privsweep.json["rows"]}
    assert found.keys() == {"poisson", "shuffling"}
    for name, other in found.items():
        assert other == {key: rows[name][key] for key in ("problem", "fields", "status", "lower", "upper")}


def test_the_line_says_what_the_number_is_for(privsweep: Command) -> None:
    found = others(privsweep, *RUN)
    assert privsweep("epsilon", *RUN) == 0
    line = privsweep.out.splitlines()[-1]
    assert line.startswith(
        "sampling   random allocation (not given): each example in 1 random step of every epoch; "
        "with Poisson sampling ["
    )
    assert line.endswith("]: --sampling says which")
    for name, title in (("poisson", "Poisson sampling"), ("shuffling", "shuffled batches")):
        low, high = line.partition(f"{title} [")[2].partition("]")[0].split(", ")
        assert float(low) <= found[name]["lower"] <= found[name]["upper"] <= float(high)


@pytest.mark.thorough
def test_shuffling_is_not_named_for_several_participations(privsweep: Command) -> None:
    assert others(privsweep, *RUN, "--participations", 2).keys() == {"poisson"}
    assert privsweep("epsilon", *RUN, "--participations", 2) == 0
    assert "each example in 2 random steps of every epoch" in privsweep.out
    assert "shuffled" not in privsweep.out


def test_who_said_how_examples_are_sampled_gets_one_answer(privsweep: Command, tmp_path: Path) -> None:
    stored = point("allocation-epsilon", "allocation.certified", sigma=1.1, steps=100, delta=1e-5)
    store = store_of(tmp_path / "small", [stored])
    for words in (
        ("--sampling", "allocation"),
        ("--method", "allocation.certified"),
        ("--stored-only", "--store", store),
    ):
        assert privsweep("epsilon", *RUN, *words, "--json") == 0
        assert "sampling" not in privsweep.json
        assert privsweep("epsilon", *RUN, *words) == 0
        assert "sampling   " not in privsweep.out
    assert others(privsweep, *RUN, "--store", store).keys() == {"poisson", "shuffling"}
    assert privsweep.json["source"] == "store"


def test_a_sampler_that_may_take_too_long_is_unknown(
    privsweep: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flows.answers.other_samplers.LIMIT_SECONDS", 0.0)
    assert others(privsweep, *RUN)["poisson"]["status"] == "timeout"
    assert privsweep("epsilon", *RUN) == 0
    assert "with Poisson sampling unknown, shuffled batches unknown: --sampling says which" in privsweep.out
