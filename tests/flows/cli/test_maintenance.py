"""Keeping a store sound: in this process where many repairs are tried, and once by the command line."""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import pytest

import flows.runs.run
import tasks.batch
import tasks.engine
from flows.cli import app
from flows.cli.app import run as command_line
from flows.runs.repair import NAME, Repair, repair, sweep_of
from flows.spec.sweep import parse
from privcore import Answer, Point, Status, find, find_problem
from privcore.point import evaluate
from storage import Row, open_store, publish, to_table, write_manifest
from storage.compaction import compact
from storage.parts import parts
from storage.place.located import located
from tasks.batch import Batch
from tasks.guard import Limits, Measured
from tests.flows.small_store import Command
from tests.storage.contents import kill_at, row_hashes, steps_of
from tests.storage.made_up import epsilon, put, read_rows, row, rows

pytestmark = [pytest.mark.sampled(7), pytest.mark.xdist_group("maintenance")]

TABLES = {"table publish", "table import", "table remove"}
CHANGING = {"plan", "figures", "run", "verify", "repair", "compact", "gc"} | TABLES
"""Commands with --store that must not read around damage: they would act on half of the rows."""

Run = Callable[..., tuple[int, str, str]]

SWEEP = """
name = "mended"
[[grid]]
problem = "unamplified-epsilon"
methods = ["unamplified.exact"]
product = {sigma = [0.5, 1, 1.5, 2, 3, 5], delta = [1e-8, 1e-5]}
"""
OTHER = SWEEP.replace("mended", "other").replace("[0.5, 1, 1.5, 2, 3, 5]", "[2, 3, 5, 8]")
QUERY = "select sigma, delta, lower, upper, status from results order by all"


class Here:
    """Evaluates points in this very process, so that a hundred repairs are cheap."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def results(self, batch: Batch, *, last: bool = True) -> Iterator[Measured]:
        for point in batch.points():
            yield Measured(
                answer=evaluate(point), seconds=1e-3, cpu_seconds=1e-3, finished_at=datetime.now(UTC)
            )


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """No child; batches of four points."""
    monkeypatch.setattr(tasks.engine, "Guard", Here)
    monkeypatch.setattr(tasks.batch, "MOST_POINTS", 4)


SERIAL = tasks.engine.Engine(name="serial", workers=1)


def run(store: Path, text: str = SWEEP) -> flows.runs.run.RunReport:
    opened = open_store(store, missing_ok=True)
    return flows.runs.run.run(parse(text.encode(), "sweep.toml"), opened, engine=SERIAL)


def mend(store: Path, *, dry_run: bool = False) -> Repair:
    return repair(
        open_store(store, missing_ok=True),
        engine=SERIAL,
        dry_run=dry_run,
    )


def damage(part: Path, *, truncate: bool = False) -> None:
    """Change a byte that belongs to no field of a problem, or cut the end off."""
    content = bytearray(part.read_bytes())
    content[40] ^= 1
    part.write_bytes(content[:-20] if truncate else content)


def answers(store: Path) -> list[dict[str, Any]]:
    with open_store(store) as opened:
        found: list[dict[str, Any]] = opened.sql(QUERY).to_pylist()
    return found


def values(store: Path) -> set[tuple[Any, ...]]:
    """The answers without building a snapshot."""
    tables = [
        read_rows(path).select(["point_id", "lower", "upper", "status"]) for path in parts(located(store))
    ]
    return {tuple(row.values()) for table in tables for row in table.to_pylist()}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Two sweeps that share points, in four parts."""
    store = tmp_path / "store"
    run(store)
    run(store, OTHER)
    assert len(parts(located(store))) == 4
    return store


@pytest.mark.thorough
@pytest.mark.parametrize("truncate", [False, True], ids=["flipped", "truncated"])
def test_a_damaged_part_is_set_aside_and_exactly_its_points_are_computed_again(
    store: Path, truncate: bool
) -> None:
    before, rows = answers(store), row_hashes(store)
    victim = parts(located(store))[1]
    held = row_hashes(store) - row_hashes_without(store, victim)
    damage(victim, truncate=truncate)
    done = mend(store)
    assert done.moved == [str(victim.relative_to(store))]
    assert done.lost == sum(report.computed for report in done.reports) == sum(held.values())
    assert done.hopeless == []
    assert done.quarantine is not None
    assert (done.quarantine / victim.relative_to(store)).exists()
    assert answers(store) == before
    assert set(rows - held) <= set(row_hashes(store)), "the other rows are those of before"
    with open_store(store) as opened:
        assert opened.verify() == []
        assert {m.status for m in opened.manifests()} == {"complete"}
    assert mend(store).nothing


def row_hashes_without(store: Path, part: Path) -> Any:
    """The rows of all parts but one."""
    aside = part.rename(store / "aside")
    rows = row_hashes(store)
    aside.rename(part)
    return rows


def test_a_missing_part_is_computed_again(store: Path) -> None:
    before = answers(store)
    victim = parts(located(store))[0]
    lost = len(read_rows(victim))
    victim.unlink()
    assert mend(store, dry_run=True).lost == lost
    assert mend(store).lost == lost
    assert answers(store) == before


def test_a_dry_run_changes_nothing(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damage(parts(located(store))[0])
    assert steps_of(monkeypatch, lambda: mend(store, dry_run=True)) == []


def test_a_sound_store_needs_no_repair(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert steps_of(monkeypatch, lambda: mend(store)) == []
    assert mend(store).nothing


def test_a_damaged_part_of_a_compacted_store_is_computed_again(store: Path) -> None:
    before = answers(store)
    compact(located(store))
    (part,) = parts(located(store))
    damage(part, truncate=True)
    assert mend(store).lost == len(before)
    assert answers(store) == before
    assert open_store(store).verify() == []


def test_a_damaged_manifest_is_set_aside_and_no_row_is_touched(store: Path) -> None:
    rows = row_hashes(store)
    path = next((store / "sweeps").iterdir())
    path.write_text("{")
    done = mend(store)
    assert (done.moved, done.lost) == ([f"sweeps/{path.name}"], 0)
    (sentence,) = done.hopeless
    assert sentence.startswith(f"sweeps/{path.name} is damaged")
    assert sentence.endswith("run that sweep again.")
    assert row_hashes(store) == rows
    assert open_store(store).verify() == []


def orphan(store: Path) -> Path:
    """A part outside of all manifests, as a killed run leaves it, with points outside of all sweeps."""
    points = [
        Point(
            problem=find_problem("unamplified-epsilon").from_fields({"sigma": sigma, "delta": 1e-5}),
            method=find("unamplified.exact")(),
        )
        for sigma in (21.0, 22.0, 23.0)
    ]
    now = datetime.now(UTC)
    rows = [
        Row(
            point=p,
            answer=evaluate(p),
            seconds=1.0,
            cpu_seconds=1.0,
            attempt=1,
            finished_at=now,
            sweep="gone",
        )
        for p in points
    ]
    return publish(located(store), to_table(rows))


@pytest.mark.thorough
def test_points_that_no_sweep_asks_for_are_read_out_of_the_damaged_part(store: Path) -> None:
    part = orphan(store)
    before = answers(store)
    damage_an_answer(part)
    done = mend(store)
    assert (done.lost, done.hopeless) == (3, [])
    assert answers(store) == before
    with open_store(store) as opened:
        assert opened.verify() == []
        (own,) = (m for m in opened.manifests() if m.name.startswith(NAME))
    assert (own.status, own.counts) == ("complete", {"ok": 3, "missing": 0})


def damage_an_answer(part: Path) -> None:
    """Flip the first bit that leaves the fields of all rows readable."""
    from storage.verify import told_points

    content = part.read_bytes()
    for place in range(len(content) // 2, len(content)):
        part.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        if told_points(part)[1]:
            return
    raise AssertionError("every byte matters")


def test_what_cannot_be_recomputed_is_said_by_name(store: Path) -> None:
    part = orphan(store)
    before = len(answers(store))
    damage(part, truncate=True)
    done = mend(store)
    name = part.relative_to(store)
    assert done.hopeless == [f"{name} cannot be computed again: no record of its points is left."]
    assert done.moved == [str(name)]
    assert len(answers(store)) == before - 3


@pytest.mark.sampled(1)
def test_a_sweep_that_was_not_finished_stays_so(store: Path) -> None:
    with open_store(store) as opened:
        sweep = next(m for m in opened.manifests() if m.name == "other")
    victim = next(p for p in parts(located(store)) if set(read_rows(p)["sweep"].to_pylist()) == {"other"})
    write_manifest(
        located(store), replace(sweep, status="incomplete", parts=(f"{victim.parent.name}/{victim.name}",))
    )
    lost = len(read_rows(victim))
    damage(victim, truncate=True)
    done = mend(store)
    assert (done.lost, [s.name for s in done.recorded]) == (0, ["other"])
    assert len(done.hopeless) == 1
    assert done.hopeless[0].endswith("sweep other, which was not finished: run it again.")
    with open_store(store) as opened:
        assert opened.verify() == []
        again = next(m for m in opened.manifests() if m.name == "other")
    assert (again.status, again.counts["missing"]) == ("incomplete", lost)
    assert run(store, OTHER).computed == lost


@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.soak)])
def test_killed_at_any_step_a_repair_is_completed_by_the_next_one(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    compact(located(store))
    (merged,) = parts(located(store))
    damage_an_answer(orphan(store))
    damage(merged, truncate=True)
    shutil.copytree(store, tmp_path / "0")
    steps = len(steps_of(monkeypatch, lambda: mend(tmp_path / "0")))
    expected = values(tmp_path / "0")
    assert len(expected) == 14 + 3
    for number in range(1, steps + 1, every):
        harmed = tmp_path / str(number)
        shutil.copytree(store, harmed)
        kill_at(monkeypatch, number, lambda harmed=harmed: mend(harmed))  # type: ignore[misc]
        assert mend(harmed).hopeless == [], f"step {number}"
        assert open_store(harmed).verify() == [], f"step {number}"
        assert values(harmed) == expected, f"step {number}"
        shutil.rmtree(harmed)


def test_a_sweep_of_given_points_asks_for_exactly_these(store: Path) -> None:
    problem = find_problem("allocation-epsilon").from_fields({"sigma": 1.0, "steps": 100, "delta": 1e-5})
    method = find("allocation.decomposition")
    points = [
        Point(problem=problem, method=method()),
        Point(
            problem=find_problem("unamplified-epsilon").from_fields({"sigma": 1.0, "delta": 1e-5}),
            method=find("unamplified.exact")(),
        ),
    ]
    from flows.spec.grid import expand

    assert {p.id for p in expand(sweep_of(points).grids)} == {p.id for p in points}


@pytest.mark.thorough
def test_the_command_line_finds_reads_around_and_repairs_damage(store: Path, process: Run) -> None:
    before = answers(store)
    victim = parts(located(store))[0]
    content = victim.read_bytes()
    damage(victim)

    code, out, err = process("verify", "--store", store, "--json")
    report = json.loads(out)
    assert (code, err, report["sound"], report["parts"]) == (1, "", False, 4)
    (finding,) = report["findings"]
    assert (finding["kind"], finding["file"]) == ("damaged", str(victim.relative_to(store)))

    count = "select count(*) as n from results"
    code, out, err = process("sql", count, "--store", store, "--json", "--allow-degraded")
    (line,) = err.splitlines()
    assert (code, json.loads(out)[0]["n"] < len(before)) == (0, True)
    assert line.startswith(f"privsweep: warning: {victim} is damaged")

    code, out, err = process("repair", "--store", store, "--engine", "serial", "--json")
    assert code == 0, err
    done = json.loads(out)
    assert done["computed"] == done["lost_points"] > 0
    assert content not in [path.read_bytes() for path in store.rglob("*.parquet")]

    code, out, err = process("verify", "--store", store)
    assert (code, err) == (0, "")
    assert out.splitlines()[-1].endswith(": sound")
    assert answers(store) == before

    code, out, err = process("compact", "--store", store)
    assert (code, err) == (0, "")
    assert "4 parts became 1" in out
    code, out, err = process("gc", "--store", store, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["files"]
    assert answers(store) == before


@pytest.mark.parametrize("words", app.COMMANDS)
def test_commands_that_read_a_store_and_change_none_read_around_damage_if_told(words: str) -> None:
    options = {parameter.name for parameter in app.command(words).params}
    assert ("allow_degraded" in options) == ("store" in options and words not in CHANGING)


def test_the_command_line_says_what_it_would_do(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    victim = parts(located(store))[0]
    answers(store)
    damage(victim)
    assert command_line(["sql", "select 1", "--store", str(store)]) == 2
    assert capsys.readouterr().err.startswith(f"privsweep: {victim} is damaged")
    assert command_line(["repair", "--store", str(store), "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert f"{victim.relative_to(store)} would be moved to quarantine" in out
    assert "points would be computed again, of mended" in out
    assert victim.exists()
    assert command_line(["repair", "--store", str(store), "--engine", "serial"]) == 0
    answers(store)
    assert command_line(["gc", "--store", str(store), "--dry-run"]) == 0
    assert "cache/snapshot-" in capsys.readouterr().out
    assert len(list((store / "cache").iterdir())) == 2


@pytest.mark.thorough
@pytest.mark.parametrize("harm", ["flip", "truncate", "delete"])
def test_an_answer_that_is_lost_beside_a_failure_is_computed_again(tmp_path: Path, harm: str) -> None:
    store = tmp_path / "store"
    slow = Answer.without(Status.TIMEOUT, "slow")
    put(store, [row(epsilon(sigma=0.5, delta=d), slow, seconds_later=-99) for d in (1e-8, 1e-5)])
    run(store)
    opened = open_store(store)
    flows.runs.run.run(parse(SWEEP.encode(), "s"), opened, engine=SERIAL, retry=True)
    before = answers(store)
    assert {answer["status"] for answer in before} == {"ok"}
    table = {path: read_rows(path).to_pylist() for path in parts(located(store))}
    (victim,) = (
        p for p, found in table.items() if {(r["sigma"], r["status"]) for r in found} == {(0.5, "ok")}
    )
    if harm == "delete":
        victim.unlink()
    else:
        damage(victim, truncate=harm == "truncate")
    assert mend(store, dry_run=True).lost == 2
    done = mend(store)
    assert (done.lost, sum(report.computed for report in done.reports), done.hopeless) == (2, 2, [])
    assert answers(store) == before
    assert mend(store).nothing


@pytest.mark.parametrize("harm", ["misnamed", "swapped"])
def test_parts_with_wrong_names_that_no_sweep_lists_lose_no_point(tmp_path: Path, harm: str) -> None:
    store = tmp_path / "store"
    one, other = (put(store, rows(3, first=3 * i)) for i in range(2))
    if harm == "misnamed":
        one.rename(one.with_name("0" * 32 + one.name[32:]))
    else:
        contents = one.read_bytes(), other.read_bytes()
        other.write_bytes(contents[0])
        one.write_bytes(contents[1])
    done = mend(store)
    assert (done.lost, done.hopeless) == (3 if harm == "misnamed" else 6, [])
    with open_store(store) as opened:
        assert opened.verify() == []
        assert len(opened.stored("unamplified-epsilon")) == 6


def test_a_record_that_leads_to_a_damaged_part_is_moved_with_it_and_told(store: Path) -> None:
    compact(located(store))
    (record,) = (store / "replaced").iterdir()
    damage(parts(located(store))[0], truncate=True)
    told = mend(store, dry_run=True).moved
    assert str(record.relative_to(store)) in told
    done = mend(store)
    assert done.moved == told
    assert all((Path(done.quarantine) / name).exists() for name in told if done.quarantine)
    assert list((store / "replaced").iterdir()) == []


def test_a_name_that_no_terminal_can_show_is_printed_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store"
    put(store, rows(1))
    (store / "data" / os.fsdecode(b"\xff\n\x1b[2J")).write_text("not ours")
    for command in ("verify", "repair"):
        command_line([command, "--store", str(store)])
        out = capsys.readouterr().out
        assert r"data/\udcff\n\x1b[2J" in out


@pytest.mark.sampled(1)
def test_what_was_quarantined_two_days_ago_goes_after_one_day_and_stays_for_three(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "store"
    open_store(root, create=True).close()
    folder = root / "quarantine" / "20260101T000000-00000000"
    folder.mkdir(parents=True)
    two_days_ago = time.time() - 2 * 86_400.0
    os.utime(folder, (two_days_ago, two_days_ago))
    for days, stays in (("3", True), ("1", False)):
        assert command_line(["gc", "--store", str(root), "--quarantine-days", days]) == 0
        assert folder.exists() == stays
    assert "quarantine" in capsys.readouterr().out


def test_the_name_of_a_damaged_manifest_makes_no_lines_of_output(privsweep: Command, tmp_path: Path) -> None:
    put(tmp_path / "store", row(epsilon()))
    (tmp_path / "store" / "sweeps").mkdir(exist_ok=True)
    (tmp_path / "store" / "sweeps" / "m\nprivsweep: nothing was lost.\nx.json").write_text("{")
    assert privsweep("repair", "--dry-run", "--store", tmp_path / "store") == 1
    lines = (privsweep.out + privsweep.err).splitlines()
    assert any("no other file records its sweep" in line for line in lines)
    assert "privsweep: nothing was lost." not in lines
