"""The pages of the book, and in `tools` the programs that make it from a clone."""
