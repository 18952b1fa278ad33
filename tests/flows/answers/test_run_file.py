"""Runs of phases from files and from one line, and the samplers of the command line."""

from pathlib import Path
from typing import Any

import pytest

from flows.answers.parse import SAMPLING
from flows.answers.question import question, run_question, typed
from privcore import DomainError, PrivsweepError, find_problem

RUN = """
adjacency = "zero-out"
delta = 1e-6
examples = 60000

[[phase]]
sampling = "shuffling"
sigma = 2
batch_size = 256
epochs = 2
redraw = "each-epoch"

[[phase]]
sampling = "poisson"
sigma = 1.1
sampling_probability = 0.01
steps = 30
"""


def written(folder: Path, text: str) -> str:
    path = folder / "run.toml"
    path.write_text(text)
    return str(path)


def test_a_file_lists_phases_with_their_own_sampling_and_noise(tmp_path: Path) -> None:
    fields = run_question(written(tmp_path, RUN), {})
    assert fields == {
        "adjacency": "zero-out",
        "delta": 1e-6,
        "phases": "shuffling(sigma=2,steps=234,epochs=2,redraw=each-epoch,batch=256,kept=0.0016); "
        "poisson(sigma=1.1,sampling_probability=0.01,steps=30)",
    }
    find_problem("run-epsilon").from_fields(fields)


def test_a_phase_may_drop_the_last_batch(tmp_path: Path) -> None:
    sized = RUN.replace("batch_size = 256", "batch_size = 256\ndrop_last = true")
    phase = "shuffling(sigma=2,steps=234,epochs=2,redraw=each-epoch,dropped=0.0016)"
    assert run_question(written(tmp_path, sized), {})["phases"].split("; ")[0] == phase
    line = "shuffling(sigma=2,examples=60000,batch_size=256,drop_last=true,epochs=2,redraw=each-epoch)"
    fields = run_question(line, {"delta": 1e-5, "adjacency": "add-remove"})
    assert find_problem("run-epsilon").from_fields(fields).as_fields()["phases"] == phase
    with pytest.raises(DomainError, match="Phase 1: Expected drop_last true or false, got 'yes'"):
        run_question(written(tmp_path, sized.replace("true", '"yes"')), {})


def test_options_replace_what_the_file_says(tmp_path: Path) -> None:
    fields = run_question(written(tmp_path, RUN), {"delta": 1e-5, "adjacency": "replace-one"})
    assert (fields["delta"], fields["adjacency"]) == (1e-5, "replace-one")


def test_a_run_is_also_one_line_of_text() -> None:
    fields = run_question("none(sigma=1,steps=3)", {"delta": 1e-5, "adjacency": "add-remove"})
    assert fields["phases"] == "none(sigma=1,steps=3)"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("adjacency", "# adjacency"), "Expected adjacency"),
        (
            ('sampling = "poisson"', 'sampling = "poison"'),
            "Phase 2: Unknown sampling poison. Did you mean",
        ),
        (("sigma = 1.1", "sigma = -1"), "Phase 2: Expected sigma"),
        (("sigma = 1.1", "sigma = 1.1\nseed = 3"), "Phase 2: Unknown field of poisson seed"),
        (("steps = 30", "batch_size = 7"), "Phase 2: Expected sampling_probability or batch_size, got both"),
        (("delta = 1e-6", "detla = 1e-6"), "Unknown key of a run detla. Did you mean delta?"),
        (('redraw = "each-epoch"', ""), "Phase 1: Expected redraw for shuffling"),
        (("[[phase]]", "[phase]"), "Cannot read the run|at least one table"),
        (("delta = 1e-6", "delta = = 1"), "Cannot read the run"),
    ],
)
def test_a_mistake_in_a_file_is_one_sentence(tmp_path: Path, change: tuple[str, str], words: str) -> None:
    with pytest.raises(PrivsweepError, match=words):
        run_question(written(tmp_path, RUN.replace(*change)), {})


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DomainError, match=r"Cannot read the run .*missing\.toml: No such file"):
        run_question(str(tmp_path / "missing.toml"), {})


GIVEN: dict[str, str | None] = {"sigma": "1", "delta": "1e-5"}
SIZES = {"examples": "60000", "batch_size": "256"}


def test_every_sampling_takes_examples_batch_size_and_epochs() -> None:
    further = {
        "balls-in-bins": {"redraw": "once"},
        "shuffling": {"redraw": "once", "adjacency": "zero-out"},
        "truncated-poisson": {"largest_batch": "300", "adjacency": "zero-out"},
        "fixed-size": {"adjacency": "zero-out"},
        "with-replacement": {"adjacency": "zero-out"},
    }
    for sampling in SAMPLING:
        options = GIVEN | {"epochs": "3"} | further.get(sampling, {})
        problem = question(typed({"sampling": sampling, **options, **SIZES})).problem
        assert problem.as_fields()["steps"] in (234, 235), sampling
        assert problem.as_fields()["epochs"] == 3, sampling


@pytest.mark.parametrize("sampling", ["shuffling", "fixed-size", "with-replacement", "truncated-poisson"])
def test_a_relation_that_changes_the_answer_is_not_guessed(sampling: str) -> None:
    options = GIVEN | ({"largest_batch": "300"} if sampling == "truncated-poisson" else {})
    with pytest.raises(DomainError, match="Expected --adjacency with sampling"):
        question(typed({"sampling": sampling, **options, **SIZES}))


@pytest.mark.parametrize("sampling", ["balls-in-bins", "shuffling"])
def test_a_redraw_that_changes_the_answer_is_not_guessed(sampling: str) -> None:
    options: dict[str, Any] = GIVEN | {"epochs": "3", "steps": "10", "adjacency": "zero-out"}
    with pytest.raises(DomainError, match="Expected --redraw once or each-epoch"):
        question(typed({"sampling": sampling, **options}))
    one_epoch = GIVEN | {"steps": "10", "adjacency": "zero-out"}
    assert question(typed({"sampling": sampling, **one_epoch})).problem.as_fields()["epochs"] == 1
