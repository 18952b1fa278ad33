"""Distributions of sums of labels and advantages, compared with scipy and qif; a section of bench.py."""

import itertools
import math
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.benchmarks.measure import measured, verdict

BAG, BAGS = 512, 1000
SMALL = 10
TARGET = 50.0
GRID = "labels-advantage"


def table() -> Iterator[str]:
    """Yield time and memory of our exact methods and of peers for the same work, on one core."""
    import qif
    from scipy.stats import poisson_binom

    from privcore.labels.sums.noisy_sums import released
    from privcore.labels.sums.poisson_binomial import leave_one_out
    from privcore.labels.sums.rows import exact_at

    rng = np.random.default_rng(1)
    etas = rng.beta(2.0, 30.0, (BAGS, BAG))
    leave_one_out(etas[0, :20])  # loads compiled code
    all_bags = measured(lambda: deque((leave_one_out(bag) for bag in etas), maxlen=0))
    one_bag = measured(lambda: leave_one_out(etas[0]))
    counts = np.arange(BAG)
    scipy_laws = measured(lambda: [poisson_binom.pmf(counts, np.delete(etas[0], i)) for i in range(BAG)])

    labels = np.array(list(itertools.product((0, 1), repeat=SMALL)))
    channel = (labels.sum(axis=1)[:, None] == np.arange(SMALL + 1)).astype(float)
    gains = [np.stack([(labels[:, i] == guess).astype(float) for guess in (0, 1)]) for i in range(SMALL)]
    small = etas[0, :SMALL]
    prior = np.where(labels == 1, small, 1.0 - small).prod(axis=1)
    theirs = measured(
        lambda: [qif.measure.g_vuln.add_leakage(gains[i], prior, channel) for i in range(SMALL)]
    )
    ours = measured(lambda: exact_at(small, *released(leave_one_out(small), math.inf)))

    yield "| work on one core | ours, seconds | MB | peer | peer, seconds | MB | ratio |"
    yield "|---|---|---|---|---|---|---|"
    yield (
        f"| leave-one-out distributions of {BAGS} bags of {BAG} | {all_bags.seconds:.3g} "
        f"| {all_bags.megabytes:.0f} | | | | |"
    )
    ratio = scipy_laws.seconds / one_bag.seconds
    yield (
        f"| leave-one-out distributions of a bag of {BAG} | {one_bag.seconds:.3g} | {one_bag.megabytes:.1f} "
        f"| scipy's `poisson_binom`, {BAG} distributions | {scipy_laws.seconds:.3g} "
        f"| {scipy_laws.megabytes:.1f} | {ratio:.0f} |"
    )
    yield (
        f"| advantage of all members of a bag of {SMALL} | {ours.seconds:.3g} | {ours.megabytes:.1f} "
        f"| qif, {SMALL} leakages of a channel of {2**SMALL} rows | {theirs.seconds:.3g} "
        f"| {theirs.megabytes:.1f} | {theirs.seconds / ours.seconds:.0f} |"
    )
    most = max(abs(float(a) - float(b)) for a, b in zip(ours.value, theirs.value, strict=True))
    yield ""
    yield verdict(
        f"leave-one-out distributions for bags of {BAG}, {TARGET:g} times as fast as scipy's loop",
        f"{ratio:.0f} times",
        ratio >= TARGET,
    )
    yield f"* The {SMALL} advantages differ from qif's by at most {most:.1g}."
    yield f"* {_grid()}"


def _grid() -> str:
    """Return a sentence with the time of the full grid of advantages, with an empty store, on two cores."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(Path(sys.executable).with_name("privsweep")), "run", GRID, "--engine", "ray"]
        started = time.perf_counter()
        subprocess.run([*command, "--store", f"{folder}/store"], capture_output=True, check=True)
        seconds = time.perf_counter() - started
    return f"The sweep `{GRID}` (10 epsilons, 10 bag sizes, 4 mechanisms, 4 priors): {seconds:.0f} s."
