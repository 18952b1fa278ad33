"""The ledger of a sweep: the status of each point is that of the views, and every part is read once."""

import itertools
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.runs import section
from flows.runs.ledger import Ledger
from flows.spec.box import Box
from flows.spec.grid import expand
from flows.spec.sweep import Sweep, embedded_names, load, parse
from privcore import Answer, Status, find
from storage import Store, open_store
from storage.compaction import compact
from storage.parts import parts, read_part
from storage.place.located import located
from tests.storage.made_up import Claims, epsilon, put, row

EXACT = """
[[grid]]
problem = "unamplified-epsilon"
methods = ["unamplified.exact"]
product = {sigma = [%s], delta = [1e-5]}
"""


def sweep_of(*sigmas: str) -> Sweep:
    text = 'name = "trial"' + "".join(EXACT % each for each in sigmas)
    return parse(text.encode(), "trial.toml")


def read(sweep: Sweep, root: Path) -> Ledger:
    ledger = Ledger(sweep.grids)
    with open_store(root) as store:
        ledger.read(store)
    return ledger


def of_views(sweep: Sweep, root: Path) -> Counter[str]:
    """The number of points of a sweep by the status that the views show."""
    with open_store(root) as store:
        stored = store.stored("unamplified-epsilon")
    return Counter(stored[point.id] for point in expand(sweep.grids) if point.id in stored)


def without(status: Status) -> Answer:
    return Answer.without(status, "made up")


@pytest.mark.thorough
@pytest.mark.parametrize("name", embedded_names())
def test_the_points_of_a_sweep_are_those_of_its_expansion_in_the_same_order(name: str) -> None:
    sweep = load(name)
    expected: dict[tuple[str, str], list[str]] = {}
    for point in expand(sweep.grids):
        expected.setdefault((point.problem.name, str(point.method)), []).append(point.id)
    found: dict[tuple[str, str], list[str]] = {}
    for one in Ledger(sweep.grids).sections:
        ids = [one.point(k).id for k in range(one.size) if one.codes[k] == 0]
        found.setdefault((one.box.kind.name, str(one.method)), []).extend(ids)
    assert {key: ids for key, ids in found.items() if ids} == expected


def test_a_point_of_several_grids_counts_at_its_first_occurrence() -> None:
    ledger = Ledger(sweep_of("1, 2", "2, 3", "3, 1, 4").grids)
    assert ledger.total == 4
    assert [one.codes.tolist() for one in ledger.sections] == [[0, 0], [255, 0], [255, 255, 0]]


@pytest.mark.parametrize(
    ("sigmas", "total"), [([f"{1 + i / 8}" for i in range(400)], 400), (["1, 2"] * 400, 2)]
)
def test_a_grid_is_compared_with_few_others(
    sigmas: list[str], total: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    met: list[Box] = []
    real = Box.meets

    def counted(box: Box, other: Box) -> bool:
        met.append(box)
        return real(box, other)

    monkeypatch.setattr(Box, "meets", counted)
    ledger = Ledger(sweep_of(*sigmas).grids)
    assert ledger.total == total
    assert len(met) <= 400


def test_grids_meet_in_axes_of_many_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(section, "FEW", 2)
    for sigmas in itertools.permutations(["1, 2", "2, 3, 4, 5", "5", "3, 1", "7, 8, 9"]):
        assert Ledger(sweep_of(*sigmas).grids).total == 8


def test_rows_of_other_points_methods_versions_and_options_do_not_count(tmp_path: Path) -> None:
    class Newer(type(find("unamplified.exact")())):  # type: ignore[misc]  # the class of the registry
        version = 99

    put(tmp_path, [row(epsilon(sigma=9)), row(epsilon(delta=1e-6)), row(epsilon(steps=2))])
    put(tmp_path, [row(epsilon(), method=Claims(number=3)), row(epsilon(), method=Newer())])
    ledger = read(sweep_of("1, 2"), tmp_path)
    assert (ledger.counts(), ledger.parts) == (Counter(), set())
    made = put(tmp_path, row(epsilon()))
    ledger = read(sweep_of("1, 2"), tmp_path)
    assert ledger.counts() == {"ok": 1}
    assert ledger.parts == {f"{made.parent.name}/{made.name}"}


STATUSES = [
    Status.FAILED,
    Status.TIMEOUT,
    Status.OUT_OF_MEMORY,
    Status.CRASHED,
    Status.OK,
    Status.NOT_APPLICABLE,
]


@pytest.mark.parametrize("merge", [False, True], ids=["in several parts", "in one part"])
def test_of_several_rows_of_a_point_the_one_counts_that_the_views_show(tmp_path: Path, merge: bool) -> None:
    """Every pair of statuses in both orders of time, and triples of failures."""
    sigma = 1.0
    for first in STATUSES:
        for second in STATUSES:
            put(tmp_path, row(epsilon(sigma=sigma), without(first), seconds_later=5.0))
            put(tmp_path, row(epsilon(sigma=sigma), without(second), seconds_later=3.0))
            if first in STATUSES[:3] and second in STATUSES[:3]:
                put(tmp_path, row(epsilon(sigma=sigma), without(Status.TIMEOUT), seconds_later=4.0))
            sigma += 1.0
    if merge:
        compact(located(tmp_path))
    sweep = sweep_of(", ".join(str(float(k)) for k in range(1, int(sigma))))
    assert read(sweep, tmp_path).counts() == of_views(sweep, tmp_path)


def test_a_status_of_a_later_release_counts_as_a_failure(tmp_path: Path) -> None:
    import pyarrow as pa

    from storage import publish

    put(tmp_path, row(epsilon()))
    (part,) = parts(located(tmp_path))
    table = read_part(located(tmp_path), part)
    words = pa.array(["postponed"]).dictionary_encode()
    publish(
        located(tmp_path),
        table.set_column(table.column_names.index("status"), table.schema.field("status"), words),
    )
    part.unlink()
    assert read(sweep_of("1, 2"), tmp_path).counts() == {"postponed": 1}


def counting(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the parts that are read from now on."""
    import storage.manifest

    seen: list[str] = []
    real: Callable[..., object] = storage.manifest.read_points

    def counted(place: object, path: Path, kind: object) -> object:
        seen.append(path.name)
        return real(place, path, kind)

    monkeypatch.setattr(storage.manifest, "read_points", counted)
    return seen


def test_a_part_is_read_once_and_all_are_read_again_when_one_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = put(tmp_path, row(epsilon()))
    ledger = Ledger(sweep_of("1, 2, 3").grids)
    with open_store(tmp_path) as store:
        seen = counting(store, monkeypatch)
        ledger.read(store)
        second = put(tmp_path, row(epsilon(sigma=2.0), without(Status.TIMEOUT)))
        assert ledger.unread(store) == {f"{second.parent.name}/{second.name}"}
        ledger.read(store)
        assert seen == [first.name, second.name]
        assert ledger.counts() == {"ok": 1, "timeout": 1}
        second.unlink()
        assert ledger.unread(store) is None
        ledger.read(store)
        assert seen == [first.name, second.name, first.name]
        assert ledger.counts() == {"ok": 1}


def test_a_row_whose_id_is_not_that_of_its_fields_does_not_count(tmp_path: Path) -> None:
    import pyarrow as pa

    from storage import publish, to_table

    table = to_table([row(epsilon()), row(epsilon(sigma=2.0))])
    ids = pa.array(["0" * 32, table["point_id"][1].as_py()])
    publish(located(tmp_path), table.set_column(0, table.schema.field("point_id"), ids))
    assert read(sweep_of("1, 2"), tmp_path).counts() == {"ok": 1}
