"""Membership inference on learners of discrete records."""
