"""Learning from released labels: releases, utility, gradients, training, and its data sets."""
