"""Reports on the contents of a store, as one self-contained HTML file or as Markdown."""
