"""One point of PLD-accounting, warm, as JSON; bench.py runs this with the peers' own interpreter."""

import json
import sys
import time

from PLD_accounting import gaussian_allocation_epsilon_range  # type: ignore[import-not-found]


def bracket(sigma: float, steps: int, delta: float) -> tuple[float, float]:
    upper, lower = gaussian_allocation_epsilon_range(delta=delta, sigma=sigma, num_steps=steps)
    return float(lower), float(upper)


def main() -> None:
    sigma, steps, delta = float(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    bracket(1.0, 10, 1e-3)  # compile outside the clock
    started = time.perf_counter()
    lower, upper = bracket(sigma, steps, delta)
    print(json.dumps({"seconds": time.perf_counter() - started, "lower": lower, "upper": upper}))


if __name__ == "__main__":
    main()
