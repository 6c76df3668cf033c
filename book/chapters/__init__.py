"""What chapters import that read the tables of `results/`, and so work in a clone only."""
