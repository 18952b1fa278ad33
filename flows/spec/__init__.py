"""Descriptions of sweeps: TOML files or typed words, grids, conditions."""
