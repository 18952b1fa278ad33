"""The figures of arXiv:2310.13786v6."""
