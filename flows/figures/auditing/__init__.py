"""The figures of arXiv:2410.22235v1."""
