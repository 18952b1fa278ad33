"""Membership inference: how well an attack can tell the records of a training set from fresh ones."""
