"""The `labelaudit` command.

Each command lives in the module that does the work, behind `add_parser(subparsers)`; a command's
parser sets `run`, a function from the parsed arguments to an exit status, which raises a `Refusal`
to end with a plain line. A module is imported only when one of its commands is called, so that
`labelaudit --help` answers at once.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from labelaudit.refusal import Refusal

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


# What a shell reports of a command that wrote where nobody reads.
CUT_OFF = 141


class Parser(argparse.ArgumentParser):
    """A parser that refuses in one line, and names the option or command that may be meant."""

    def __init__(self, **settings: Any) -> None:
        """Take every option by its whole name only: half a name may be a misspelt other one."""
        super().__init__(**({"allow_abbrev": False} | settings))

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Look for misspelt options first: what they leave missing is not what went wrong."""
        if self._subparsers is None:
            options = [
                word.split("=")[0] for word in args if word.startswith("--") and word != "--"
            ]
            for option in options:
                if option not in self._option_string_actions:
                    near = _near(option, self._option_string_actions)
                    self.error(f"there is no option {option}{near}")
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """End with status 2 and one line, without the usage, which `--help` shows."""
        self.exit(2, f"{self.prog}: {message} ({self.prog} --help tells more)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    command = arguments[0] if arguments else None
    parser = build_parser(command)
    if command is not None and not command.startswith("-") and command not in COMMANDS:
        parser.error(f"there is no command {command!r}{_near(command, COMMANDS)}")
    parsed, left = parser.parse_known_args(arguments)
    if left:
        Parser(prog=f"labelaudit {command}").error(f"unrecognized arguments: {' '.join(left)}")
    try:
        status = parsed.run(parsed)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # Whoever reads, as `| head` does, has had enough; nothing is left to be said at the exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CUT_OFF
    except Refusal as refusal:
        print(f"labelaudit: {refusal}", file=sys.stderr)
        return refusal.status
    except KeyboardInterrupt:
        print("labelaudit: interrupted", file=sys.stderr)
        return 130
    except ModuleNotFoundError as error:
        print(f"labelaudit: {_missing(error)}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"labelaudit: {error}", file=sys.stderr)
        return 1


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


def _near(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _missing(error: ModuleNotFoundError) -> str:
    if (error.name or "labelaudit").startswith("labelaudit"):
        raise error
    install = "in a checkout, pip install '.[book,train]' brings everything"
    return f"this needs {error.name}, which is not installed; {install}"


def _version() -> str:
    from importlib import metadata

    return metadata.version("labelaudit")
