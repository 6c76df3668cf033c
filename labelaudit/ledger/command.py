"""The `labelaudit ledger` command."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any


def add_parser(subparsers: Any) -> None:
    """Add `ledger` to the command line."""
    parser = subparsers.add_parser(
        "ledger",
        help="check every statement of the paper",
        description="Run the check behind every statement of the paper and print the verdicts.",
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write the ledger as JSON")
    parser.add_argument("--only", metavar="ID", help="run one statement, for example T3.2-sqrt")
    parser.add_argument(
        "--quick", action="store_true", help="the same verdicts from a smaller search"
    )
    parser.set_defaults(run=run_command)


def run_command(arguments: argparse.Namespace) -> int:
    """Run the ledger; a refusal is one line on standard error and exit status 2."""
    from labelaudit import ledger

    try:
        selected = ledger.select(arguments.only)
        if arguments.json is not None:
            _require_writable(arguments.json)
    except (ValueError, OSError) as refusal:
        print(f"labelaudit ledger: {refusal}", file=sys.stderr)
        return 2
    search = ledger.Search(quick=arguments.quick)
    entries = []
    for row in selected:
        found = ledger.entry(row, search)
        entries.append(found)
        print(ledger.as_block(found), flush=True)
    print(ledger.as_totals(entries))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(entries, indent=2) + "\n", encoding="utf-8")
    return 0


def _require_writable(path: Path) -> None:
    """Refuse before the checks run, not after, when the file could not be written."""
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise OSError(f"cannot write {path}: give the name of a file in an existing folder")
