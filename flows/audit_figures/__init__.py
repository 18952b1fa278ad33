"""The figures of arXiv:2410.22235v1 on audits in one run, drawn from a store."""
