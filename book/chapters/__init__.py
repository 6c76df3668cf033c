"""What chapters 10, 11 and 12 draw and tabulate; they read `results/`, so they need a clone."""
