"""The `labelaudit audit` command."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import time
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

from labelaudit.command_line import CommandError
from labelaudit.files import write_atomically

# What is needed to read a table and write the page, to learn eta, and to train the network.
ALWAYS, LEARNS, NETWORK = ("pandas", "pyarrow", "matplotlib", "jinja2"), ("sklearn",), ("torch",)


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
    )
    option = parser.add_argument
    option("file", type=Path, help="the table, csv or parquet")
    option("--label", required=True, metavar="COLUMN", help="the sensitive label")
    option("--positive", metavar="VALUE", help="which of its two values counts as 1")
    option("--features", nargs="+", metavar="COLUMN", help="features (default: all)")
    option("--prior", metavar="COLUMN", help="P(label = 1), if you have it already")
    option("--bag", metavar="COLUMN", help="the bag of each record, such as a day")
    option("--id", metavar="COLUMN", help="names of the records (default: row numbers)")
    # Defaults are those of `AuditPlan`.
    option(
        "--mechanisms", nargs="+", metavar="NAME",
        help="of rr, llp, geometric, laplace; FILE.py[:CLASS] or CHANNEL.csv for your own",
    )  # fmt: skip
    whole_numbers = partial(option, nargs="+", type=int)
    whole_numbers("--bag-sizes", metavar="K", help="default: 2 8 32")
    option("--epsilons", nargs="+", type=float, metavar="EPSILON", help="default: 0.5 1 2 4")
    option(
        "--target", metavar="KIND=VALUE",
        help="additive=0.05 (default), multiplicative=1 or epsilon=1",
    )  # fmt: skip
    option("--level", type=float, help="level of the multiplicative percentile")
    option("--utility", metavar="MODEL", help="none, logistic (default) or network")
    releases = "numbers of releases to look ahead to (default: 1 2 5)"
    whole_numbers("--repeats", metavar="R", help=releases)
    members = "numbers of other members known to an attacker (default: none, one, half, all)"
    whole_numbers("--known", metavar="J", help=members)
    option("--refits", type=int, metavar="N", help="times eta is estimated")
    option("--seed", type=int)
    option(
        "--output", type=Path, metavar="FILE.html", help="the page (default: FILE-audit.html here)"
    )
    option(
        "--overwrite", action="store_true", help="replace a page or numbers that are there already"
    )
    parser.set_defaults(run=run_command)


def run_command(arguments: argparse.Namespace) -> int:
    """Reject what cannot be done, then do it, and say where the two files are."""
    _check_combination(arguments)
    _check_installed(arguments)
    page = arguments.output or Path(f"{arguments.file.stem}-audit.html")
    numbers = page.with_suffix(".json")
    _check_output(page, numbers, arguments.overwrite)

    from labelaudit.datasets import read_table
    from labelaudit.report import AuditPlan, Target, as_html, as_json, audit
    from labelaudit.report.own_mechanism import OwnMechanismError

    progress = _progress()
    try:
        names = [field.name for field in dataclasses.fields(AuditPlan)]
        chosen = {name: value for name in names if (value := getattr(arguments, name)) is not None}
        if arguments.target is not None:
            chosen["target"] = Target.parse(arguments.target)
        if arguments.prior:
            chosen.setdefault("utility", "none")
        plan = AuditPlan(**chosen)
        progress(f"reading {arguments.file}")
        table = read_table(
            arguments.file,
            label=arguments.label,
            positive=arguments.positive,
            features=arguments.features,
            prior=arguments.prior,
            bag=arguments.bag,
            identifier=arguments.id,
        )
        plan.check_table(table)
    except (ValueError, TypeError) as error:
        raise CommandError(str(error)) from error
    try:
        report = audit(table, plan, progress)
    except OwnMechanismError as error:
        raise Failure(str(error)) from error
    _write({page: as_html(report), numbers: as_json(report)})
    print(report.summary)
    print(f"{page} is the page to read; {numbers} holds every number")
    return 0


def _check_output(page: Path, numbers: Path, overwrite: bool) -> None:
    """The two files must be writable, and must not exist yet."""
    if page.suffix.lower() not in (".html", ".htm"):
        raise CommandError(f"the page must be an .html file, not {page}")
    for path in (page, numbers):
        if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
            raise CommandError(f"cannot write {path}: name a file in a folder that exists")
        if path.exists() and not overwrite:
            raise CommandError(
                f"{path} is there already: name another page with --output, or say --overwrite"
            )


def _check_combination(arguments: argparse.Namespace) -> None:
    """A prior replaces the features: with it none are read, and no model can be trained."""
    if arguments.prior and arguments.features:
        raise CommandError("--prior replaces --features: give one of the two")
    if arguments.prior and arguments.utility not in (None, "none"):
        raise CommandError(
            f"--utility {arguments.utility} needs features, and with --prior none are read: leave"
            " one of the two out"
        )


def _check_installed(arguments: argparse.Namespace) -> None:
    needed = [*ALWAYS, *(() if arguments.prior else LEARNS)]
    needed += NETWORK if arguments.utility == "network" else ()
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        names = " and ".join(missing).replace("sklearn", "scikit-learn")
        extras = ["audit"] * (missing != [*NETWORK]) + ["train"] * ("torch" in missing)
        wanted = ",".join(extras)
        raise CommandError(f"an audit needs {names}: in a clone, pip install '.[{wanted}]'")


def _progress() -> Any:
    """Lines on the error stream, each with the seconds since the start."""
    start = time.monotonic()

    def progress(line: str) -> None:
        print(f"[{time.monotonic() - start:5.0f} s] {line}", file=sys.stderr, flush=True)

    return progress


def _write(texts: dict[Path, str]) -> None:
    """Write every file or none: each is renamed only after the next one is complete."""
    (path, text), *rest = texts.items()
    content = text.encode()

    def write(file: BinaryIO) -> None:
        file.write(content)
        if rest:
            _write(dict(rest))

    write_atomically(path, write)
