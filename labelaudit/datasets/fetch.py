"""Fetching a published file: from the first mirror that has it, resumed where it broke off.

What has arrived lies in `NAME.part`, and `NAME.part.json` says of which version of the file. A
later attempt continues only if the server still has that very version; otherwise it starts afresh.
The file takes its own name only when it is complete and its size and checksum, where known, are
right.
"""

from __future__ import annotations

import json
import os
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import Any

from labelaudit.datasets.catalogue import CATALOGUE, RemoteFile
from labelaudit.datasets.reading import progress
from labelaudit.datasets.store import DataError, data_folder, digest_of

PIECE_BYTES = 1 << 18
STALL_SECONDS = 30.0
ATTEMPTS = 5
# Faults of the client by number, but ones that pass: request timeout, too many requests.
PASSING = (408, 429)

Say = Callable[[str], None]


class Unreachable(Exception):
    """A mirror that did not give the file, and why."""


class WrongFile(Exception):
    """A file that arrived complete but is not the one that was promised."""


def fetched(name: str) -> Path | None:
    """A complete download of a data set, if there is one."""
    for remote in CATALOGUE[name].files:
        path = data_folder() / "downloads" / remote.name
        if path.is_file():
            return path
    return None


def fetch(name: str, say: Say = print, stall_seconds: float = STALL_SECONDS) -> Path:
    """Fetch a data set from the first mirror that gives it; the path of the file."""
    source = CATALOGUE[name]
    if path := fetched(name):
        say(f"{path} is already here")
        return path
    reasons = []
    for remote in source.files:
        for url in remote.mirrors:
            target = data_folder() / "downloads" / remote.name
            try:
                return download(url, target, remote, say, stall_seconds)
            except (Unreachable, WrongFile) as failure:
                reasons.append(f"  {url}: {failure}")
                say(reasons[-1].strip())
    raise DataError(
        f"{source.title} could not be fetched:\n" + "\n".join(reasons) + "\n"
        f"It can be had by hand from {source.home}.\n"
        f"Then: make data-{name} SOURCE=FILE, where FILE is {source.layouts}."
    )


def download(
    url: str, target: Path, remote: RemoteFile, say: Say, stall_seconds: float = STALL_SECONDS
) -> Path:
    """One file from one address, over as many connections as it takes."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    failures = 0
    while True:
        before = part.stat().st_size if part.exists() else 0
        try:
            _receive(url, part, say, stall_seconds)
            break
        except (OSError, HTTPException, ValueError) as error:
            if _is_final(error):
                raise Unreachable(_short(error)) from None
            after = part.stat().st_size if part.exists() else 0
            failures = 1 if after > before else failures + 1
            if failures >= ATTEMPTS:
                raise Unreachable(_short(error)) from None
            say(f"{target.name}: {_short(error)} at byte {after:,}; trying again")
            time.sleep(min(failures - 1, 1) * stall_seconds / 10)
    try:
        _check(part, remote)
    except WrongFile:
        _forget(part)
        raise
    os.replace(part, target)
    _forget(part)
    return target


def _receive(url: str, part: Path, say: Say, stall_seconds: float) -> None:
    """One connection: continue `part` if the server has the same version, else start it again."""
    version = _version_of(part)
    offset = part.stat().st_size if version else 0
    request = urllib.request.Request(url, headers={"User-Agent": "labelaudit"})
    if version and offset:
        request.add_header("Range", f"bytes={offset}-")
        request.add_header("If-Range", version["validator"])
    try:
        reply = urllib.request.urlopen(request, timeout=stall_seconds)
    except urllib.error.HTTPError as error:
        if error.code != 416:
            raise
        # The server has no bytes beyond ours, so ours are not a beginning of its file.
        _forget(part)
        raise OSError("the file on the server changed; starting afresh") from None
    with reply:
        offered = _offered(reply, offset)
        continues = reply.status == 206 and offered == version
        if offset and continues:
            say(f"{part.stem}: continuing at byte {offset:,}")
        elif reply.status == 206:
            _forget(part)
            raise OSError("the file on the server changed; starting afresh")
        elif offset:
            say(f"{part.stem}: the server has another version; starting afresh")
        if not continues:
            offset = 0
            _record(part).write_text(json.dumps(offered))
        with (
            open(part, "ab" if continues else "wb") as file,
            progress(part.stem, offered["size"]) as tell,
        ):
            # What has arrived is written at once, so that a stall loses nothing.
            while piece := reply.read1(PIECE_BYTES):
                file.write(piece)
                offset += len(piece)
                tell(offset)
    if offered["size"] is not None and offset < offered["size"]:
        raise OSError("the connection broke off")


def _offered(reply: Any, offset: int) -> dict[str, Any]:
    """Which version of the file a reply is about: what to ask for it by, and its full size."""
    validator = reply.headers.get("ETag") or ""
    if not validator or validator.startswith("W/"):
        validator = reply.headers.get("Last-Modified") or ""
    if reply.status == 206:
        begins, _, total = reply.headers.get("Content-Range", "").partition("/")
        if not begins.startswith(f"bytes {offset}-"):
            raise OSError("the server sent another part of the file than asked for")
        return {"validator": validator, "size": int(total) if total.isdigit() else None}
    length = reply.headers.get("Content-Length")
    return {"validator": validator, "size": int(length) if length else None}


def _version_of(part: Path) -> dict[str, Any] | None:
    """What `part` is the beginning of; None if that cannot be told, so that it cannot go on."""
    try:
        version = json.loads(_record(part).read_text())
    except (OSError, ValueError):
        return None
    return version if part.exists() and version.get("validator") else None


def _check(part: Path, remote: RemoteFile) -> None:
    size = part.stat().st_size
    if size == 0:
        raise WrongFile("the file is empty")
    if remote.size is not None and size != remote.size:
        raise WrongFile(f"{size:,} bytes arrived, not {remote.size:,}")
    if remote.checksum is not None:
        algorithm, _, expected = remote.checksum.partition(":")
        found = digest_of(part, algorithm)
        if found != expected:
            raise WrongFile(f"wrong checksum: {algorithm} {found}, expected {expected}")


def _record(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _record(part).unlink(missing_ok=True)


def _is_final(error: Exception) -> bool:
    """Whether another attempt at the same address would be idle."""
    if isinstance(error, urllib.error.HTTPError):
        return error.code < 500 and error.code not in PASSING
    return isinstance(getattr(error, "reason", None), socket.gaierror | ConnectionRefusedError)


def _short(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"{error.code} {error.reason}"
    reason = getattr(error, "reason", error)
    if isinstance(reason, TimeoutError):
        return "no answer for too long"
    return str(reason) or type(reason).__name__
