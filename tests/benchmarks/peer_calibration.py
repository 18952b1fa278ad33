"""Noise for a target epsilon under Poisson sampling by dp-accounting 0.6 and riskcal; run by peer.py."""

from typing import Any

import dp_accounting
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from peer_server import serve  # type: ignore[import-not-found]
from riskcal.accountants.ctd import CTDAccountant  # type: ignore[import-not-found]
from riskcal.calibration.blackbox import (  # type: ignore[import-not-found]
    find_noise_multiplier_for_epsilon_delta,
)

INTERVAL = 1e-4


def google(fields: dict[str, Any], epsilon: float, precision: float) -> float:
    """Return the noise that dp-accounting calibrates with privacy loss distributions."""

    def event(sigma: float) -> dp_event.DpEvent:
        step = dp_event.PoissonSampledDpEvent(fields["sampling_probability"], dp_event.GaussianDpEvent(sigma))
        return dp_event.SelfComposedDpEvent(step, fields["steps"])

    found = dp_accounting.calibrate_dp_mechanism(
        lambda: PLDAccountant(value_discretization_interval=INTERVAL),
        event,
        epsilon,
        fields["delta"],
        dp_accounting.ExplicitBracketInterval(0.3, 30.0),
        tol=precision,
    )
    return float(found)


def risk(fields: dict[str, Any], epsilon: float, precision: float) -> float:
    """Return the noise that riskcal calibrates; its precision is one of epsilon."""
    found = find_noise_multiplier_for_epsilon_delta(
        accountant=CTDAccountant,
        sample_rate=fields["sampling_probability"],
        num_steps=fields["steps"],
        epsilon=epsilon,
        delta=fields["delta"],
        eps_error=precision * epsilon,
        mu_min=0.3,
        mu_max=30.0,
        grid_step=INTERVAL,
    )
    return float(found)


SMALL = {"sampling_probability": 0.1, "steps": 10, "delta": 1e-3}
FIRST = {"fields": SMALL, "epsilon": 1.0, "precision": 0.1}

if __name__ == "__main__":
    serve({"google": google, "risk": risk}, {"google": FIRST, "risk": FIRST})
