"""Reports of what a store holds, as one self-contained HTML file or as Markdown."""
