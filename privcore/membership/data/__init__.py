"""Bounds from data: from a sample of the records, or from the counts of an attack."""
