"""Privacy losses of any size, the logarithms of likelihood ratios, and the ends of their sums."""
