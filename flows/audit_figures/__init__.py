"""The figures of arXiv:2410.22235 on audits in one run, drawn from a store."""
