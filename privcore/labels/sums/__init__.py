"""Distributions of sums of labels: of unequal labels, with noise, in partitions, and in rows of arrays."""
