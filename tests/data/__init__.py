"""Files of the kinds that people have."""
