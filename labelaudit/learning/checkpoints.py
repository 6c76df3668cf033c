"""Where a run stands, on disk: enough to go on after a kill as if nothing had happened."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import torch

VERSION = 1


def place(path: str | Path) -> Path:
    """A file that can be written, its folder made if need be: known before training begins."""
    file = Path(path)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"checkpoint {file} cannot be written: {error.strerror}") from None
    if file.is_dir():
        raise ValueError(f"checkpoint {file} is a folder, not a file")
    return file


def save(path: Path, identity: dict[str, Any], state: dict[str, Any]) -> None:
    """Write beside the file, then replace it: a kill leaves the old one or the new one.

    Two sweeps may be at the same run, so each process writes beside it under a name of its own.
    """
    partial = path.with_name(f"{path.name}.{socket.gethostname()}.{os.getpid()}.partial")
    with open(partial, "wb") as file:
        torch.save({"version": VERSION, "identity": identity, "state": state}, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)


def load(path: Path, identity: dict[str, Any], device: torch.device) -> dict[str, Any] | None:
    """The state of this run, None if there is none yet; a checkpoint of another run is refused."""
    if not path.exists():
        return None
    try:
        content = torch.load(path, map_location=device, weights_only=True)
        version, found = content["version"], content["identity"]
    except Exception as error:
        raise ValueError(f"{path} is not a checkpoint of a training run: {error}") from error
    if version != VERSION:
        raise ValueError(f"{path} is a checkpoint of version {version}, not {VERSION}")
    for name, value in identity.items():
        if found.get(name) != value:
            raise ValueError(
                f"{path} is the checkpoint of another run: its {name} is {found.get(name)!r},"
                f" not {value!r}"
            )
    return content["state"]
