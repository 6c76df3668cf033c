"""`python -m labelaudit`: the command, where its script is not on the path."""

import sys

from labelaudit.cli import main

if __name__ == "__main__":
    sys.exit(main())
