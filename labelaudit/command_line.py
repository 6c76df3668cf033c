"""What all commands of the project have in common: parser, errors, exit status.

Exit status: 0 done, 1 failed, 2 invalid input (nothing was run), 130 interrupted. An audit that is
done and recommends nothing has 3.
"""

import argparse
import difflib
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, NoReturn

# What a shell reports of a command whose output nobody reads any more, as under `| head`.
CUT_OFF = 141


class CommandError(Exception):
    """Ends a command with one line on the error stream, no traceback, and an exit status.

    Status 2 says that nothing was run; a subclass sets 1 where something ran and failed.
    """

    status = 2


class Parser(argparse.ArgumentParser):
    """A parser that reports an error in one line, and names the option that may be meant."""

    def __init__(self, **settings: Any) -> None:
        """Accept whole option names only: an abbreviation may be another option misspelt."""
        super().__init__(**({"allow_abbrev": False} | settings))

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Look for misspelt options first: what they leave missing is not the mistake."""
        if self._subparsers is None:
            words = sys.argv[1:] if args is None else args
            options = [word.split("=")[0] for word in words if word.startswith("--")]
            for option in options:
                if option != "--" and option not in self._option_string_actions:
                    near = did_you_mean(option, self._option_string_actions)
                    self.error(f"there is no option {option}{near}")
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """End with status 2 and one line, without the usage, which `--help` shows."""
        self.exit(2, f"{self.prog}: {message} ({self.prog} --help tells more)\n")


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """The end of an error message about an unknown word: the nearest known one, or `otherwise`.

    >>> did_you_mean("epsilom", ["epsilons", "seed"])
    '; did you mean epsilons?'
    >>> did_you_mean("x", ["epsilons", "seed"], "; there are epsilons and seed")
    '; there are epsilons and seed'
    """
    plain = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), list(plain), n=1, cutoff=0.5)
    return f"; did you mean {plain[near[0]]}?" if near else otherwise


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{number:,} {noun if number == 1 else noun + 's'}"


def must_be_writable(path: Path) -> None:
    """Raise an error if no file can be written there; call it before any work starts."""
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise CommandError(f"cannot write {path}: name a file in a folder that exists")


def run_command(
    name: str,
    commands: Mapping[str, tuple[str, str]],
    description: str,
    arguments: Sequence[str],
) -> int:
    """Run the command that the arguments name, and give its exit status.

    `commands` says of each command which module offers its parser, by `add_parser(subparsers)`, and
    one line for the list. A parser sets `run`, a function from the parsed arguments to an exit
    status. Only the module of the command that is called is imported, so `--help` answers at once.
    """
    called = arguments[0] if arguments else None
    parser = Parser(
        prog=name,
        description=description,
        epilog=f"{name} COMMAND --help tells more about each of them.",
    )
    version = f"{name} {metadata.version('labelaudit')}"
    parser.add_argument("--version", action="version", version=version)
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    if called is not None and called in commands:
        import_module(commands[called][0]).add_parser(subparsers)
    else:
        for command, (_, summary) in commands.items():
            subparsers.add_parser(command, help=summary)
        if called is not None and not called.startswith("-"):
            parser.error(f"there is no command {called!r}{did_you_mean(called, commands)}")
    parsed, left = parser.parse_known_args(arguments)
    if left:
        Parser(prog=f"{name} {called}").error(f"unrecognized arguments: {' '.join(left)}")
    parsed.given = arguments
    return parsed.run(parsed)


def exit_status(name: str, run: Callable[[], int]) -> int:
    """Call `run` and give its status; expected errors become one line that starts with `name`."""
    try:
        status = run()
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # Nothing may be left to flush at the interpreter's exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CUT_OFF
    except CommandError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return error.status
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return 130
    except ModuleNotFoundError as error:
        if (error.name or "book").split(".")[0] in ("labelaudit", "book"):
            raise
        print(
            f"{name}: this needs {error.name}, which is not installed; in a clone,"
            " pip install --editable '.[book,train]' installs everything",
            file=sys.stderr,
        )
        return 1
    except OSError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
