"""Likelihood ratios as laws on cells: averaged, multiplied, mixed, and read off, with proved errors."""
