"""Numerical building blocks: special functions, sums, searches, tail bounds."""
