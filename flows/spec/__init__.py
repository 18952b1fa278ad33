"""Sweeps as they are written: TOML or typed words, grids, conditions."""
