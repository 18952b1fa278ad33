"""Audits of differential privacy in one run: from counts of correct guesses to a refuted epsilon."""

from privcore.auditing.problems import AuditEpsilon, AuditGaussianTail, AuditTail
from privcore.auditing.scores import check_included, correct_if_shuffled, guess, guess_clearest

__all__ = [
    "AuditEpsilon",
    "AuditGaussianTail",
    "AuditTail",
    "check_included",
    "correct_if_shuffled",
    "guess",
    "guess_clearest",
]
