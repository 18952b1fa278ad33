"""Audits in one run, by their words, scores, counts or error rates."""
