"""Tuning: a run is repeated a fixed or a random number of times, and only the best one is released."""
