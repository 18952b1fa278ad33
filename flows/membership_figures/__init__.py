"""The figures of arXiv:2310.13786v6 on limits of membership inference, and more, drawn from a store."""
