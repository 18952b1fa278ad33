"""Bounds for every prior: closed forms, explicit bounds, variation distances, and what a mechanism allows."""
