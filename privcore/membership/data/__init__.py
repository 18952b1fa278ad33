"""Bounds from data: sampled records, and the estimates they allow."""
