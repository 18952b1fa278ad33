"""Membership inference: bounds on how well an attack separates training records from fresh records."""
