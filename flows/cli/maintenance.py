"""Commands that keep a store sound: verify, repair, compact and gc; and the option to read around damage."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli.options import (
    DEFAULT_STORE,
    Engine,
    Json,
    RayAddress,
    StorePath,
    Workers,
    check_engine,
)

if TYPE_CHECKING:
    from flows.runs.repair import Repair
    from storage.garbage import Garbage

DAY = 86_400.0
CHANGING = frozenset({"plan", "run", "verify", "repair", "compact", "gc", "publish", "import"})
"""Commands with --store that must not read around damage: they would act on half of the rows."""

DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and change nothing.")]


def verify(store: StorePath = DEFAULT_STORE, json: Json = False) -> None:
    """Read every byte of a store, and tell what is damaged, missing, foreign or left over."""
    from dataclasses import asdict

    from flows.printing import as_json
    from flows.runs.progress import size
    from privcore import ExitCode
    from storage import open_store

    with open_store(store, degraded=False) as opened:
        report = opened.examine()
    counts = {"parts": report.parts, "rows": report.rows, "bytes": report.bytes, "seconds": report.seconds}
    if json:
        findings = [{**asdict(finding), "harmless": finding.harmless} for finding in report.findings]
        print(as_json({"sound": report.sound, **counts, "findings": findings}, indent=1))
    else:
        for finding in report.findings:
            print(f"{finding.kind:<13} {_line(finding.detail)}")
        verdict = "sound" if report.sound else "not sound: privsweep repair"
        print(
            f"{report.parts} parts, {report.rows} rows, {size(report.bytes)} checked "
            f"in {report.seconds:.1f} s: {verdict}"
        )
    if not report.sound:
        raise typer.Exit(ExitCode.FAILED)


def repair(
    store: StorePath = DEFAULT_STORE,
    dry_run: DryRun = False,
    workers: Workers = None,
    engine: Engine = "ray",
    ray_address: RayAddress = None,
    json: Json = False,
) -> None:
    """Move damaged files into quarantine and compute exactly the lost points again; deletes nothing."""
    from flows.printing import as_json
    from flows.runs.progress import Progress
    from flows.runs.repair import repair as repair_store
    from privcore import ExitCode
    from storage import open_store

    check_engine(engine, ray_address)
    with open_store(store.absolute(), degraded=False) as opened, Progress() as progress:
        done = repair_store(
            opened,
            dry_run=dry_run,
            workers=workers,
            engine_name=engine,
            watch=progress,
            ray_address=ray_address,
        )
    if json:
        print(as_json(_repair_content(done), indent=1))
    else:
        _show_repair(done, dry_run)
    if done.hopeless or any(report.now.missing for report in done.reports):
        raise typer.Exit(ExitCode.FAILED)


def _repair_content(done: "Repair") -> dict[str, Any]:
    return {
        "moved": done.moved,
        "quarantine": done.quarantine,
        "lost_points": done.lost,
        "computed": sum(report.computed for report in done.reports),
        "sweeps": [sweep.name for sweep in done.sweeps],
        "unfinished_sweeps": [sweep.name for sweep in done.recorded],
        "hopeless": done.hopeless,
    }


def _show_repair(done: "Repair", dry_run: bool) -> None:
    would = "would be " if dry_run else ""
    for path in done.moved:
        print(f"{_line(path)} {would}moved to {done.quarantine or 'quarantine'}")
    if done.sweeps:
        computed = done.lost if dry_run else sum(report.computed for report in done.reports)
        names = ", ".join(sweep.name for sweep in done.sweeps)
        print(f"{computed} points {would}computed again, of {names}")
    for sweep in done.recorded:
        print(f"{sweep.name} was not finished before: privsweep run goes on with it")
    for sentence in done.hopeless:
        print(f"privsweep: {sentence}", file=sys.stderr)
    if done.nothing:
        print("nothing to repair")


def compact(store: StorePath = DEFAULT_STORE, json: Json = False) -> None:
    """Merge small parts into large sorted ones; others may read and write meanwhile."""
    from dataclasses import asdict

    from flows.printing import as_json
    from flows.runs.progress import size
    from storage import open_store
    from storage.compaction import compact as compact_store

    with open_store(store) as opened:
        made = compact_store(opened.place)
    if json:
        print(as_json([asdict(merged) for merged in made], indent=1))
        return
    for merged in made:
        print(
            f"{merged.problem}: {merged.parts} parts became 1 of {merged.rows} rows, "
            f"{size(merged.bytes_before)} became {size(merged.bytes_after)}"
        )
    if not made:
        print("nothing to compact")


def gc(
    store: StorePath = DEFAULT_STORE,
    dry_run: DryRun = False,
    quarantine_days: Annotated[
        float | None, typer.Option(min=0.0, help="Also delete what was quarantined so many days ago.")
    ] = None,
    json: Json = False,
) -> None:
    """Delete what no reader uses: rows that do not count, old snapshots, files of killed writers."""
    from flows.printing import as_json
    from storage import open_store
    from storage.garbage import collect, find_garbage

    kept = None if quarantine_days is None else quarantine_days * DAY
    with open_store(store) as opened:
        garbage = find_garbage(opened.place, quarantine=kept)
        if not dry_run:
            collect(opened.place, garbage)
    if json:
        rows = {str(idle.part.relative_to(store)): len(idle.rows) for idle in garbage.idle}
        files = [str(path.relative_to(store)) for path in (*garbage.replaced, *garbage.files)]
        print(as_json({"rows": rows, "files": files}, indent=1))
    else:
        _show_garbage(garbage, store, "would be " if dry_run else "")


def _show_garbage(garbage: "Garbage", store: Path, would: str) -> None:
    for idle in garbage.idle:
        print(f"{len(idle.rows)} rows of {idle.part.relative_to(store)} {would}dropped: they do not count")
    for path in garbage.replaced:
        print(f"{path.relative_to(store)} {would}deleted: other parts hold its rows")
    for path in garbage.files:
        print(f"{_line(path.relative_to(store))} {would}deleted")
    if not (garbage.idle or garbage.replaced or garbage.files):
        print("nothing to collect")


def _line(text: object) -> str:
    """Return a text as one printable line: the name of a foreign file may hold anything."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(text))


# --------------------------------------------------------------------------- reading around damage


def allow_degraded(command: Any) -> None:
    """Add `--allow-degraded` to a command that reads a store and changes none."""
    alone = typer.Typer(add_completion=False)
    alone.command()(_option_alone)
    (option,) = typer.main.get_command(alone).params
    if command.name not in CHANGING and any(each.name == "store" for each in command.params):
        command.params.append(option)


def _switch_on(context: typer.Context, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        context.with_resource(_reading_around_damage())


def _option_alone(
    allow_degraded: Annotated[
        bool,
        typer.Option(
            "--allow-degraded",
            callback=_switch_on,
            expose_value=False,
            help="Read around damaged and missing parts, with a warning for each.",
        ),
    ] = False,
) -> None:
    """Hold the option, which no command takes as an argument: stores learn of it when they are opened."""


@contextmanager
def _reading_around_damage() -> Iterator[None]:
    """Have stores read around damage, and each warning printed once, as one sentence."""
    from storage.degraded import degraded_reading
    from storage.errors import DegradedWarning

    told: set[str] = set()
    with warnings.catch_warnings(), degraded_reading():
        others = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if not issubclass(category, DegradedWarning):
                others(message, category, *place, **more)
            elif str(message) not in told:
                told.add(str(message))
                print(f"privsweep: warning: {_line(message)}", file=sys.stderr)

        warnings.simplefilter("always", DegradedWarning)
        warnings.showwarning = show
        yield
