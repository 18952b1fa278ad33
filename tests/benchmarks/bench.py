"""Measure what the documentation claims; `make bench` prints it, `--write` puts it into docs/benchmarks.md.

Ratios between numbers of one run mean something; absolute times belong to the machine.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks import audits, figure1, growth, labels, membership, scale, startup, store

os.environ.setdefault("NUMBA_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / ".venv-peers" / "bin" / "python"
PEER_LIMIT_SECONDS = 75  # the start of the peer and its compilation included
POINTS = [
    (1.0, 10**6, 1e-10),
    (1.0, 10**4, 1e-8),
    (0.5, 10**3, 1e-6),
    (2.0, 10**6, 1e-10),
    (0.3, 10**3, 1e-4),
]
REPEATS = 7
PIPELINE_POINTS = 100_000


def certified() -> Iterator[str]:
    """Yield the table of certified brackets beside the peer's."""
    command = [sys.executable, "-m", "tests.benchmarks.bench", "--only", "own-points"]
    ours = json.loads(subprocess.check_output(command, text=True, cwd=ROOT))
    columns = ["sigma", "t", "delta", "ours: bracket", "gap", "seconds", "memory"]
    columns += ["peer: bracket", "gap", "seconds", "ratio"]
    yield "| " + " | ".join(columns) + " |"
    yield "|---" * len(columns) + "|"
    for (sigma, steps, delta), own in zip(POINTS, ours["points"], strict=True):
        row = [f"{sigma:g}", f"{steps:g}", f"{delta:g}", f"{own['lower']:.6g} - {own['upper']:.6g}"]
        row += [
            f"{own['upper'] / own['lower'] - 1:.2%}",
            f"{own['seconds']:.4f}",
            f"{own['megabytes']:.0f} MB",
        ]
        row += _peer(sigma, steps, delta, own["seconds"])
        yield "| " + " | ".join(row) + " |"
    seconds = statistics.median(p["seconds"] for p in ours["points"])
    yield ""
    yield f"Median of the points: {seconds:.4f} s; each is the median of {REPEATS} runs, caches cleared."


def _peer(sigma: float, steps: int, delta: float, own_seconds: float) -> list[str]:
    if not PEERS.exists():
        return ["not installed", "", "", ""]
    script = Path(__file__).with_name("peer_pld_accounting.py")
    command = [str(PEERS), str(script), str(sigma), str(steps), str(delta)]
    try:
        found = json.loads(subprocess.check_output(command, text=True, timeout=PEER_LIMIT_SECONDS))
    except subprocess.TimeoutExpired:
        limit = PEER_LIMIT_SECONDS
        return ["none", "", f"> {limit}", f"> {limit / own_seconds:.0f}"]
    bracket = f"{found['lower']:.6g} - {found['upper']:.6g}"
    gap = f"{found['upper'] / found['lower'] - 1:.2%}"
    return [bracket, gap, f"{found['seconds']:.2f}", f"{found['seconds'] / own_seconds:.0f}"]


def own_points() -> None:
    """Print our brackets with seconds and additional memory as JSON; run in a process of its own."""
    from privcore import Point, evaluate, find, find_problem
    from privcore.allocation.reduction import one_of

    problem, method = find_problem("allocation-epsilon"), find("allocation.certified")()
    evaluate(
        Point(problem=problem.from_fields({"sigma": 1.0, "steps": 7, "delta": 1e-3}), method=method)
    )  # load compiled code
    found = []
    for sigma, steps, delta in POINTS:
        fields = {"sigma": sigma, "steps": steps, "delta": delta}
        point = Point(problem=problem.from_fields(fields), method=method)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        seconds = []
        for _ in range(REPEATS):
            one_of.cache_clear()
            started = time.process_time()
            evaluate(point)
            seconds.append(time.process_time() - started)
        answer = evaluate(point)
        megabytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        own = {"lower": answer.lower, "upper": answer.upper, "megabytes": megabytes}
        found.append(own | {"seconds": statistics.median(seconds)})
    print(json.dumps({"points": found}))


def pipeline() -> Iterator[str]:
    """Yield the overhead of the whole path for many points of a trivial method."""
    with tempfile.TemporaryDirectory() as folder:
        sweep = Path(folder) / "trivial.toml"
        sweep.write_text(
            'name = "trivial"\n[[grid]]\nproblem = "unamplified-delta"\nmethods = ["unamplified.exact"]\n'
            f"product = {{sigma = {{geometric = [0.5, 50, {PIPELINE_POINTS // 100}]}}, "
            "epsilon = {geometric = [0.01, 10, 100]}}\n",
            encoding="utf-8",
        )
        privsweep = str(Path(sys.executable).with_name("privsweep"))
        command = [privsweep, "run", str(sweep), "--store", f"{folder}/store", "--json"]
        for label in ("first run", "second run, nothing to do"):
            started = time.perf_counter()
            output = subprocess.run(command, text=True, capture_output=True, check=True).stdout
            seconds = time.perf_counter() - started
            summary = json.loads(output)
            del summary["store"]
            memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
            yield (
                f"* {label}: {seconds:.1f} s, {seconds / PIPELINE_POINTS * 1e3:.3f} ms a point, "
                f"largest process {memory:.0f} MB; {json.dumps(summary)}"
            )


# The pipeline comes first: the memory it reports is that of the largest child so far.
SECTIONS = {
    "pipeline": pipeline,
    "certified": certified,
    "figure1": figure1.table,
    "labels": labels.table,
    "audits": audits.table,
    "membership": membership.table,
    "growth": growth.table,
    "startup": startup.table,
    "scale": scale.table,
    "store": store.table,
}
TITLES = {
    "audits": "Audits in one run, Gaussian family, beside jax-privacy 2.0",
    "certified": "Random allocation: certified bracket at 1 %, beside PLD-accounting 2.0 at its defaults",
    "figure1": "Figure 1's grid (t = 1e6, delta = 1e-10): our methods beside random-allocation 1.0.5",
    "growth": "How time and memory grow, and the limit of the machine",
    "labels": "Labels: laws of sums and advantages, beside scipy and qif 1.6",
    "membership": "Membership inference: the worst learner of discrete records",
    "scale": "Two workers beside one on certified points",
    "startup": "Start-up: a command in a new process, with warm caches on disk",
    "store": "The store: 10,000,000 rows in 100 parts",
    "pipeline": f"Pipeline: {PIPELINE_POINTS:,} points of `unamplified.exact` through the whole path",
}


def main() -> None:
    """Run the sections asked for and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=[*SECTIONS, "own-points"])
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md as well")
    options = parser.parse_args()
    if options.only == "own-points":
        own_points()
        return
    for name, section in SECTIONS.items():
        if options.only not in (None, name):
            continue
        print(f"\n{TITLES[name]}\n", flush=True)
        lines = []
        for line in section():
            print(line, flush=True)
            lines.append(line)
        if options.write:
            _write(TITLES[name], lines)


def _write(title: str, lines: list[str]) -> None:
    """Put a section into docs/benchmarks.md, in the place of the one with its title or at the end."""
    path = ROOT / "docs" / "benchmarks.md"
    head, *sections = path.read_text(encoding="utf-8").rstrip().split("\n## ")
    of_title = {section.partition("\n")[0]: section for section in sections}
    of_title[title] = "\n".join([title, "", *lines]).rstrip() + "\n"
    path.write_text(
        "\n## ".join([head.rstrip() + "\n", *(s.rstrip() + "\n" for s in of_title.values())]),
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
