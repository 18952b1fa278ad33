"""The figures of arXiv:2406.02797v1 and of its workshop paper, drawn from a store."""
