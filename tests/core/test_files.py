"""Files are written whole or not at all, and an error names the one that could not be written."""

import errno
import os
import re
import stat

import pytest

from book.tools.site import replace_folder, restore_folder
from labelaudit.files import write_atomically


def test_an_error_names_the_file_and_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    path.write_text("old")

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=re.escape(f"No space left on device: '{path}'")):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_device_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_atomically(pipe, "text")
        assert os.read(reader, 10) == b"text"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


class Killed(BaseException):
    pass


@pytest.mark.parametrize("renames", [0, 1])
def test_a_site_that_was_put_away_comes_back(tmp_path, monkeypatch, renames):
    """Killed before the first of the two renames, or between them."""
    site, new = tmp_path / "html", tmp_path / "new"
    for folder in (site, new):
        folder.mkdir()
        (folder / "index.html").write_text(folder.name)
    rename, left = os.rename, iter(range(renames))

    def killed(source, target):
        if next(left, None) is None:
            raise Killed
        rename(source, target)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(os, "rename", killed)
        replace_folder(site, new)
    assert site.exists() == (renames == 0)
    restore_folder(site)
    assert (site / "index.html").read_text() == "html"
    replace_folder(site, new)
    assert (site / "index.html").read_text() == "new"
    assert list(tmp_path.iterdir()) == [site]


def test_the_next_replacement_keeps_a_site_that_was_put_away(tmp_path, monkeypatch):
    away, new = tmp_path / "html.old", tmp_path / "new"
    away.mkdir()
    (away / "index.html").write_text("old")
    with pytest.raises(FileNotFoundError):
        replace_folder(tmp_path / "html", new)
    restore_folder(tmp_path / "html")
    assert (tmp_path / "html" / "index.html").read_text() == "old"
