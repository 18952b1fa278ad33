"""The place of a store: a folder or a bucket, its layout, and every change of a file."""
