"""The `labelaudit audit` command."""

import argparse
import dataclasses
import shlex
import sys
import time
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from labelaudit.command_line import CommandError, must_be_writable

# What is needed to read a table and write the page, and to learn eta; of the extra `train`, for the
# network, and for a cluster.
ALWAYS, LEARNS = ("pandas", "pyarrow", "matplotlib", "jinja2"), ("sklearn",)
NETWORK, CLUSTER = ("torch",), ("distributed",)


# The exit status where the audit is done and recommends something, or nothing.
RECOMMENDED, NOT_RECOMMENDED = 0, 3


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
    option = parser.add_argument
    option("file", type=Path, help="the table, csv or parquet; with --prior alone also a folder")
    option(
        "--label", metavar="COLUMN",
        help="the sensitive label; it may be left out with --prior: then parquet files of any size"
        " are streamed, and a run that was stopped goes on",
    )  # fmt: skip
    option("--positive", metavar="VALUE", help="which of its two values counts as 1")
    option("--features", nargs="+", metavar="COLUMN", help="features (default: all)")
    option(
        "--leave-out", action="append", metavar="COLUMN",
        help="a column that the attacker does not have, such as one made from the label; it may be"
        " given several times",
    )  # fmt: skip
    option("--prior", metavar="COLUMN", help="P(label = 1), if you have it already")
    option("--bag", metavar="COLUMN", help="the bag of each record, such as a day")
    option(
        "--hide-bag", action="store_const", const=True,
        help="keep the bag column from the attacker (default: it is a feature)",
    )  # fmt: skip
    option(
        "--person", metavar="COLUMN",
        help="whose record it is: folds, intervals and epsilon are then by person",
    )  # fmt: skip
    option("--by", metavar="COLUMN", help="also show results for each group, such as by sex")
    option(
        "--id", dest="identifier", metavar="COLUMN",
        help="names of the records (default: row numbers)",
    )  # fmt: skip
    option(
        "--no-ids", dest="ids", action="store_const", const=False,
        help="do not list the most exposed records",
    )  # fmt: skip
    # Defaults are those of `AuditPlan`.
    option(
        "--mechanisms", nargs="+", metavar="NAME",
        help="of rr, llp, geometric, laplace (default: these four); counts suppressed=5 (below 5),"
        " rounded=5, censored=1 (never 0 or k), gaussian=2 (noise), subset=0.1 (of the labels);"
        " rr-prior=0.1 (response that knows P(label = 1));"
        " FILE.py[:CLASS] or CHANNEL.csv for your own",
    )  # fmt: skip
    whole_numbers = partial(option, nargs="+", type=int)
    whole_numbers("--bag-sizes", metavar="K", help="default: 2 8 32, smaller for a small table")
    option("--epsilons", nargs="+", type=float, metavar="EPSILON", help="default: 0.5 1 2 4")
    option(
        "--target", metavar="KIND=VALUE",
        help="additive=0.01, multiplicative=1 or epsilon=1 (default: additive, a tenth of what an"
        " attacker gets wrong without any release)",
    )  # fmt: skip
    option("--level", type=float, help="level of the multiplicative percentile (default: 0.98)")
    option(
        "--utility", metavar="MODEL",
        help="none, logistic (default; none with --prior) or network",
    )  # fmt: skip
    releases = "numbers of releases to look ahead to (default: 1 2 5)"
    whole_numbers("--repeats", metavar="R", help=releases)
    members = "numbers of other members known to an attacker (default: none, half, ... all)"
    whole_numbers("--known", metavar="J", help=members)
    option(
        "--refits",
        type=int,
        metavar="N",
        help="times eta is estimated (default: 3, 6 for a small table)",
    )
    option(
        "--learners", nargs="+", metavar="NAME",
        help="models of eta, of boosting (default), logistic and network: with several, intervals"
        " include how they differ",
    )  # fmt: skip
    option("--seed", type=int, help="default: 0")
    option(
        "--no-search", dest="search", action="store_const", const=False,
        help="try the listed settings only (default: also search for the least noisy between them)",
    )  # fmt: skip
    option("--workers", type=int, metavar="N", help="processes for priors without labels")
    option(
        "--address", metavar="tcp://HOST:8786",
        help="a Dask cluster for priors without labels, whose workers have one thread each and find"
        " the files under the same name (default: processes of this machine)",
    )  # fmt: skip
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
    _check_output(page, arguments.overwrite)
    if arguments.label is None:
        return _run_on_priors(arguments, page)

    from labelaudit.auditing.audit import begun
    from labelaudit.mechanisms.custom import CustomMechanismError

    options = {name: value for name, value in vars(arguments).items() if value is not None}
    for name in ("file", "output", "overwrite", "run", "given", "workers", "address"):
        options.pop(name, None)
    progress = _progress()
    progress(f"reading {arguments.file}")
    try:
        work = begun(arguments.file, **options)
    except (ValueError, TypeError) as error:
        raise CommandError(str(error)) from error
    try:
        report = work(progress)
    except CustomMechanismError as error:
        raise Failure(str(error)) from error
    warnings = [f"Warning: {warning}" for warning in report.warnings]
    _save(report, arguments, page, report.headline, *report.reasons, *warnings)
    return RECOMMENDED if report.recommended else NOT_RECOMMENDED


def _run_on_priors(arguments: argparse.Namespace, page: Path) -> int:
    """Priors without labels: all rows of a file or folder, in constant memory."""
    from labelaudit.auditing.plan import AuditPlan, Target
    from labelaudit.auditing.stream import stream_priors
    from labelaudit.learning.sweep.engines import cores, dask, deaths, local

    names = ("mechanisms", "bag_sizes", "epsilons", "level", "seed")
    options = {name: value for name in names if (value := getattr(arguments, name)) is not None}
    try:
        target = Target.parse(arguments.target) if arguments.target else None
        plan = AuditPlan(**options, utility="none", target=target)
        cluster, progress = arguments.address, _progress()
        progress(f"reading {arguments.file}; the first use compiles the kernels")
        with dask(cluster) if cluster else local(arguments.workers or cores()) as engine:
            report = stream_priors(
                arguments.file, arguments.prior, plan, bag=arguments.bag, engine=engine,
                saved=page.with_suffix(".partial.npz"), progress=progress,
            )  # fmt: skip
    except (ValueError, TypeError) as error:
        raise CommandError(str(error)) from error
    except deaths() as error:
        raise Failure(f"a worker ended ({error}): the same command goes on where it was") from error
    _save(report, arguments, page, report.headline, report.larger)
    return RECOMMENDED if any(each.meets for each in report.exposures) else NOT_RECOMMENDED


def _save(report: Any, arguments: argparse.Namespace, page: Path, *lines: str) -> None:
    """Write page and numbers, and print the conclusion."""
    report = dataclasses.replace(report, command=shlex.join(["labelaudit", *arguments.given]))
    report.save(page)
    if without := getattr(report, "command_without", ""):
        lines += (f"The command that leaves it out: {without}",)
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
    needed = [*ALWAYS, *(() if arguments.prior else LEARNS)]
    needed += NETWORK if "network" in (arguments.utility, *(arguments.learners or ())) else ()
    needed += CLUSTER if arguments.address else ()
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        names = " and ".join(missing).replace("sklearn", "scikit-learn")
        train = {*NETWORK, *CLUSTER} & {*missing}
        extras = ["audit"] * (len(missing) > len(train)) + ["train"] * bool(train)
        wanted = ",".join(extras)
        raise CommandError(f"an audit needs {names}: in a clone, pip install '.[{wanted}]'")


def _progress() -> Any:
    """Lines on the error stream, each with the seconds since the start."""
    start = time.monotonic()

    def progress(line: str) -> None:
        print(f"[{time.monotonic() - start:5.0f} s] {line}", file=sys.stderr, flush=True)

    return progress
