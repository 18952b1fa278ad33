"""Laws of a probability: the prior of a label, or of any other event that is attacked."""
