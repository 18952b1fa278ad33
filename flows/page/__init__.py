"""The lookup page: a static folder that answers questions from the stored brackets in a browser."""
