"""Measure the claims of the documentation; `make bench` prints them, `--write` updates docs/benchmarks.md.

Ratios between numbers of one run are meaningful; absolute times depend on the machine.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks import (
    allocation,
    attacks,
    audits,
    bis,
    calibration,
    displaced,
    figure1,
    growth,
    k_of_t,
    labels,
    lookups,
    membership,
    page,
    poisson,
    samplers,
    scale,
    shuffling,
    startup,
    store,
    sweeps,
    throughput,
    tuning,
    whole_domain,
)

ROOT = Path(__file__).resolve().parents[2]
PIPELINE_POINTS = 100_000


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
        command = [privsweep, "run", str(sweep), "--engine", "ray", "--store", f"{folder}/store", "--json"]
        for label in ("first run", "second run, nothing to do"):
            started = time.perf_counter()
            output = subprocess.run(command, text=True, capture_output=True, check=True).stdout
            seconds = time.perf_counter() - started
            summary = json.loads(output)
            del summary["store"]
            memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
            yield (
                f"* {label}: {seconds:.1f} s, {seconds / PIPELINE_POINTS * 1e3:.3f} ms per point, "
                f"largest process {memory:.0f} MB; {json.dumps(summary)}"
            )


# The pipeline comes first because it reports the memory of the largest child so far.
SECTIONS = {
    "pipeline": pipeline,
    "allocation": allocation.table,
    "poisson": poisson.table,
    "shuffling": shuffling.table,
    "samplers": samplers.table,
    "displaced": displaced.table,
    "whole-domain": whole_domain.table,
    "tuning": tuning.table,
    "k-of-t": k_of_t.table,
    "bis": bis.table,
    "lookups": lookups.table,
    "throughput": throughput.table,
    "calibration": calibration.table,
    "attacks": attacks.table,
    "figure1": figure1.table,
    "labels": labels.table,
    "audits": audits.table,
    "membership": membership.table,
    "page": page.table,
    "growth": growth.table,
    "startup": startup.table,
    "scale": scale.table,
    "sweeps": sweeps.table,
    "store": store.table,
}
TITLES = {
    "attacks": "Attacks: the advantage of the best attack, compared with riskcal 1.5",
    "bis": "k of t: brackets of delta compared with bis-mc-accountant (74a1143)",
    "calibration": "Calibration: the noise for a target epsilon to 1e-4, "
    "compared with dp-accounting and riskcal",
    "throughput": "Sweeps: points per second over 1,000 values of noise",
    "audits": "Audits in one run, Gaussian family, compared with jax-privacy 2.0",
    "allocation": "Random allocation: brackets at 1 %, "
    "compared with PLD-accounting 2.0 and random-allocation 1.0.5",
    "displaced": "Batches that displace examples: widths of brackets at 100 drawn runs each",
    "figure1": "Figure 1's grid (t = 1e6, delta = 1e-10): our methods compared with random-allocation 1.0.5",
    "growth": "Growth of time and memory, compared with the limit of the machine",
    "k-of-t": "k of t: widths of brackets at 240 points, with 1 < k < t",
    "labels": "Labels: distributions of sums and advantages, compared with scipy and qif 1.6",
    "lookups": "Lookups: upper ends of the shipped table compared with computed ones",
    "membership": "Membership inference: the worst-case learner for discrete records",
    "page": "The engine of the page: 2,000 drawn questions at 1 % in headless Chromium, one after another",
    "poisson": "Poisson sampling: brackets at 1 %, compared with dp-accounting 0.6 and prv-accountant 0.2",
    "samplers": "Samplers of training code: processor time of one warm answer",
    "scale": "Two workers compared with one worker on certified points",
    "shuffling": "Shuffled DP-SGD: both ends proved (zero-out, delta = 1e-6)",
    "sweeps": "Whole sweeps of a method that costs nothing: the driver's time and memory",
    "startup": "Start-up: a command in a new process, with warm caches on disk",
    "store": "The store: 10,000,000 rows in 100 parts",
    "tuning": "Tuning: widths of brackets of the best of several drawn runs",
    "whole-domain": "The whole domain: widths of brackets at 1,000 drawn runs of all samplers",
    "pipeline": f"Pipeline: {PIPELINE_POINTS:,} points of `unamplified.exact` through all steps",
}


def main() -> None:
    """Run the selected sections and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=SECTIONS)
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md as well")
    options = parser.parse_args()
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
    """Write a section into docs/benchmarks.md, in place of the section with its title or at the end."""
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
