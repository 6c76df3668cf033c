"""The `labelbook` command: everything that runs, builds, checks, teaches and prints the book."""

import sys
from collections.abc import Sequence

from labelaudit.command_line import exit_status, run_command

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
    "ledger": ("book.ledger.command", "check every statement of the paper"),
    "sweep": ("book.sweep.command", "train every mechanism of a grid"),
    "results": ("book.sweep.command", "list, export, import or verify the results of sweeps"),
}
DESCRIPTION = "Run, build, check, teach and print the book on auditing label privacy."


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    return exit_status(
        "labelbook", lambda: run_command("labelbook", COMMANDS, DESCRIPTION, arguments)
    )
