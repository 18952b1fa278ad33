"""The schedule that `plan --cluster` prints: the course of a sweep on a cluster."""

from pathlib import Path
from typing import TYPE_CHECKING

from flows.printing import as_json, say
from flows.runs.plan import readable

if TYPE_CHECKING:
    from flows.runs.forecast import Cluster, Schedule
    from flows.spec.sweep import Sweep


def show_schedule(
    sweep: "Sweep", store: Path, words: str, *, max_points: float, retry: bool, json: bool
) -> None:
    """Simulate a sweep on the cluster that the words describe, and print its schedule."""
    from flows.runs.forecast import read_cluster, simulate
    from flows.runs.workload import work_of
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
    from flows.runs.progress import duration, size
    from flows.runs.workload import PLANNING

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
