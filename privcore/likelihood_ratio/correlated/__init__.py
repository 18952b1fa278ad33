"""Means of correlated lognormal ratios, between tractable means of smaller and larger covariances."""
