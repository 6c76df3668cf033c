"""The book: what its chapters import, and in `tools` the programs that make it from a clone."""
