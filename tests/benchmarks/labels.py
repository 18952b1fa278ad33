"""Laws of sums of labels and their advantages, beside scipy and qif; a section of bench.py."""

import itertools
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

BAG, BAGS = 512, 1000
SMALL = 10
REPEATS = 5
GRID = "labels-advantage"


def table() -> Iterator[str]:
    """Yield what our exact methods and their peers take for the same work, in one process on one core."""
    import qif
    from scipy.stats import poisson_binom

    from privcore.labels.geometric import released
    from privcore.labels.poisson_binomial import leave_one_out
    from privcore.labels.rows import exact_at

    rng = np.random.default_rng(1)
    etas = rng.beta(2.0, 30.0, (BAGS, BAG))
    leave_one_out(etas[0, :20])  # loads compiled code
    all_bags = seconds_of(lambda: [leave_one_out(bag) for bag in etas])
    one_bag = seconds_of(lambda: leave_one_out(etas[0]))
    counts = np.arange(BAG)
    scipy_law = seconds_of(lambda: poisson_binom.pmf(counts, etas[0, 1:]))

    labels = np.array(list(itertools.product((0, 1), repeat=SMALL)))
    channel = (labels.sum(axis=1)[:, None] == np.arange(SMALL + 1)).astype(float)
    gain = np.stack([(labels[:, 0] == guess).astype(float) for guess in (0, 1)])
    small = etas[0, :SMALL]
    prior = np.where(labels == 1, small, 1.0 - small).prod(axis=1)
    theirs = seconds_of(lambda: qif.measure.g_vuln.add_leakage(gain, prior, channel))
    ours = seconds_of(lambda: exact_at(small, *released(leave_one_out(small), math.inf)))

    yield "| work, on one core | ours, seconds | peer | peer, seconds | ratio |"
    yield "|---|---|---|---|---|"
    yield f"| leave-one-out laws of {BAGS} bags of {BAG} | {all_bags:.3g} | | | |"
    yield (
        f"| leave-one-out laws of a bag of {BAG} | {one_bag:.3g} | scipy's `poisson_binom`, {BAG} laws "
        f"| {BAG * scipy_law:.3g} | {BAG * scipy_law / one_bag:.0f} |"
    )
    yield (
        f"| advantage of all members of a bag of {SMALL} | {ours:.3g} | qif, {SMALL} leakages "
        f"of a channel of {2**SMALL} rows | {SMALL * theirs:.3g} | {SMALL * theirs / ours:.0f} |"
    )
    yield ""
    yield _grid()


def seconds_of(work: Callable[[], object]) -> float:
    """Return the median processor time of some runs."""
    times = []
    for _ in range(REPEATS):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return statistics.median(times)


def _grid() -> str:
    """Return what the full grid of advantages takes, from nothing, on two cores."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(Path(sys.executable).with_name("privsweep")), "run", GRID]
        started = time.perf_counter()
        subprocess.run([*command, "--store", f"{folder}/store"], capture_output=True, check=True)
        seconds = time.perf_counter() - started
    return f"The sweep `{GRID}` (10 epsilons, 10 bag sizes, 4 mechanisms, 4 priors): {seconds:.0f} s."
