"""The same points give the same bits, for any number of workers and of interruptions."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from flows.runs.batches import Batches, grouped
from flows.runs.ledger import Ledger
from flows.spec.sweep import parse
from storage import open_store
from storage.parts import parts
from storage.place.located import located
from tasks import engine
from tasks.work import Job
from tests.faults.children import run, value_of
from tests.faults.sweeps import content, sweep, sweep_past_a_part
from tests.faults.tally import Tally

REAL = """
name = "real"
[[grid]]
problem = "unamplified-epsilon"
methods = ["unamplified.exact"]
product = {sigma = {geometric = [0.3, 30, 8]}, delta = [1e-10, 1e-5], epochs = [1, 3]}
[[grid]]
problem = "allocation-epsilon"
methods = ["allocation.certified", "allocation.decomposition"]
product = {sigma = [0.7, 1.3], steps = [10, 1000], delta = [1e-8, 1e-5]}
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, set[str]]:
    """Hash and ids of the answers of one worker without interruptions."""
    root = tmp_path_factory.mktemp("one") / "store"
    value_of(sweep, root, REAL)
    with open_store(root) as store:
        shown = store.sql("select point_id from results")["point_id"].to_pylist()
    return content(root), set(shown)


def shuffled_sweep(root: Path, workers: int, seed: int) -> int:
    """Compute the sweep in another order, in batches for `workers` workers; return the number of batches."""
    asked = parse(REAL.encode(), "real.toml")
    import tasks.batch

    tasks.batch.SHORTEST = 1e-9
    batches = []
    for batch in Batches(grouped(Ledger(asked.grids), frozenset(), asked.limits), workers):
        fields = list(batch.fields)
        random.Random(seed).shuffle(fields)
        batches.append(replace(batch, fields=fields))
    random.Random(seed).shuffle(batches)
    job = Job(sweep="real", limits=asked.limits)
    return len([done for done in engine.run_serially(batches, job, located(root)) if done.part])


@pytest.mark.thorough
@pytest.mark.parametrize("workers", [1, 2, 16])
def test_answers_do_not_depend_on_the_number_of_workers_or_the_order(
    faults: Tally, root: Path, answers: tuple[str, set[str]], workers: int
) -> None:
    """T28: batches cut for 1, 2 and 16 workers, in shuffled order, through the guard of a real worker."""
    with faults.trial():
        batches = value_of(shuffled_sweep, root, workers, workers)
        assert batches >= {1: 3, 2: 4, 16: 12}[workers]
        faults.compare(root, answers[1])
        assert content(root) == answers[0]


@pytest.mark.thorough
def test_answers_do_not_depend_on_how_often_a_run_is_resumed(
    faults: Tally, root: Path, answers: tuple[str, set[str]]
) -> None:
    """T28: killed and resumed three times."""
    sizes = [0]
    for _ in range(3):
        with faults.trial():
            assert run(sweep_past_a_part, REAL, root).killed
            sizes.append(len(parts(located(root))))
    assert sizes == [0, 1, 2, 3], "every time it came one part further"
    with faults.recovery():
        assert value_of(sweep, root, REAL) > 0
    faults.compare(root, answers[1])
    assert content(root) == answers[0]


@pytest.mark.thorough
@pytest.mark.soak
@pytest.mark.xdist_group("ray")
@pytest.mark.parametrize("workers", [1, 2, 16])
def test_answers_of_ray_are_those_of_one_process(
    faults: Tally, root: Path, answers: tuple[str, set[str]], workers: int
) -> None:
    """T28: 1, 2 and 16 workers of Ray."""
    asked = parse(REAL.encode(), "real.toml")
    batches = Batches(grouped(Ledger(asked.grids), frozenset(), asked.limits), workers)
    job = Job(sweep="real", limits=asked.limits)
    with faults.trial():
        list(engine.Engine(name="ray", workers=workers).outcomes(batches, job, located(root)))
        faults.compare(root, answers[1])
        assert content(root) == answers[0]
