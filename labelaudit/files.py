"""Files that several processes share: atomic writes, digests of content.

A reader, or a crash, sees the old content of a file or the new one, never a part of it.
"""

import contextlib
import hashlib
import json
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

Content = str | bytes | Callable[[BinaryIO], Any]


def write_atomically(path: Path, content: Content) -> None:
    """Write beside `path`, flush to the disk, then rename.

    `content` is text, bytes, or a function that writes to an open binary file. The temporary name
    holds host, process and thread, so that several writers of a path use different files.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically(Path(folder, "deep", "a.txt"), "new")
    ...     [file.name for file in Path(folder, "deep").iterdir()]
    ['a.txt']
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():  # a device such as /dev/stdout stays what it is
        with open(path, "wb") as file:
            _write(file, content)
        return
    writer = f"{socket.gethostname()}.{os.getpid()}.{threading.get_ident()}"
    temporary = path.with_name(f".{path.name}.{writer}.partial")
    try:
        with open(temporary, "wb") as file:
            _write(file, content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        # A full disk says nothing about the file; others name the temporary one.
        if error.filename not in (None, str(temporary)):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _write(file: BinaryIO, content: Content) -> None:
    if callable(content):
        content(file)
    else:
        file.write(content.encode() if isinstance(content, str) else content)


def canonical(value: Any) -> str:
    """JSON that does not depend on the order of keys; not-a-number and infinity are kept.

    >>> canonical({"b": 1.0, "a": [True, None]})
    '{"a":[true,null],"b":1.0}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def digest(value: Any) -> str:
    """The sha256 of a JSON value, the same for every order of its keys.

    >>> digest({"a": 1, "b": [2.0]}) == digest({"b": [2.0], "a": 1})
    True
    """
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def file_digest(path: Path, algorithm: str = "sha256") -> str:
    """The checksum of a file, read in small pieces."""
    with open(path, "rb", buffering=0) as file:
        return hashlib.file_digest(file, algorithm).hexdigest()
