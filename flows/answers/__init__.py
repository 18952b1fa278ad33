"""Answers to one problem: computed, explained, compared, exported."""
