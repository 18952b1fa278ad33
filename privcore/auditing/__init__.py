"""Audits of differential privacy in one run: from counts of correct guesses to a refuted epsilon."""

from privcore.auditing.problems import AuditEpsilon, AuditGaussianTail, AuditTail
from privcore.auditing.scores import (
    area_interval,
    area_under_curve,
    best_threshold,
    check_half_included,
    check_included,
    check_one_included,
    correct_if_shuffled,
    first_half,
    guess,
    guess_candidates,
    guess_clearest,
    true_positive_rate,
)

__all__ = [
    "AuditEpsilon",
    "AuditGaussianTail",
    "AuditTail",
    "area_interval",
    "area_under_curve",
    "best_threshold",
    "check_half_included",
    "check_included",
    "check_one_included",
    "correct_if_shuffled",
    "first_half",
    "guess",
    "guess_candidates",
    "guess_clearest",
    "true_positive_rate",
]
