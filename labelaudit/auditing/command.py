"""The `labelaudit audit` command."""

import argparse
import dataclasses
import shlex
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labelaudit.command_line import CommandError, must_be_writable

if TYPE_CHECKING:
    from labelaudit.auditing.report import SavedReport

# What is needed to read a table and write the page; to learn eta; to measure priors in parts.
ALWAYS, LEARNS, PARTS = (
    ("pandas", "pyarrow", "matplotlib", "jinja2"),
    ("sklearn",),
    ("distributed",),
)
# The exit status where the audit is done and recommends something, or nothing.
RECOMMENDED, NOT_RECOMMENDED = 0, 3
# Options that are not fields of `Columns` or `Options`, whose defaults are the fields' own.
NOT_FIELDS = ("file", "output", "overwrite", "run", "given", "workers", "address", "label", "ids")
# Options that name a column.
COLUMN_OPTIONS = {
    "label": "the sensitive label; it may be left out with --prior: then parquet files of any size"
    " are read in parts, and a run that was stopped goes on",
    "prior": "P(label = 1), if you have it already",
    "bag": "the bag of each record, such as a day",
    "person": "whose record it is: folds, intervals and epsilon are then by person",
    "by": "also show results for each group, such as by sex",
    "id": "names of the records (default: row numbers)",
}


class Failure(CommandError):
    """An audit that began and could not go on."""

    status = 1


def add_parser(subparsers: Any) -> None:
    """Add `audit` to the command line."""
    parser = subparsers.add_parser(
        "audit",
        help="audit a table of your own: which mechanism meets a privacy target, at what cost",
        description="Audit a table with a sensitive label. Writes a page to read and a JSON file"
        " with every number.",
        epilog="Exit status: 0 something is recommended, 1 the audit failed, 2 invalid input,"
        " 3 the audit is done and recommends nothing.",
    )
    parser.add_argument(
        "file", type=Path, help="the table, csv or parquet; with --prior alone also a folder"
    )
    for name, meaning in COLUMN_OPTIONS.items():
        destination = "identifier" if name == "id" else name
        parser.add_argument(f"--{name}", dest=destination, metavar="COLUMN", help=meaning)
    _add_features(parser.add_argument)
    _add_comparison(parser.add_argument)
    parser.add_argument(
        "--output", type=Path, metavar="FILE.html", help="the page (default: FILE-audit.html here)"
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace a page or numbers that are there already"
    )
    parser.set_defaults(run=run_command)


def _add_features(option: Callable[..., Any]) -> None:
    """Options about the columns that are no single column."""
    option("--positive", metavar="VALUE", help="which of its two values counts as 1")
    option("--features", nargs="+", metavar="COLUMN", help="features (default: all)")
    option(
        "--leave-out", action="append", metavar="COLUMN",
        help="a column that the attacker does not have, such as one made from the label; it may be"
        " given several times",
    )  # fmt: skip
    option(
        "--hide-bag", action="store_const", const=True,
        help="keep the bag column from the attacker (default: it is a feature)",
    )  # fmt: skip
    option(
        "--no-ids", dest="ids", action="store_const", const=False,
        help="do not list the most exposed records",
    )  # fmt: skip


def _add_comparison(option: Callable[..., Any]) -> None:
    """Options about what to compare; defaults are those of `Options`."""
    option(
        "--mechanisms", nargs="+", metavar="NAME",
        help="of rr, llp, geometric, laplace (default: these four); counts suppressed=5 (below 5),"
        " rounded=5, censored=1 (never 0 or k), gaussian=2 (noise), subset=0.1 (of the labels);"
        " rr-prior=0.1 (response that knows P(label = 1));"
        " FILE.py[:CLASS] or CHANNEL.csv for your own",
    )  # fmt: skip
    lists: dict[str, tuple[type, str, str]] = {
        "bag-sizes": (int, "K", "default: 2 8 32, smaller for a small table"),
        "epsilons": (float, "EPSILON", "default: 0.5 1 2 4"),
        "repeats": (int, "R", "numbers of releases to look ahead to (default: 1 2 5)"),
        "known": (int, "J", "members known to an attacker (default: none, half, ... all)"),
        "learners": (str, "NAME", "models of eta, of boosting (default) and logistic: with several,"
                     " intervals include how they differ"),
    }  # fmt: skip
    for name, (kind, metavar, meaning) in lists.items():
        option(f"--{name}", nargs="+", type=kind, metavar=metavar, help=meaning)
    singles: dict[str, tuple[type, str, str]] = {
        "target": (str, "KIND=VALUE", "additive=0.01, multiplicative=1 or epsilon=1 (default:"
                   " additive, a tenth of what an attacker gets wrong without any release)"),
        "level": (float, "LEVEL", "level of the multiplicative percentile (default: 0.98)"),
        "utility": (str, "MODEL", "none or logistic (default; none with --prior)"),
        "refits": (int, "N", "times eta is estimated (default: 3, 6 for a small table)"),
        "seed": (int, "N", "default: 0"),
        "workers": (int, "N", "processes for priors without labels"),
        "address": (str, "tcp://HOST:8786", "a Dask cluster for priors without labels, whose"
                    " workers have one thread each and find the files under the same name (default:"
                    " processes of this machine)"),
    }  # fmt: skip
    for name, (kind, metavar, meaning) in singles.items():
        option(f"--{name}", type=kind, metavar=metavar, help=meaning)
    option(
        "--no-search", dest="search", action="store_const", const=False,
        help="try the listed settings only (default: also search for the least noisy between them)",
    )  # fmt: skip


def run_command(arguments: argparse.Namespace) -> int:
    """Reject what cannot be done, then do it, and say where the two files are."""
    _check_combination(arguments)
    _check_installed(arguments)
    page = arguments.output or Path(f"{arguments.file.stem}-audit.html")
    _check_output(page, arguments.overwrite)
    progress = _progress()
    if arguments.label is None:
        return _run_on_priors(arguments, page, progress)
    from labelaudit.auditing.flow import prepare, run
    from labelaudit.mechanisms.custom import CustomMechanismError

    given = {name: value for name, value in vars(arguments).items() if value is not None}
    keywords = {name: value for name, value in given.items() if name not in NOT_FIELDS}
    progress(f"reading {arguments.file}")
    try:
        prepared = prepare(arguments.file, arguments.label, **keywords)
    except (ValueError, TypeError) as error:
        raise CommandError(str(error)) from error
    try:
        report = run(*prepared, progress=progress, ids=arguments.ids is not False)
    except CustomMechanismError as error:
        raise Failure(str(error)) from error
    warnings = [f"Warning: {warning}" for warning in report.warnings]
    report = dataclasses.replace(report, command=shlex.join(["labelaudit", *arguments.given]))
    without = report.command_without
    ending = [f"The command that leaves it out: {without}"] if without else []
    _save(report, page, report.headline, *report.reasons, *warnings, *ending)
    return RECOMMENDED if report.recommended else NOT_RECOMMENDED


def _run_on_priors(
    arguments: argparse.Namespace, page: Path, progress: Callable[[str], None]
) -> int:
    """Priors without labels: all rows of a file or folder, in constant memory."""
    from labelaudit.auditing.options import Options
    from labelaudit.auditing.priors import PriorsWorkerDied, audit_priors

    names = ("mechanisms", "bag_sizes", "epsilons", "level", "seed", "target")
    chosen = {name: value for name in names if (value := getattr(arguments, name)) is not None}
    progress(f"reading {arguments.file}; the first use compiles the kernels")
    try:
        report = audit_priors(
            arguments.file, arguments.prior, Options(**chosen), bag=arguments.bag,
            workers=arguments.workers, address=arguments.address,
            saved=page.with_suffix(".partial.npz"), progress=progress,
        )  # fmt: skip
    except (ValueError, TypeError) as error:
        raise CommandError(str(error)) from error
    except PriorsWorkerDied as error:
        raise Failure(f"a worker ended ({error}): the same command goes on where it was") from error
    report = dataclasses.replace(report, command=shlex.join(["labelaudit", *arguments.given]))
    _save(report, page, report.headline, report.larger)
    return RECOMMENDED if report.settings["meets"].any() else NOT_RECOMMENDED


def _save(report: "SavedReport", page: Path, *lines: str) -> None:
    """Write page and numbers, and print the conclusion."""
    report.save(page)
    numbers = page.with_suffix(".json")
    print(*lines, f"{page} is the page to read; {numbers} holds every number", sep="\n")


def _check_output(page: Path, overwrite: bool) -> None:
    """The page and its numbers must be writable, and must not exist yet."""
    if page.suffix.lower() not in (".html", ".htm"):
        raise CommandError(f"the page must be an .html file, not {page}")
    for path in (page, page.with_suffix(".json")):
        must_be_writable(path)
        if path.exists() and not overwrite:
            raise CommandError(
                f"{path} is there already: name another page with --output, or say --overwrite"
            )


def _check_combination(arguments: argparse.Namespace) -> None:
    """A prior replaces the features: with it none are read, and no model can be trained."""
    if not (arguments.label or arguments.prior):
        raise CommandError("name the sensitive label with --label COLUMN")
    if arguments.label and arguments.address:
        raise CommandError("--address is for priors without labels: leave out --label or it")
    if arguments.workers and arguments.address:
        raise CommandError("a cluster has its own workers: give --workers or --address")
    if arguments.prior and arguments.features:
        raise CommandError("--prior replaces --features: give one of the two")
    if arguments.prior and arguments.utility not in (None, "none"):
        raise CommandError(
            f"--utility {arguments.utility} needs features, and with --prior none are read: leave"
            " one of the two out"
        )


def _check_installed(arguments: argparse.Namespace) -> None:
    needed = [*ALWAYS, *(() if arguments.prior else LEARNS), *(() if arguments.label else PARTS)]
    if missing := [name for name in needed if find_spec(name) is None]:
        names = " and ".join(missing).replace("sklearn", "scikit-learn")
        raise CommandError(f"an audit needs {names}: in a clone, pip install '.[audit]'")


def _progress() -> Callable[[str], None]:
    """Lines on the error stream, each with the seconds since the start."""
    start = time.monotonic()

    def progress(line: str) -> None:
        print(f"[{time.monotonic() - start:5.0f} s] {line}", file=sys.stderr, flush=True)

    return progress
