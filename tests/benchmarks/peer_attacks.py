"""Advantage of the best attack on Poisson sampling by riskcal 1.5.1; run by peer.py."""

from typing import Any

from peer_server import serve  # type: ignore[import-not-found]
from riskcal.calibration.dpsgd import get_advantage_for_dpsgd  # type: ignore[import-not-found]


def advantage(fields: dict[str, Any], interval: float) -> tuple[float, float]:
    """Return the largest true minus false positive rate of any attack, as an upper end."""
    found = get_advantage_for_dpsgd(
        noise_multiplier=fields["sigma"],
        sample_rate=fields["sampling_probability"],
        num_steps=fields["steps"],
        grid_step=interval,
    )
    return 0.0, float(found)


SMALL = {"sigma": 1.0, "sampling_probability": 0.1, "steps": 10}

if __name__ == "__main__":
    serve({"advantage": advantage}, {"advantage": {"fields": SMALL, "interval": 1e-3}})
