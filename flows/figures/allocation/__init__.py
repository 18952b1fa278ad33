"""The figures of arXiv:2502.08202v3."""
