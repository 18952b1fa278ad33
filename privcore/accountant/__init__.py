"""Accountant to plug in: events of dp-accounting, histories of Opacus, calibration in jax_privacy."""

from privcore.accountant.accountant import PrivsweepAccountant

__all__ = ["PrivsweepAccountant"]
