"""The figures of arXiv:2502.08202, drawn from a store."""
