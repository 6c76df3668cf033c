"""The `labelaudit` command.

Each command lives in the module that does the work, behind `add_parser(subparsers)`; a command's
parser sets `run`, a function from the parsed arguments to an exit status. A module is imported
only when one of its commands is called, so that `labelaudit --help` answers at once. The commands
that run the book are in `book.tools`, which is part of a clone and of no wheel.
"""

import argparse
import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib import metadata

from labelaudit.command_line import CommandError, Parser, did_you_mean, exit_status

# command: the module that offers its parser, and one line for the list of commands
COMMANDS = {
    "chapters": ("book.tools.commands", "list the chapters, their parameters and their cost"),
    "run": ("book.tools.commands", "run one chapter with parameters of your own"),
    "book": ("book.tools.commands", "run what is out of date and build the site"),
    "serve": ("book.tools.serve.command", "open the book and run chapters from their pages"),
    "pdf": ("book.tools.pdf", "print the whole book as one PDF"),
    "teach": ("book.tools.teaching", "make a class's own copies of a chapter, and the key"),
    "grade": ("book.tools.teaching", "grade what a class handed in"),
    "slides": ("book.tools.lecture", "make slides of a chapter"),
    "handout": ("book.tools.lecture", "make what a lecture needs on paper"),
    "ledger": ("labelaudit.ledger.command", "check every statement of the paper"),
    "audit": ("labelaudit.auditing.command", "audit a table of your own, and write a report"),
    "sweep": ("labelaudit.learning.sweep.command", "train every mechanism of a grid"),
    "results": (
        "labelaudit.learning.sweep.command",
        "list, export, import or verify the results of sweeps",
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    return exit_status("labelaudit", lambda: _run(arguments))


def _run(arguments: list[str]) -> int:
    command = arguments[0] if arguments else None
    parser = build_parser(command)
    if command is not None and not command.startswith("-") and command not in COMMANDS:
        parser.error(f"there is no command {command!r}{did_you_mean(command, COMMANDS)}")
    parsed, left = parser.parse_known_args(arguments)
    if left:
        Parser(prog=f"labelaudit {command}").error(f"unrecognized arguments: {' '.join(left)}")
    parsed.given = arguments
    return parsed.run(parsed)


def build_parser(command: str | None) -> argparse.ArgumentParser:
    """The parser, complete for the command that is called and an outline for the others."""
    in_clone = _book_tools_are_there()
    *names, last = (name for name, (module, _) in COMMANDS.items() if module.startswith("book."))
    also = f" In a clone of the repository there are also {', '.join(names)} and {last}."
    parser = Parser(
        prog="labelaudit",
        description="Audit how much a release of private labels helps an attacker guess them,"
        " and run the book that explains it.",
        epilog=f"labelaudit COMMAND --help tells more about each of them.{also * (not in_clone)}",
    )
    version = f"labelaudit {metadata.version('labelaudit')}"
    parser.add_argument("--version", action="version", version=version)
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    if command not in COMMANDS:
        for name, (module, summary) in COMMANDS.items():
            if in_clone or not module.startswith("book."):
                subparsers.add_parser(name, help=summary)
        return parser
    module = COMMANDS[command][0]
    if module.startswith("book.") and not in_clone:
        raise CommandError(
            f"`labelaudit {command}` needs the book, which is not part of the installed package:"
            " clone the repository, run `pip install --editable '.[book,train]'` in it, and call"
            " the command there"
        )
    importlib.import_module(module).add_parser(subparsers)
    return parser


def _book_tools_are_there() -> bool:
    try:
        return importlib.util.find_spec("book.tools.commands") is not None
    except ModuleNotFoundError:
        return False
