"""Test vectors: questions with proved brackets, against which other implementations can be held."""
