"""Membership inference on the mean of Gaussian records."""
