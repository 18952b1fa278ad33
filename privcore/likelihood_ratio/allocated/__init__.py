"""Ratios of k steps out of t and of shuffled batches: symmetric means, sums of losses, and their tails."""
