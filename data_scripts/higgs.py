"""Fetch, prepare and verify UCI HIGGS: see --help."""

import sys

from labelaudit.datasets.command import main

if __name__ == "__main__":
    sys.exit(main("higgs"))
