"""Bounds for every prior: closed forms, explicit bounds, variation distances, and largest ends."""
