"""The command `serve`: the book on this machine, with a form on every chapter."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import socket
import webbrowser
from typing import Any

from book.tools.checkout import Checkout, find_checkout
from book.tools.parameters import SCALES, ContractError

DEFAULT_PORT = 8000
EXAMPLES = """\
examples:
  labelbook serve                    open the book; build it at smoke scale if it is not there
  labelbook serve --build laptop     bring the book up to date first
  labelbook serve --port 9000 --no-open

The server listens on this machine alone, and answers only the browser that opened the address it
prints. Ctrl-C ends it and every run. Closing a tab ends nothing. Runs stay in _build/runs.
"""


def add_parser(subparsers: Any) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "serve",
        help="open the book in the browser and run chapters from their pages",
        description="Show the built book, with a form on every chapter that runs it again.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--port",
        type=int,
        metavar="N",
        help=f"where to listen (default: {DEFAULT_PORT}, or a free one where that is taken)",
    )
    parser.add_argument("--host", default="127.0.0.1", help=argparse.SUPPRESS)
    parser.add_argument("--no-open", action="store_true", help="print the address, open nothing")
    parser.add_argument(
        "--build", choices=SCALES, help="bring the book up to date at this scale first"
    )
    parser.set_defaults(run=run_server)


def run_server(arguments: argparse.Namespace) -> int:
    """Build the site where it is missing or asked for, then serve it until Ctrl-C."""
    from book.tools.serve.guard import LOOPBACK

    if arguments.host not in LOOPBACK:
        raise ContractError(
            f"--host: {arguments.host!r} is not this machine; the server runs code, so it listens"
            " at 127.0.0.1 alone"
        )
    port = _port(arguments.port)
    checkout = find_checkout()
    _build(checkout, arguments.build)
    with contextlib.suppress(KeyboardInterrupt, asyncio.CancelledError):
        asyncio.run(_serve(checkout, port, opens=not arguments.no_open))
    print("\nthe server has ended; your runs are in", checkout.shown(checkout.build / "runs"))
    return 0


def _build(checkout: Checkout, scale: str | None) -> None:
    from book.cli import main
    from book.tools.site import restore_folder

    restore_folder(checkout.site)
    if not (checkout.site / "index.html").is_file() and scale is None:
        print("the book is not built yet; building it at smoke scale, which takes minutes")
        scale = "smoke"
    if scale is not None and main(["book", "--scale", scale]):
        raise ContractError("the book could not be built, so there is nothing to serve")


def _port(port: int | None) -> int:
    """The port that was asked for, or the usual one, or a free one."""
    if port is not None and not 0 <= port <= 65535:
        raise ContractError(f"--port: {port} is out of range; allowed: 0 to 65535")
    wanted = DEFAULT_PORT if port is None else port
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", wanted))
        except OSError:
            if port is not None:
                raise ContractError(f"--port: {port} is taken; name another") from None
            return 0
    return wanted


async def _serve(checkout: Checkout, port: int, *, opens: bool) -> None:
    from book.tools.serve.guard import ENTER, Keys
    from book.tools.serve.server import serve

    keys = Keys()

    def started(port: int) -> None:
        address = f"http://127.0.0.1:{port}{ENTER}?token="
        print(f"the book is at\n  {address}{keys.token}\nCtrl-C ends the server", flush=True)
        if opens:
            webbrowser.open(address + keys.token_for_one_use())

    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    await serve(checkout, keys, port, started=started)
