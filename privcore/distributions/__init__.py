"""Distributions of records and of labels: notation, columns of data, classes."""
