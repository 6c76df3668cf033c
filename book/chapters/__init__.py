"""What only chapters import. What reads the tables of `results/` works in a clone only."""
