"""Epsilon of Poisson sampling by dp-accounting 0.6 and prv-accountant 0.2; run by peer.py."""

from typing import Any

from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from peer_server import serve  # type: ignore[import-not-found]
from prv_accountant.dpsgd import DPSGDAccountant  # type: ignore[import-not-found]


def event(fields: dict[str, Any]) -> dp_event.DpEvent:
    """Return all steps."""
    step = dp_event.PoissonSampledDpEvent(
        fields["sampling_probability"], dp_event.GaussianDpEvent(fields["sigma"])
    )
    return dp_event.SelfComposedDpEvent(step, fields["steps"] * fields["epochs"])


def pld(fields: dict[str, Any], interval: float) -> tuple[float, float]:
    """Return the upper end by privacy loss distributions on a grid of this interval."""
    accountant = PLDAccountant(value_discretization_interval=interval)
    return 0.0, float(accountant.compose(event(fields)).get_epsilon(fields["delta"]))


def rdp(fields: dict[str, Any]) -> tuple[float, float]:
    """Return the upper end by Renyi differential privacy."""
    return 0.0, float(RdpAccountant().compose(event(fields)).get_epsilon(fields["delta"]))


def prv(fields: dict[str, Any], error: float) -> tuple[float, float]:
    """Return both ends of prv-accountant, with this error of epsilon and an error of delta / 1000."""
    times = fields["steps"] * fields["epochs"]
    accountant = DPSGDAccountant(
        noise_multiplier=fields["sigma"],
        sampling_probability=fields["sampling_probability"],
        max_steps=times,
        eps_error=error,
        delta_error=1e-3 * fields["delta"],
    )
    lower, _, upper = accountant.compute_epsilon(delta=fields["delta"], num_steps=times)
    return float(lower), float(upper)


SMALL = {"sigma": 1.0, "steps": 10, "epochs": 1, "sampling_probability": 0.1, "delta": 1e-3}

if __name__ == "__main__":
    serve(
        {"pld": pld, "rdp": rdp, "prv": prv},
        {
            "pld": {"fields": SMALL, "interval": 1e-3},
            "rdp": {"fields": SMALL},
            "prv": {"fields": SMALL, "error": 0.1},
        },
    )
