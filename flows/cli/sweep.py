"""Commands on sweeps: plan, run, status and schema."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli.options import (
    AllowDegraded,
    Engine,
    MethodNames,
    NewStorePath,
    RayAddress,
    StorePath,
    Workers,
    engine_of,
    problems_and_sweeps,
    reading,
    shown,
    sweeps,
)
from flows.printing import WRONG, as_json, exactly, marked, note, say, show
from flows.runs.ledger import Ledger
from flows.runs.plan import TooLargeError, check_size, make_plan, readable
from flows.runs.status import coverage, recorded, recorded_sweeps, runs
from flows.spec.grid import count
from flows.spec.sweep import load
from flows.spec.typed import named_or_typed
from flows.spec.words import DEFAULT_STORE
from flows.terminal.window import width_of
from privcore import ExitCode

if TYPE_CHECKING:
    from flows.runs.forecast import Cluster, Schedule
    from flows.runs.plan import Plan
    from flows.runs.run import RunReport
    from flows.spec.sweep import Sweep
    from storage.heartbeats import Heartbeat


def show_schedule(
    sweep: "Sweep", store: Path, words: str, *, max_points: float, retry: bool, json: bool
) -> None:
    """Simulate a sweep on the cluster that the words describe, and print its schedule."""
    from flows.runs.forecast import read_cluster, simulate
    from flows.runs.plan import work_of
    from storage import open_store

    cluster = read_cluster(words)
    with open_store(store, missing_ok=True) as opened:
        work = work_of(sweep, opened, cluster.workers, max_points=max_points, retry=retry)
    schedule = simulate(work, cluster)
    if json:
        work = schedule.work
        content = {
            "sweep": sweep.name,
            "nodes": cluster.nodes,
            "cores": cluster.cores,
            "points": work.points,
            "sampled": work.sampled,
            "measured_share": work.measured_share,
            "batches": len(work.seconds),
            "core_seconds": float(work.seconds.sum()),
            "planning_seconds": work.planning,
            "driver_bytes": work.driver_bytes,
            "makespan_seconds": schedule.makespan,
            "busy": schedule.busy,
            "tail_seconds": schedule.tail,
            "longest_batch_seconds": schedule.longest,
            "commits_per_second": schedule.commits_per_second[0],
            "commits_per_second_at_most": schedule.commits_per_second[1],
            "store_bytes": schedule.store_bytes,
        }
        say(as_json(content, indent=1))
    else:
        _print(sweep.name, cluster, schedule)


def _print(name: str, cluster: "Cluster", schedule: "Schedule") -> None:
    from flows.runs.forecast import END_OF_PART
    from flows.runs.plan import PLANNING
    from flows.runs.progress import duration, size

    work = schedule.work
    how = f"costs from {work.sampled:,} sampled points" if work.sampled else "costs from its plan"
    nodes = f"{cluster.nodes} nodes of {cluster.cores} cores"
    say(f"{name}: {readable(work.points)} new points, {how}; {nodes}")
    whole, planning = duration(schedule.makespan), duration(work.planning)
    say(f"time     about {whole}, including {planning} of planning on one core")
    seconds, batches = duration(float(work.seconds.sum())), readable(len(work.seconds))
    busy = f"{schedule.busy:.0%} of the time"
    say(f"work     {seconds} of one core in {batches} batches; workers are busy {busy}")
    tail, longest = duration(schedule.tail), duration(schedule.longest)
    say(
        f"end      the first worker runs out of work {tail} before the end; the longest batch takes {longest}"
    )
    mean, most = schedule.commits_per_second
    say(f"store    {size(schedule.store_bytes)}, {mean:.3g} parts a second, at most {most:.3g}")
    say(f"driver   {size(work.driver_bytes)} of memory")
    share = f"{work.measured_share:.0%} of the work"
    say(f"costs    measured for {share}, from rows of the store; the rest is estimated, on the safe side")
    if work.sampled:
        each = f"{PLANNING * 1e6:g} microseconds of the driver a point and {END_OF_PART * 1e6:g} a part"
        say(f"assumed  all points are new; {each}, as measured with a million points (docs/benchmarks.md)")


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


SweepName = Annotated[
    str,
    typer.Argument(
        metavar="SWEEP",
        help="TOML file, name of an embedded sweep, or name of a problem.",
        autocompletion=problems_and_sweeps,
    ),
]
Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FIELD=VALUES",
        help="Fields of the problem, such as sigma=1,2 or sigma=linear(1,2,11), geometric(...), range(...).",
    ),
]
LARGEST_SWEEP = 1e9  # points; their ids alone would need 100 GB


def _countable(limit: float) -> float:
    """Return a number of points, or reject a number that no machine could plan."""
    if not limit <= LARGEST_SWEEP:
        raise typer.BadParameter(f"Expected --max-points of at most {LARGEST_SWEEP:g}, got {limit:g}.")
    return limit


MaxPoints = Annotated[
    float,
    typer.Option(
        min=1, callback=_countable, metavar="NUMBER", help="Reject a sweep with more points than this."
    ),
]
Retry = Annotated[bool, typer.Option("--retry", help="Compute stored failures and timeouts again.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def plan(  # noqa: PLR0913, PLR0917  the options of a command
    sweep: SweepName,
    words: Words = None,
    method: MethodNames = None,
    store: NewStorePath = DEFAULT_STORE,
    workers: Workers = None,
    max_points: MaxPoints = 1e6,
    retry: Retry = False,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="SIZES", help="Simulate the schedule on a cluster, such as nodes=200,cores=32."),
    ] = None,
    json: Json = False,
) -> None:
    """Estimate the cost of a sweep: points, time, memory and disk. Starts and writes nothing."""
    from storage import open_store
    from tasks.engine import cores

    asked = named_or_typed(sweep, words or [], method or [])
    if cluster is not None:
        if workers is not None:
            raise typer.BadParameter("Expected --workers or --cluster, got both.")
        show_schedule(asked, store, cluster, max_points=max_points, retry=retry, json=json)
        return
    workers = workers or cores()
    with open_store(store, missing_ok=True) as opened:
        made = make_plan(asked, opened, workers=workers, max_points=max_points, retry=retry)
    if json:
        _print_json({"sweep": asked.name, **_plan_content(made)})
    if made.refused:
        raise TooLargeError(made.refused)
    if not json:
        _show_plan(asked.name, made, workers)


def run(  # noqa: PLR0913, PLR0917  the options of a command
    sweep: SweepName,
    words: Words = None,
    method: MethodNames = None,
    store: NewStorePath = DEFAULT_STORE,
    workers: Workers = None,
    engine: Engine = "auto",
    ray_address: RayAddress = None,
    max_points: MaxPoints = 1e6,
    retry: Retry = False,
    json: Json = False,
) -> None:
    """Compute the points of a sweep that are not stored yet. After Ctrl-C, the same command resumes."""
    from flows.runs.progress import Progress
    from flows.runs.run import run as run_sweep
    from flows.runs.status import runs
    from storage import open_store

    chosen = engine_of(engine, workers, ray_address)
    asked = named_or_typed(sweep, words or [], method or [])
    with open_store(store.absolute(), missing_ok=True) as opened, Progress() as progress:
        for other in runs(asked, opened, wait=False).alive:
            note(
                f"{asked.name} is already running on {other.where}, at {other.done} of {other.new} points: "
                "both runs compute the missing points; Ctrl-C stops this one."
            )
        report = run_sweep(
            asked,
            opened,
            engine=chosen,
            max_points=max_points,
            retry=retry,
            watch=progress,
        )
    if json:
        _print_json(_report_content(report))
    else:
        _show_report(report, store)
    if report.now.failed:
        raise typer.Exit(ExitCode.UNANSWERED)


def _print_json(content: Any) -> None:

    say(as_json(content, indent=1))


def _plan_content(made: "Plan") -> dict[str, Any]:
    return {
        "points": made.total,
        "stored": sum(made.stored.values()),
        "stored_by_status": dict(made.stored),
        "new": made.new,
        "by_method": [
            {
                "problem": group.kind.name,
                "method": group.label,
                "points": group.points,
                "seconds": group.seconds,
            }
            for group in made.groups
        ],
        "batches": len(made.batches),
        "cpu_seconds": made.cpu_seconds,
        "memory_bytes": made.memory_bytes,
        "disk_bytes": made.disk_bytes,
        "beyond_limits": made.beyond,
        "refused": made.refused,
    }


def schema() -> None:
    """Print the JSON Schema of the TOML format of sweeps, for completion and checks in editors.

    `privsweep schema > sweep.schema.json` writes it to a file. A sweep that begins with the line
    `#:schema ./sweep.schema.json` is then checked by editors that use Taplo.
    """
    from flows.spec import schema as of_sweeps

    say(as_json(of_sweeps.schema(), indent=1))


def _show_plan(name: str, made: "Plan", workers: int) -> None:
    from flows.runs.forecast import END, END_OF_RAY, START, START_HERE
    from flows.runs.progress import duration, size
    from tasks.engine import RAY, Engine

    say(f"{name}: {made.total} points, {sum(made.stored.values())} stored, {made.new} new")
    if not made.new:
        return
    rows = [[g.kind.name, g.label, str(g.points), f"{g.seconds:.3g}"] for g in made.groups]
    show(["problem", "method", "new points", "core seconds"], rows)
    engine, reason = Engine().chosen(made.cpu_seconds)
    if engine.name == RAY:
        seconds = START + made.cpu_seconds / workers + END + END_OF_RAY
        around = duration(START + END + END_OF_RAY)
        reason = f"on {workers} workers, with {around} for the start and the end of Prefect and Ray"
    else:
        seconds = START_HERE + made.cpu_seconds
    say(f"time     at most about {duration(seconds)} {reason}")
    say(f"memory   at most about {size(made.memory_bytes)}")
    say(f"disk     about {size(made.disk_bytes)}")
    if made.beyond:
        say(f"limits   {made.beyond} points may need more than the limits allow and will not be started")


def _report_content(report: "RunReport") -> dict[str, Any]:
    return {
        "sweep": report.now.sweep,
        "points": report.now.total,
        "computed": report.computed,
        "stored_before": report.before,
        "stored": report.now.stored,
        "failed": report.now.failed,
        "missing": report.now.missing,
        "statuses": dict(report.now.statuses),
        "seconds": report.seconds,
        "store": report.store,
    }


def _show_report(report: "RunReport", store: Path) -> None:
    from flows.runs.progress import duration
    from tasks.tally import failures

    now = report.now
    what = (
        f"{report.computed} computed, {report.before} stored before"
        if report.computed
        else "nothing to compute"
    )
    after = f"{now.total} points, {what}, {now.failed} failed"
    if width_of(sys.stdout) is None:
        say(f"{now.sweep}: {after}, {duration(report.seconds)}")
        say(f"store    {exactly(report.store)}")
    else:
        marked(now.sweep, f" done in {duration(report.seconds)}: {after}", style="bold")
        named = "" if store == DEFAULT_STORE else f" --store {shlex.quote(str(shown(store)))}"
        marked("store    ", exactly(report.store))
        marked("look     ", f"privsweep lookup {now.sweep}{named}")
        marked("report   ", f"privsweep report {now.sweep}{named}")
    if now.failed:
        command = f"privsweep sql --store {report.store} 'select * from failures'"
        marked("failures", f" {failures(now.statuses)}: {command}", style=WRONG, file=sys.stderr)
