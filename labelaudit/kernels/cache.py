"""Where compiled kernels are kept on disk, and numba's files with a checksum on them."""

import atexit
import contextlib
import hashlib
import os
import pickle
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from numba import config as numba_config
from numba.core.caching import IndexDataCacheFile

config: Any = numba_config
HERE = Path(__file__).parent
DIGEST = hashlib.sha256().digest_size


def folder() -> str:
    """The first folder that can be written, named by a digest of all kernel sources."""
    digest = hashlib.sha256()
    for source in sorted(HERE.glob("*.py")):
        digest.update(source.read_bytes())
    name = f"kernels-{digest.hexdigest()[:16]}"
    for base in [Path(config.CACHE_DIR)] if config.CACHE_DIR else _bases():
        with contextlib.suppress(OSError):
            (base / name).mkdir(parents=True, exist_ok=True)
            if os.access(base / name, os.W_OK):
                return str(base / name)
    return str(_temporary_folder() / name)


def _bases() -> Iterator[Path]:
    """Beside the sources, then in the user's cache folder, if the user has a home."""
    yield HERE / "__pycache__"
    with contextlib.suppress(RuntimeError):
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "labelaudit"


def _temporary_folder() -> Path:
    """A folder of this user alone, because what is kept there is code; else one for this process.

    Another user may have made a folder of that name before.
    """
    if hasattr(os, "getuid"):
        own = Path(tempfile.gettempdir(), f"labelaudit-{os.getuid()}")
        with contextlib.suppress(OSError):
            own.mkdir(mode=0o700, exist_ok=True)
            state = own.lstat()
            private = stat.S_ISDIR(state.st_mode) and not state.st_mode & 0o077
            if private and state.st_uid == os.getuid():
                return own
    fresh = tempfile.mkdtemp(prefix="labelaudit-")
    atexit.register(shutil.rmtree, fresh, ignore_errors=True)
    return Path(fresh)


class SealedFiles(IndexDataCacheFile):  # type: ignore[misc]
    """numba's files of one kernel with a checksum in front: a damaged one counts as absent.

    Then the kernel is compiled and written again. numba does not flush its files to the disk, so a
    power cut can leave empty ones.
    """

    def _dump(self, value: Any) -> bytes:
        content = super()._dump(value)
        return hashlib.sha256(content).digest() + content

    def _load_data(self, name: str) -> Any:
        content = Path(self._data_path(name)).read_bytes()
        if hashlib.sha256(content[DIGEST:]).digest() != content[:DIGEST]:
            raise OSError("damaged")  # which numba takes as: there is no such file
        return pickle.loads(content[DIGEST:])

    def _load_index(self) -> dict[Any, str]:
        try:
            version, stamp, names = self._load_data(self._index_name)
        except OSError:
            return {}
        return names if (version, stamp) == (self._version, self._source_stamp) else {}

    def _save_index(self, names: dict[Any, str]) -> None:
        content = self._dump((self._version, self._source_stamp, names))
        with self._open_for_write(self._index_path) as file:
            file.write(content)


def seal(kernel: Any) -> Any:
    """Let a compiled function keep its code in sealed files."""
    files = kernel._cache._cache_file
    kernel._cache._cache_file = SealedFiles(
        files._cache_path,
        files._index_name.removesuffix(".nbi"),
        files._source_stamp,
    )
    return kernel
