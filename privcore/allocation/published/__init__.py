"""Bounds of the papers on random allocation: by decomposition, truncation and Renyi divergences."""
