"""Membership inference on means of discrete records."""
