"""Figure 1's grid by the methods of random-allocation, one JSON line a point; run by the peers' interpreter.

All settings, such as the grid and the orders of the direct bound, are those of the authors' script, except
for the number of steps, which is that of the caption of the figure.
"""

import json
import sys
import time
from typing import Any

from random_allocation.comparisons.structs import (  # type: ignore[import-not-found]
    Direction,
    PrivacyParams,
    SchemeConfig,
)
from random_allocation.other_schemes.local import local_epsilon  # type: ignore[import-not-found]
from random_allocation.other_schemes.poisson import (  # type: ignore[import-not-found]
    Poisson_epsilon_PLD,
)
from random_allocation.other_schemes.shuffle import (  # type: ignore[import-not-found]
    shuffle_epsilon_analytic,
)
from random_allocation.random_allocation_scheme import (  # type: ignore[import-not-found]
    allocation_epsilon_decomposition,
    allocation_epsilon_direct,
    allocation_epsilon_recursive,
)

METHODS: dict[str, Any] = {
    "unamplified.exact": local_epsilon,
    "poisson.certified": Poisson_epsilon_PLD,
    "shuffling.clones": shuffle_epsilon_analytic,
    "allocation.decomposition": allocation_epsilon_decomposition,
    "allocation.recursive": allocation_epsilon_recursive,
    "allocation.direct": allocation_epsilon_direct,
}
"""The peer's functions by the names of our methods; quick functions come first."""


def main() -> None:
    steps, delta = int(sys.argv[1]), float(sys.argv[2])
    config = SchemeConfig(allocation_direct_alpha_orders=list(range(2, 61)))
    for name, epsilon in METHODS.items():
        for sigma in map(float, sys.argv[3:]):
            params = PrivacyParams(sigma=sigma, num_steps=steps, delta=delta)
            started = time.process_time()
            value = float(epsilon(params=params, config=config, direction=Direction.BOTH))
            seconds = time.process_time() - started
            row = {"method": name, "sigma": sigma, "epsilon": value, "seconds": seconds}
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
