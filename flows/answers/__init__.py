"""Answers to one question: asked, explained, compared, exported."""
