"""The command line of the data scripts: fetch, prepare, verify."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from labelaudit.command_line import CommandError
from labelaudit.datasets.catalogue import CATALOGUE


def main(name: str, argv: Sequence[str] | None = None) -> int:
    """Run one script's command and give its exit status: 0, or 1 with one message."""
    arguments = _parser(name).parse_args(argv)
    try:
        {"fetch": _fetch, "prepare": _prepare, "verify": _verify}[arguments.command](
            name, arguments
        )
    except CommandError as refusal:
        print(f"{name}: {refusal}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"{name}: interrupted; what was prepared before is unchanged", file=sys.stderr)
        return 130
    except ModuleNotFoundError as error:
        hint = f"{name}: this needs {error.name}; pip install 'labelaudit[book]'"
        print(hint, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    return 0


def _parser(name: str) -> argparse.ArgumentParser:
    source = CATALOGUE[name]
    parser = argparse.ArgumentParser(
        description=f"Fetch, prepare and verify {source.title}.",
        epilog=f"Licence: {source.licence}. Cite: {source.citation}",
    )
    parser.add_argument(
        "command",
        choices=["fetch", "prepare", "verify"],
        help="fetch the published file; turn a file into arrays on disk; check those arrays",
    )
    parser.add_argument(
        "--source", type=Path, metavar="FILE", help=f"a file at hand: {source.layouts}"
    )
    parser.add_argument("--sha256", metavar="HEX", help="refuse a source with another checksum")
    if name == "kdd12":
        parser.add_argument(
            "--click-rate",
            type=float,
            metavar="RATE",
            help="the click rate before non-clicks were dropped (OpenML's table: 0.044)",
        )
    return parser


def _fetch(name: str, arguments: argparse.Namespace) -> None:
    from labelaudit.datasets.fetch import fetch

    if arguments.source is not None:
        raise CommandError(f"fetch takes no --source; to use {arguments.source}, run prepare")
    path = fetch(name)
    print(f"{path} is complete; next: python data_scripts/{name}.py prepare")


def _prepare(name: str, arguments: argparse.Namespace) -> None:
    from labelaudit.datasets import how_to_prepare
    from labelaudit.datasets.fetch import fetched
    from labelaudit.datasets.prepare import prepare

    source = arguments.source or fetched(name)
    if source is None:
        raise CommandError(how_to_prepare(name))
    rate = getattr(arguments, "click_rate", None)
    prepare(name, source, sha256=arguments.sha256, click_rate=rate)


def _verify(name: str, arguments: argparse.Namespace) -> None:
    from labelaudit.datasets.prepare import shown_rate, verify

    manifest = verify(name)
    if arguments.source is not None:
        from labelaudit.datasets.store import DataError, digest_of

        if digest_of(arguments.source) != manifest["source_sha256"]:
            raise DataError(f"the prepared set was not made from {arguments.source}")
    print(
        f"{name}: {manifest['rows']:,} rows are as they were prepared from"
        f" {manifest['source_file']}, {shown_rate(manifest)}"
    )
