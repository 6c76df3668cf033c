"""The commands `labelaudit` and `labelbook`.

`labelaudit` works wherever the package is installed. `labelbook` needs the book, which is part of a
clone and of no wheel; this module only looks whether it is there.
"""

import sys
from collections.abc import Sequence

from labelaudit.command_line import CommandError, exit_status, run_command

# command: the module that offers its parser, and one line for the list of commands
COMMANDS = {
    "audit": ("labelaudit.auditing.command", "audit a table of your own, and write a report"),
}
DESCRIPTION = "Audit how much a release of private labels helps an attacker guess them."
# Commands of version 0.2 that `labelbook` has now.
MOVED = ("chapters", "run", "book", "serve", "pdf", "teach", "grade", "slides", "handout", "ledger",
         "sweep", "results")  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    return exit_status("labelaudit", lambda: _run(arguments))


def _run(arguments: Sequence[str]) -> int:
    if arguments and arguments[0] in MOVED:
        raise CommandError(
            f"`{arguments[0]}` is a command of the book now: `labelbook {arguments[0]}`, in a clone"
            " of the repository"
        )
    return run_command("labelaudit", COMMANDS, DESCRIPTION, arguments)


def labelbook() -> int:
    """Run a command of the book, if this is a clone."""
    try:
        from book.cli import main as main_of_book
    except ModuleNotFoundError as error:
        if error.name not in ("book", "book.cli"):
            raise
        print(
            "labelbook: the book is not part of the installed package: clone the repository, and"
            " call `make book` in it, or `pip install --editable '.[book,train]'`",
            file=sys.stderr,
        )
        return 2
    return main_of_book()
