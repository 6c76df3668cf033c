"""Fetch, prepare and verify KDD Cup 2012, track 2: see --help."""

import sys

from labelaudit.datasets.command import main

if __name__ == "__main__":
    sys.exit(main("kdd12"))
