"""Laws of a record: discrete, finite or countable, with or without a continuous part."""
