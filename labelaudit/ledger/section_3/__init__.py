"""Section 3 of the paper: the measures, and the bounds for each mechanism."""
