"""The command `status`: stored points of sweeps, and their runs."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli.completion import sweeps
from flows.cli.options import DEFAULT_STORE, AllowDegraded, StorePath, reading
from flows.printing import as_json, say, show
from flows.runs.ledger import Ledger
from flows.runs.plan import check_size
from flows.runs.status import coverage, recorded, recorded_sweeps, runs
from flows.spec.grid import count
from flows.spec.sweep import load

if TYPE_CHECKING:
    from storage.heartbeats import Heartbeat

COUNTED = 10_000_000
"""Points of a sweep up to which stored points are counted, in ten seconds; for more, its manifest is read."""
COUNTED_AGAIN = 100_000_000
"""Points up to which they are counted if a run began and no manifest has counts, as after `table remove`."""


def status(
    sweep: Annotated[
        str | None,
        typer.Argument(
            metavar="SWEEP", help="Sweep to show; default: all sweeps of the store.", autocompletion=sweeps
        ),
    ] = None,
    store: StorePath = DEFAULT_STORE,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    allow_degraded: AllowDegraded = False,
) -> None:
    """Show how many points of each sweep are stored, how many failed, and whether it is running."""
    named = [load(sweep)] if sweep else None
    lines: list[dict[str, Any]] = []
    with reading(store, allow_degraded=allow_degraded, missing_ok=named is not None) as opened:
        for asked in named or recorded_sweeps(opened):
            going = runs(asked, opened)
            # After the runs, so that a run that has just ended counts.
            now = recorded(asked, opened) if count(asked.grids) > COUNTED else None
            if now is None:
                check_size(asked, COUNTED_AGAIN if going.begun else COUNTED)
                ledger = Ledger(asked.grids)
                ledger.read(opened)
                now = coverage(asked, ledger)
            lines.append(
                {
                    "sweep": now.sweep,
                    "points": now.total,
                    "stored": now.stored,
                    "failed": now.failed,
                    "missing": now.missing,
                    "state": going.state(now),
                    "statuses": dict(now.statuses),
                    "runs": [_run_content(run, alive=True) for run in going.alive]
                    + [_run_content(run, alive=False) for run in going.dead],
                }
            )
    if json:
        say(as_json(lines[0] if sweep else lines, indent=1))
    elif lines:
        names = ["sweep", "points", "stored", "failed", "missing", "state"]
        show(names, [[str(line[name]) for name in names] for line in lines])
        for line in lines:
            for run in line["runs"]:
                say(_told(line["sweep"], run))
    else:
        say(f"No sweep has been run on {opened.name} yet.")


def _run_content(run: "Heartbeat", *, alive: bool) -> dict[str, Any]:
    return {
        "state": "running" if alive else "killed",
        "host": run.shown_host,
        "process": run.process,
        "started_at": run.started_at.isoformat(timespec="seconds"),
        "heartbeat_at": run.beaten_at.isoformat(timespec="seconds"),
        "new": run.new,
        "done": run.done,
        "failed": run.failed,
        "points_per_second": run.points_per_second,
        "seconds_left": run.seconds_left if alive else None,
    }


def _told(sweep: str, run: dict[str, Any]) -> str:
    """Return one line about a run."""
    from flows.runs.progress import time_left

    where = f"{run['host']}, process {run['process']}"
    if run["state"] == "killed":
        return (
            f"{sweep}: killed on {where}, at {run['done']} of {run['new']} points; the same command resumes"
        )
    failed = f", {run['failed']} failed" if run["failed"] else ""
    pace = f", {run['points_per_second']:.3g} points/s" if run["points_per_second"] else ""
    left = f", {time_left(run['seconds_left'])}" if run["seconds_left"] is not None else ""
    return f"{sweep}: running on {where}, {run['done']} of {run['new']} points{failed}{pace}{left}"
