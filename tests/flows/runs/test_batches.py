"""The batches of a plan: every new point once, neighbours in state, of a size that suits the workers."""

import pickle
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.runs import section
from flows.runs.batches import Batches, Group, grouped
from flows.runs.ledger import Ledger
from flows.spec.grid import Axis, Grid, expand
from privcore import Answer, Cost, Direction, Method, Problem, find, find_problem
from privcore.parameter import Real
from tasks.batch import LONGEST, MOST_POINTS, SHORTEST
from tasks.guard import Limits

EPSILON = find_problem("unamplified-epsilon")
_SECONDS = Real(name="seconds", symbol="", lower=0, upper=1e9, typical=(1.0,), meaning="Estimated seconds")


class Sharing(Method):
    """Costs the value of its setting, and shares state among points of one sigma and one number of epochs."""

    name: ClassVar[str] = "test.sharing"
    problems: ClassVar[tuple[type[Problem], ...]] = (EPSILON,)
    direction: ClassVar[Direction] = Direction.ESTIMATE
    reference: ClassVar[str] = "none"
    shares: ClassVar[tuple[str, ...]] = ("sigma", "epochs")
    seconds: Annotated[float, _SECONDS] = 1.0

    def cost(self, problem: Problem) -> Cost:
        return Cost(seconds=self.seconds, bytes=1e6)

    def answer(self, problem: Problem, seed: int) -> Answer:
        raise NotImplementedError


class Growing(Sharing):
    """Costs and takes more for larger noise, and no point shares anything."""

    name: ClassVar[str] = "test.growing"
    shares: ClassVar[tuple[str, ...]] = ()

    def cost(self, problem: Any) -> Cost:
        return Cost(seconds=self.seconds * problem.sigma, bytes=1e6 * problem.sigma)


def grid(*methods: Method, **axes: Sequence[float]) -> Grid:
    """A grid whose first axis is the slowest."""
    parameters = EPSILON.parameters
    product = {
        name: Axis(
            parameter=parameters[name], rule="list", numbers=tuple(map(parameters[name].check, values))
        )
        for name, values in axes.items()
    }
    return Grid(problem=EPSILON, methods=methods, product=product)


def sigmas_and_deltas(sigmas: int, deltas: int, *methods: Method) -> Grid:
    """Deltas vary slowest, so that points of one sigma are far apart."""
    return grid(*methods, delta=[1e-9 * (1 + d) for d in range(deltas)], sigma=[1 + s for s in range(sigmas)])


def groups(*grids: Grid, limits: Limits | None = None) -> list[Group]:
    return grouped(Ledger(grids), frozenset(), limits or Limits())


@given(
    sigmas=st.integers(1, 12),
    deltas=st.integers(1, 12),
    seconds=st.floats(0, 40),
    workers=st.integers(1, 64),
)
def test_every_point_is_in_one_batch_and_the_same_points_give_the_same_batches(
    sigmas: int, deltas: int, seconds: float, workers: int
) -> None:
    exact = find("unamplified.exact")()
    grids = [
        sigmas_and_deltas(sigmas, deltas, Sharing(seconds=seconds), exact),
        grid(exact, delta=[1e-9, 1e-3], sigma=[1, 0.5], steps=[1, 2]),
    ]
    batches = Batches(groups(*grids), workers)
    ids = [point.id for batch in batches for point in batch.points()]
    assert sorted(ids) == sorted(point.id for point in expand(grids))
    assert list(batches) == list(Batches(groups(*grids), workers))
    assert [len(batch) for batch in batches] == batches.points.tolist()
    assert all(batch.seconds <= max(2 * LONGEST + seconds, seconds) for batch in batches)
    first, *others = [b.seconds for b in batches]
    assert [*others, first] == sorted((b.seconds for b in batches), reverse=True)


def test_points_that_share_nothing_stay_in_the_order_of_the_grid() -> None:
    whole = sigmas_and_deltas(7, 5, find("unamplified.exact")())
    (batch,) = Batches(groups(whole), workers=1)
    assert [p.id for p in batch.points()] == [p.id for p in expand([whole])]


def test_points_that_share_state_are_neighbours_and_seldom_parted() -> None:
    batches = Batches(groups(sigmas_and_deltas(8, 10, Sharing(seconds=0.5))), workers=1)
    sigmas = [[p.problem.as_fields()["sigma"] for p in b.points()] for b in batches]
    assert all(row == sorted(row) for row in sigmas)
    assert sum(len(set(row)) for row in sigmas) == 8, "no state is computed twice"


def test_one_and_a_hundred_thousand_trivial_points_make_few_but_enough_batches() -> None:
    exact = find("unamplified.exact")()
    whole = grid(exact, sigma=[1 + i * 1e-3 for i in range(1000)], delta=[1e-9 * (1 + d) for d in range(100)])
    batches = Batches(groups(whole), workers=2)
    assert 8 <= len(batches) <= 200
    assert batches.points.sum() == 100_000
    assert batches.points.max() <= MOST_POINTS
    assert len(pickle.dumps(batches[0])) < 60 * len(batches[0])


def test_short_work_is_not_cut_finer_than_a_second() -> None:
    batches = Batches(groups(sigmas_and_deltas(30, 1, Sharing(seconds=0.125))), workers=16)
    assert [batch.seconds for batch in batches] == [0.75] + [SHORTEST] * 3


def test_points_beyond_their_limits_cost_nothing_and_are_counted() -> None:
    (whole,) = groups(sigmas_and_deltas(3, 2, Sharing(seconds=1e6)), limits=Limits(point_seconds=300))
    assert (whole.beyond, whole.seconds, whole.bytes) == (6, 0.0, 0.0)


@pytest.mark.parametrize("each", [1, section.EACH])
def test_drawn_points_price_a_sweep_nearly_as_all_points_do(
    each: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(section, "EACH", each)
    limits = Limits(point_seconds=0.05)
    whole = sigmas_and_deltas(60, 100, Growing(seconds=1e-3))
    (found,) = groups(whole, limits=limits)
    started = [float(s) for s in range(1, 51)]
    assert found.points == 6000
    assert found.seconds == pytest.approx(100 * sum(started) * 1e-3, rel=0.05 if each == 1 else 1e-9)
    assert found.beyond == pytest.approx(1000, rel=0.2 if each == 1 else 1e-9)
    assert found.bytes == pytest.approx(50e6, rel=0.05)
    batches = Batches([found], workers=2)
    assert batches.seconds.sum() == pytest.approx(found.seconds)
    assert sorted(p.id for b in batches for p in b.points()) == sorted(p.id for p in expand([whole]))


def peak() -> int:
    """The most memory that this process had, in bytes."""
    (line,) = re.findall(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    return int(line) * 1024


def ten_million_points() -> None:
    """Print the numbers of stored points, batches and points of a sweep, and the memory that they needed."""
    million = [1 + i * 1e-4 for i in range(10_000)]
    whole = grid(
        Sharing(seconds=0.0), sigma=million, delta=[1e-9 * (1 + d) for d in range(100)], steps=range(1, 11)
    )
    before = peak()
    ledger = Ledger([whole])
    batches = Batches(grouped(ledger, frozenset(), Limits()), workers=2)
    print(ledger.counts().total(), len(batches), batches.points.sum(), peak() - before)


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="/proc has the memory")
def test_what_a_large_sweep_needs_of_the_driver_does_not_grow_with_its_points(repository: Path) -> None:
    """Ten million points: their codes, and the bounds of their batches; integers would be 80 MB."""
    code = "from tests.flows.runs.test_batches import ten_million_points; ten_million_points()"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=repository, check=True, capture_output=True, text=True
    )
    stored, batches, points, memory = map(int, done.stdout.split())
    assert (stored, batches, points) == (0, 1000, 10_000_000)
    assert memory < 10_000_000 + 40e6
