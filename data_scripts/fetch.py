"""Fetching a published file from the first mirror that has it, resumed where it broke off.

`NAME.part` holds what has arrived, and `NAME.part.json` says of which version of the file. A later
attempt continues only if the server still has that version; otherwise it starts again. The file
gets its own name only when it is complete, and its size and checksum, where known, are right.
"""

import json
import os
import socket
import time
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

from data_scripts.catalogue import CATALOGUE, RemoteFile
from data_scripts.reading import progress_bar
from labelaudit.datasets.store import DataError, data_folder
from labelaudit.files import file_digest

PIECE_BYTES = 1 << 18
STALL_SECONDS = 30.0
ATTEMPTS = 5
# Request timeout and too many requests: client errors that another attempt can cure.
RETRYABLE = (408, 429)
CHANGED = "the file on the server changed; starting again"

Say = Callable[[str], None]


class Unavailable(Exception):
    """A mirror did not give the file, or gave a wrong one."""


def fetched(name: str) -> Path | None:
    """A complete download of a data set, if there is one."""
    paths = (data_folder() / "downloads" / remote.name for remote in CATALOGUE[name].files)
    return next((path for path in paths if path.is_file()), None)


def fetch(name: str, say: Say = print, stall_seconds: float = STALL_SECONDS) -> Path:
    """Fetch a data set from the first mirror that gives it; the path of the file."""
    source = CATALOGUE[name]
    if path := fetched(name):
        say(f"{path} exists already")
        return path
    reasons = []
    addresses = [(remote, url) for remote in source.files for url in remote.mirrors]
    for remote, url in addresses:
        try:
            return download(url, remote, say, stall_seconds)
        except Unavailable as error:
            reasons.append(f"  {url}: {error}\n")
            say(reasons[-1].strip())
    raise DataError(
        f"{source.title} could not be fetched:\n{''.join(reasons)}"
        f"It can be had by hand from {source.home}.\n"
        f"Then: make data-{name} SOURCE=FILE, where FILE is {source.layouts}."
    )


def download(url: str, remote: RemoteFile, say: Say, stall_seconds: float) -> Path:
    """One file from one address, over as many connections as it takes."""
    target = data_folder() / "downloads" / remote.name
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    failures = 0
    while True:
        before = _size(part)
        try:
            _receive(url, part, say, stall_seconds)
            break
        except (OSError, HTTPException, ValueError) as error:
            failures = 1 if _size(part) > before else failures + 1
            code = error.code if isinstance(error, HTTPError) else 500
            # Without a network no attempt helps; in the middle of a file it may come back.
            offline = isinstance(getattr(error, "reason", None), socket.gaierror) and not before
            if offline or failures >= ATTEMPTS or (code < 500 and code not in RETRYABLE):
                raise Unavailable(_short(error)) from None
            say(f"{target.name}: {_short(error)} at byte {_size(part):,}; trying again")
            time.sleep(min(failures - 1, 1) * stall_seconds / 10)
    reason = _wrong(part, remote)
    if reason:
        part.unlink()
    else:
        os.replace(part, target)
    _record(part).unlink(missing_ok=True)
    if reason:
        raise Unavailable(reason)
    return target


def _receive(url: str, part: Path, say: Say, stall_seconds: float) -> None:
    """One connection: continue `part` if the server has the same version, else start again."""
    version = _version_of(part)
    offset = _size(part) if version else 0
    request = urllib.request.Request(url, headers={"User-Agent": "labelaudit"})
    if version and offset:
        request.add_header("Range", f"bytes={offset}-")
        request.add_header("If-Range", version["validator"])
    try:
        reply = urllib.request.urlopen(request, timeout=stall_seconds)
    except HTTPError as error:
        if error.code != 416:
            raise
        # The server has no bytes beyond ours, so ours are not the beginning of its file.
        part.unlink()
        raise OSError(CHANGED) from None
    with reply:
        offered = _offered(reply, offset)
        continues = reply.status == 206 and offered == version
        if reply.status == 206 and not continues:
            part.unlink()
            raise OSError(CHANGED)
        if continues:
            say(f"{part.stem}: continuing at byte {offset:,}")
        else:
            if offset:
                say(f"{part.stem}: {CHANGED}")
            offset = 0
            _record(part).write_text(json.dumps(offered))
        with (
            open(part, "ab" if continues else "wb") as file,
            progress_bar(part.stem, offered["size"], offset) as bar,
        ):
            # What has arrived is written at once, so that a stall loses nothing.
            while piece := reply.read1(PIECE_BYTES):
                bar.update(file.write(piece))
    if offered["size"] is not None and _size(part) < offered["size"]:
        raise OSError("the connection broke off")


def _offered(reply: Any, offset: int) -> dict[str, Any]:
    """The version of the file that a reply is about: its validator and its full size."""
    validator = reply.headers.get("ETag") or ""
    if not validator or validator.startswith("W/"):
        validator = reply.headers.get("Last-Modified") or ""
    size = reply.headers.get("Content-Length") or ""
    if reply.status == 206:
        begins, _, size = reply.headers.get("Content-Range", "").partition("/")
        if not begins.startswith(f"bytes {offset}-"):
            raise OSError("the server sent another part of the file than asked for")
    return {"validator": validator, "size": int(size) if size.isdigit() else None}


def _version_of(part: Path) -> dict[str, Any] | None:
    """The version that `part` is the beginning of; None if unknown, so that it cannot continue."""
    try:
        version = json.loads(_record(part).read_text())
    except (OSError, ValueError):
        return None
    return version if part.exists() and version.get("validator") else None


def _wrong(part: Path, remote: RemoteFile) -> str | None:
    """Why a complete file is not the published one; None if nothing speaks against it."""
    size = _size(part)
    if size == 0:
        return "the file is empty"
    if remote.size is not None and size != remote.size:
        return f"{size:,} bytes arrived, not {remote.size:,}"
    algorithm, _, expected = (remote.checksum or "").partition(":")
    if expected and (checksum := file_digest(part, algorithm)) != expected:
        return f"wrong checksum: {algorithm} {checksum}, expected {expected}"
    return None


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _record(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _short(error: Exception) -> str:
    if isinstance(error, HTTPError):
        return f"{error.code} {error.reason}"
    reason = getattr(error, "reason", error)
    if isinstance(reason, TimeoutError):
        return "no answer for too long"
    if isinstance(reason, socket.gaierror):
        return "the server was not found; is there a network?"
    return str(reason) or type(reason).__name__
