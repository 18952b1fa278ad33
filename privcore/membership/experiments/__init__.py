"""Experiments with trained models."""
