"""Membership inference on linear regression."""
