"""SQL over a store: views, macros, lookups, and the snapshot that they query."""
