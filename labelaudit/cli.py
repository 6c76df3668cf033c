"""The `labelaudit` command.

Each command lives in the module that does the work, behind `add_parser(subparsers)`; a command's
parser sets `run`, a function from the parsed arguments to an exit status. A module is imported
only when one of its commands is called, so that `labelaudit --help` answers at once.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from labelaudit.command_line import Parser, did_you_mean, exit_status

# command: the module that offers its parser, and one line for the list of commands
COMMANDS = {
    "chapters": ("labelaudit.book.commands", "list the chapters, their parameters and their cost"),
    "run": ("labelaudit.book.commands", "run one chapter with parameters of your own"),
    "book": ("labelaudit.book.commands", "run what is out of date and build the site"),
    "ledger": ("labelaudit.ledger.command", "check every statement of the paper"),
    "audit": ("labelaudit.report.command", "audit a table of your own, and write a report"),
    "teach": ("labelaudit.teach.command", "make a class's own copies of a chapter, and the key"),
    "sweep": ("labelaudit.learning.sweep.command", "train every mechanism of a grid"),
    "results": (
        "labelaudit.learning.sweep.command",
        "list, export or verify the results of sweeps",
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    command = arguments[0] if arguments else None
    parser = build_parser(command)
    if command is not None and not command.startswith("-") and command not in COMMANDS:
        parser.error(f"there is no command {command!r}{did_you_mean(command, COMMANDS)}")
    parsed, left = parser.parse_known_args(arguments)
    if left:
        Parser(prog=f"labelaudit {command}").error(f"unrecognized arguments: {' '.join(left)}")
    return exit_status("labelaudit", lambda: parsed.run(parsed))


def build_parser(command: str | None) -> argparse.ArgumentParser:
    """The parser, complete for the command that is called and an outline for the others."""
    parser = Parser(
        prog="labelaudit",
        description="Audit how much a release of private labels helps an attacker guess them,"
        " and run the book that explains it.",
        epilog="labelaudit COMMAND --help tells more about each of them.",
    )
    parser.add_argument("--version", action="version", version=f"labelaudit {_version()}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    if command in COMMANDS:
        importlib.import_module(COMMANDS[command][0]).add_parser(subparsers)
    else:
        for name, (_, summary) in COMMANDS.items():
            subparsers.add_parser(name, help=summary)
    return parser


def _version() -> str:
    from importlib import metadata

    return metadata.version("labelaudit")
