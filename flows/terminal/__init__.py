"""The terminal of a person: its window, and lines that are replaced in place."""
