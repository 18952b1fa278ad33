"""Audits of differential privacy in one run: from counts of correct guesses to an epsilon that is refuted."""

from privcore.auditing.problems import AuditEpsilon, AuditGaussianTail, AuditTail

__all__ = ["AuditEpsilon", "AuditGaussianTail", "AuditTail"]
