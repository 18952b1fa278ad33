"""Answers about one training run: under any sampler, side by side, least noise, most steps, a statement."""
