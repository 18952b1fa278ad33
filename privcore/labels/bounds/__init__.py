"""Bounds for every prior: closed forms, explicit bounds, variation distances, and the reach of a mechanism."""
