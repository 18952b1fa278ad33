"""Convex-order engine: enclosures of likelihood-ratio distributions."""
