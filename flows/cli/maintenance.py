"""Commands that keep a store sound: verify, repair, compact and gc."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli.options import (
    Engine,
    Json,
    RayAddress,
    StorePath,
    Workers,
    engine_of,
)
from flows.printing import WRONG, as_json, marked, note, printable, say
from flows.spec.words import DEFAULT_STORE
from privcore import ExitCode

if TYPE_CHECKING:
    from flows.runs.recompute import Recomputed
    from flows.runs.repair import Repair
    from storage.garbage import Garbage

DAY = 86_400.0
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the changes without making them.")]


def verify(
    store: StorePath = DEFAULT_STORE,
    recompute: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Also recompute N drawn rows, or all, and compare brackets.",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="NUMBER", help="Seed of the drawn rows; default: a new one, which is printed."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Read every byte of a store, and list damaged, missing, foreign and leftover files."""
    from flows.runs.progress import size
    from flows.runs.recompute import new_seed, sample_size
    from flows.runs.recompute import recompute as recompute_rows
    from storage import open_store

    count = None if recompute is None else sample_size(recompute)
    draw = new_seed() if seed is None else seed
    with open_store(store) as opened:
        report = opened.examine()
        wanted = recompute is not None and report.readable
        again = recompute_rows(opened, count, draw, _watch) if wanted else None
    counts = {"parts": report.parts, "rows": report.rows, "bytes": report.bytes, "seconds": report.seconds}
    if json:
        findings = [{**asdict(finding), "harmless": finding.harmless} for finding in report.findings]
        more: dict[str, Any] = {}
        if recompute is not None:
            more["recomputed"] = None if again is None else asdict(again)
        if again is not None and count:
            more["seed"] = draw
        say(as_json({"sound": report.sound, **counts, "findings": findings, **more}, indent=1))
    else:
        for finding in report.findings:
            marked(f"{finding.kind:<13} ", printable(finding.detail), style=WRONG)
        wrong = "answers contradict one another" if report.readable else "run privsweep repair"
        verdict = "sound" if report.sound else f"not sound; {wrong}"
        say(
            f"{report.parts} parts, {report.rows} rows, {size(report.bytes)} checked "
            f"in {report.seconds:.1f} s: {verdict}"
        )
        if again is not None:
            if count is not None:
                say(f"the rows are those of --seed {draw}")
            _show_recomputed(again)
        elif recompute is not None:
            say("0 brackets recomputed: resolve the other findings first")
    if not report.sound or (again is not None and again.wrong):
        raise typer.Exit(ExitCode.FAILED)


def _watch(done: int, total: int) -> None:
    say(f"{done} of {total} rows recomputed", file=sys.stderr, flush=True)


def _show_recomputed(again: "Recomputed") -> None:
    for sentence in again.apart:
        marked("contradiction ", printable(sentence), style=WRONG)
    for sentence in again.not_reproduced:
        marked("not reproduced ", printable(sentence), style=WRONG)
    for sentence in again.skipped:
        say(f"skipped       {printable(sentence)}")
    verdicts = [
        f"{again.wider} are narrower than the stored ones" if again.wider else "",
        f"{len(again.apart)} contradict the stored ones" if again.apart else "",
        f"{len(again.not_reproduced)} claim less than the stored ones" if again.not_reproduced else "",
        "" if again.wrong else "all intersect the stored ones",
        f"{len(again.skipped)} skipped" if again.skipped else "",
    ]
    verdict = ", ".join(filter(None, verdicts))
    say(f"{again.rows} brackets recomputed: {again.equal} have the same bits, {verdict}")


def repair(
    store: StorePath = DEFAULT_STORE,
    dry_run: DryRun = False,
    workers: Workers = None,
    engine: Engine = "auto",
    ray_address: RayAddress = None,
    json: Json = False,
) -> None:
    """Move damaged files into quarantine, and compute the lost points again. Deletes nothing."""
    from flows.runs.progress import Progress
    from flows.runs.repair import repair as repair_store
    from storage import open_store

    chosen = engine_of(engine, workers, ray_address)
    with open_store(store.absolute()) as opened, Progress() as progress:
        done = repair_store(opened, dry_run=dry_run, engine=chosen, watch=progress)
    if json:
        say(as_json(_repair_content(done), indent=1))
    else:
        _show_repair(done, dry_run)
    if done.hopeless:
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
        say(f"{printable(path)} {would}moved to {done.quarantine or 'quarantine'}")
    if done.sweeps:
        computed = done.lost if dry_run else sum(report.computed for report in done.reports)
        names = ", ".join(sweep.name for sweep in done.sweeps)
        say(f"{computed} points {would}computed again, of {names}")
    for sweep in done.recorded:
        say(f"{sweep.name} was unfinished before; privsweep run resumes it")
    note(*done.hopeless)
    if done.nothing:
        say("nothing to repair")


def compact(store: StorePath = DEFAULT_STORE, json: Json = False) -> None:
    """Merge small parts into large sorted parts; others may read and write meanwhile."""
    from flows.runs.progress import size
    from storage import open_store
    from storage.compaction import compact as compact_store

    with open_store(store) as opened:
        made = compact_store(opened.place)
    if json:
        say(as_json([asdict(merged) for merged in made], indent=1))
        return
    for merged in made:
        say(
            f"{merged.problem}: {merged.parts} parts became 1 of {merged.rows} rows, "
            f"{size(merged.bytes_before)} became {size(merged.bytes_after)}"
        )
    if not made:
        say("nothing to compact")


def gc(
    store: StorePath = DEFAULT_STORE,
    dry_run: DryRun = False,
    quarantine_days: Annotated[
        float | None,
        typer.Option(
            min=0.0, metavar="DAYS", help="Also delete files quarantined at least this number of days ago."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Delete data that no reader uses: superseded rows, old snapshots, files of killed writers."""
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
        say(as_json({"rows": rows, "files": files}, indent=1))
    else:
        _show_garbage(garbage, store, "would be " if dry_run else "")


def _show_garbage(garbage: "Garbage", store: Path, would: str) -> None:
    for idle in garbage.idle:
        say(f"{len(idle.rows)} rows of {idle.part.relative_to(store)} {would}dropped: superseded by others")
    for path in garbage.replaced:
        say(f"{path.relative_to(store)} {would}deleted: other parts hold its rows")
    for path in garbage.files:
        say(f"{printable(path.relative_to(store))} {would}deleted")
    if not (garbage.idle or garbage.replaced or garbage.files):
        say("nothing to collect")
