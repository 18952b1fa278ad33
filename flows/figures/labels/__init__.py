"""The figures of arXiv:2406.02797v1."""
