"""Where the files of a store are: a folder or a bucket, its layout, and every change of a file."""
