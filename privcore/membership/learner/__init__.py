"""Membership inference on a learner, private or overfitting."""
