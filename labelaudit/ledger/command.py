"""The `labelaudit ledger` command."""

from __future__ import annotations

import argparse
import json
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from labelaudit.command_line import CommandError

NEEDS = ("mpmath", "scipy", "sympy", "yaml")


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
    """Print each statement as its check ends, then the totals; write the JSON last."""
    missing = " and ".join(name for name in NEEDS if find_spec(name) is None)
    if missing:
        raise CommandError(f"the checks need {missing}, which come with labelaudit: reinstall it")

    from labelaudit import ledger

    try:
        selected = ledger.select(arguments.only)
    except ValueError as unknown:
        raise CommandError(str(unknown)) from unknown
    if arguments.json is not None and not _writable(arguments.json):
        raise CommandError(f"cannot write {arguments.json}: name a file in a folder that exists")
    entries = []
    for row in selected:
        entries.append(ledger.entry(row, ledger.Search(quick=arguments.quick)))
        print(ledger.as_block(entries[-1]), flush=True)
    print(ledger.as_totals(entries))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(entries, indent=2) + "\n", encoding="utf-8")
    return 0


def _writable(path: Path) -> bool:
    """Asked before the checks run, so that a wrong name does not waste them."""
    return not path.is_dir() and os.access(path if path.exists() else path.parent, os.W_OK)
