"""Run every benchmark, print its table, and write the numbers as JSON."""

from __future__ import annotations

import argparse
import importlib
import json
from pathlib import Path

from benchmarks.tools import machine

SUITES = ("attack", "data", "learning", "sweep", "audit")


def main() -> None:
    """Run the suites named on the command line, or all of them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("suites", nargs="*", help=f"which of {', '.join(SUITES)} (default: all)")
    parser.add_argument("--output", type=Path, default=Path("_build/benchmarks"))
    arguments = parser.parse_args()
    unknown = set(arguments.suites) - set(SUITES)
    if unknown:
        parser.error(f"unknown suite {min(unknown)!r}; there are {', '.join(SUITES)}")
    arguments.output.mkdir(parents=True, exist_ok=True)
    print(machine())
    print("A line ends with what is promised and whether this run, on this machine, meets it.\n")
    for suite in arguments.suites or SUITES:
        rows = importlib.import_module(f"benchmarks.{suite}").run()
        path = arguments.output / f"{suite}.json"
        path.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1) + "\n")
        print(f"\nwritten to {path}\n")


if __name__ == "__main__":
    main()
