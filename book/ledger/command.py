"""The `labelbook ledger` command."""

import argparse
import json
import os
from pathlib import Path
from typing import Any

from labelaudit.command_line import CommandError, must_be_writable
from labelaudit.files import write_atomically


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
    parser.add_argument(
        "--certify",
        metavar="FILE",
        type=Path,
        nargs="?",
        const=Path(os.devnull),
        help="make and verify the certificates behind the proofs; FILE keeps them",
    )
    parser.set_defaults(run=run_command)


def run_command(arguments: argparse.Namespace) -> int:
    """Print each statement as its check ends, then the totals; write the JSON last."""
    from book import ledger

    if arguments.certify is not None:
        if arguments.only or arguments.json or arguments.quick:
            raise CommandError(
                "--certify makes all certificates: leave out --only, --json, --quick"
            )
        from book.ledger.certify import certify

        return certify(arguments.certify)
    try:
        selected = ledger.select(arguments.only)
    except ValueError as unknown:
        raise CommandError(str(unknown)) from unknown
    if arguments.json is not None:
        must_be_writable(arguments.json)
    entries = []
    for row in selected:
        entries.append(ledger.entry(row, arguments.quick))
        print(ledger.as_block(entries[-1]), flush=True)
    print(ledger.as_totals(entries))
    if arguments.json is not None:
        write_atomically(arguments.json, json.dumps(entries, indent=2) + "\n")
    return 0
