"""The convex-order engine: enclosures of the distribution of a likelihood ratio."""
