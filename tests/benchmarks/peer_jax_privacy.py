"""An audit by jax-privacy, in its own environment: python peer_jax_privacy.py M GUESSES CORRECT DELTA."""

import json
import sys
import time

import numpy as np
from jax_privacy import auditing

REPEATS = 3
TAU = 0.05


def main() -> None:
    """Print epsilon of the Gaussian family and the seconds of the fastest run, as JSON."""
    canaries, guesses, correct = map(int, sys.argv[1:4])
    delta = float(sys.argv[4])
    inside = np.zeros(max(canaries // 2, correct))
    outside = np.zeros(canaries - inside.size)
    inside[:correct], outside[: guesses - correct] = 1.0, 1.0  # above the threshold: guessed to be in
    auditor = auditing.CanaryScoreAuditor(inside, outside)
    seconds = []
    epsilon = 0.0
    for _ in range(REPEATS):
        started = time.perf_counter()
        epsilon = auditor.epsilon_one_run_fdp(TAU, delta, threshold_strategy=auditing.Explicit(0.5))
        seconds.append(time.perf_counter() - started)
    print(json.dumps({"epsilon": float(epsilon), "seconds": min(seconds)}))


if __name__ == "__main__":
    main()
