"""Tools that work in a clone only: chapters are run, the site is built, a class gets its copies."""
