"""Accountant to plug in: events of dp-accounting, histories of Opacus, calibration in jax_privacy."""

from privcore.accountant.accountant import PrivsweepAccountant
from privcore.accountant.opacus import OpacusRun, from_opacus
from privcore.accountant.relation import Relation

__all__ = ["OpacusRun", "PrivsweepAccountant", "Relation", "from_opacus"]
