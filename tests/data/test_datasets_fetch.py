"""Fetching from servers that break off, stall, change the file half-way, or are not there."""

import contextlib
import hashlib
import http.server
import importlib
import socket
import threading
import time
from urllib.error import URLError

import numpy as np
import pytest

from data_scripts import catalogue, fetch, prepare
from labelaudit.datasets.store import DataError, data_folder

OLD = np.random.default_rng(0).bytes(700_000)
NEW = np.random.default_rng(1).bytes(600_000)


class Server(http.server.ThreadingHTTPServer):
    """Serves `content`; `accidents` are taken one for each request, in order."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.content, self.accidents, self.requests = OLD, [], []
        self.validators, self.honours_if_range = True, True

    def handle_error(self, request, client_address):
        """A client that hung up is part of the test."""

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/file"


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        """Keep the test's output clean."""

    def do_GET(self):
        server = self.server
        accident = server.accidents.pop(0) if server.accidents else None
        if accident == "change":
            server.content = NEW
        if isinstance(accident, int):
            self.send_error(accident)
            return
        content = server.content
        tag = f'"{hashlib.sha256(content).hexdigest()[:8]}"'
        asked = self.headers.get("Range")
        server.requests.append(asked)
        start = 0
        same = self.headers.get("If-Range") == tag or not server.honours_if_range
        if asked and same:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            if start >= len(content):
                self.send_error(416)
                return
            self.send_response(206)
            last = len(content) - 1
            self.send_header("Content-Range", f"bytes {start}-{last}/{len(content)}")
        else:
            self.send_response(200)
        if server.validators:
            self.send_header("ETag", tag)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        body = content[start:]
        if accident in ("break", "stall"):
            self.wfile.write(body[: len(body) // 2])
            if accident == "stall":
                time.sleep(1.5)
            self.connection.close()
            return
        self.wfile.write(body)


@pytest.fixture
def server():
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.02,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def mirrored(server, tmp_path, monkeypatch):
    """A catalogue whose only data set is on the test's server."""
    monkeypatch.setenv("LABELAUDIT_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(fetch, "STALL_SECONDS", 0.3)

    def publish(*mirrors, size=None, checksum=None):
        file = catalogue.RemoteFile("file", mirrors or (server.url,), size, checksum)
        source = vars(catalogue.CATALOGUE["higgs"]) | {"files": (file,)}
        monkeypatch.setitem(catalogue.CATALOGUE, "higgs", catalogue.Source(**source))

    publish()
    return publish


def run(stall_seconds=0.3):
    printed = []
    path = fetch.fetch("higgs", printed.append, stall_seconds)
    leftover = [file.name for file in path.parent.iterdir() if file != path]
    assert not leftover
    return path.read_bytes(), "\n".join(printed)


def test_plain_fetch_then_already_here(server, mirrored):
    mirrored(size=len(OLD), checksum="sha256:" + hashlib.sha256(OLD).hexdigest())
    assert run() == (OLD, "")
    content, printed = run()
    assert content == OLD and "exists already" in printed and len(server.requests) == 1


@pytest.mark.parametrize("accident", ["break", "stall"])
def test_interrupted_fetch_is_resumed(server, mirrored, accident):
    server.accidents = [accident, accident]
    content, printed = run()
    assert content == OLD and printed.count("continuing at byte") == 2
    assert server.requests[1] == "bytes=350000-"


def test_killed_fetch_is_resumed_by_the_next(server, mirrored):
    """What a killed process leaves: the beginning of the file, and of which version it is."""
    folder = data_folder() / "downloads"
    folder.mkdir(parents=True)
    tag = f'"{hashlib.sha256(OLD).hexdigest()[:8]}"'
    (folder / "file.part").write_bytes(OLD[:123_456])
    (folder / "file.part.json").write_text(
        f'{{"validator": "\\"{tag[1:-1]}\\"", "size": {len(OLD)}}}'
    )
    content, printed = run()
    assert content == OLD and "continuing at byte 123,456" in printed
    assert server.requests == ["bytes=123456-"]


@pytest.mark.parametrize("honours_if_range", [True, False])
def test_file_changed_half_way_starts_afresh(server, mirrored, honours_if_range):
    server.honours_if_range = honours_if_range
    server.accidents = ["break", "change"]
    content, printed = run()
    assert content == NEW and "starting again" in printed and "continuing" not in printed


def test_file_became_shorter_than_what_we_have(server, mirrored):
    server.honours_if_range = False
    server.content = OLD + NEW
    server.accidents = ["break", "change"]
    content, printed = run()
    assert content == NEW and "starting again" in printed


def test_without_a_version_nothing_is_continued(server, mirrored):
    """Two halves of what may be two files are never joined."""
    server.validators = False
    server.accidents = ["break"]
    assert run()[0] == OLD and server.requests == [None, None]


def test_damaged_record_starts_afresh(server, mirrored):
    folder = data_folder() / "downloads"
    folder.mkdir(parents=True)
    (folder / "file.part").write_bytes(NEW)
    (folder / "file.part.json").write_text("{")
    assert run()[0] == OLD


@pytest.mark.parametrize("promise", [{"size": 5}, {"checksum": "sha256:" + "0" * 64}])
def test_wrong_file_is_refused_and_removed(server, mirrored, promise):
    mirrored(**promise)
    with pytest.raises(DataError, match=r"700,000 bytes arrived, not 5|wrong checksum"):
        run()
    assert list((data_folder() / "downloads").iterdir()) == []


def test_second_mirror_helps_out(server, mirrored):
    mirrored("http://127.0.0.1:9/nobody", server.url)
    content, printed = run()
    assert content == OLD and "127.0.0.1:9" in printed


def test_server_error_is_tried_again_and_a_missing_file_is_not(server, mirrored):
    server.accidents = [503, 408, 429]
    assert run()[0] == OLD
    (data_folder() / "downloads" / "file").unlink()
    server.accidents = [404, None]
    with pytest.raises(DataError, match="404"):
        run()


def test_nothing_reachable_says_where_to_look(mirrored, capsys, monkeypatch):
    monkeypatch.setattr(fetch.time, "sleep", lambda seconds: None)
    mirrored("http://127.0.0.1:9/nobody")
    assert prepare.main("higgs", ["fetch"]) == 1
    printed = capsys.readouterr().err
    assert "archive.ics.uci.edu/dataset/280" in printed and "make data-higgs SOURCE=FILE" in printed
    assert "Traceback" not in printed


def test_without_a_network_each_address_is_tried_once(mirrored, monkeypatch):
    def unknown(request, timeout):
        tried.append(request.full_url)
        raise URLError(socket.gaierror(-2, "Name or service not known"))

    tried = []
    monkeypatch.setattr(fetch.urllib.request, "urlopen", unknown)
    mirrored("http://a.invalid/file", "http://b.invalid/file")
    with pytest.raises(DataError, match="the server was not found"):
        run()
    assert tried == ["http://a.invalid/file", "http://b.invalid/file"]


def test_catalogue_is_complete():
    for name, source in catalogue.CATALOGUE.items():
        assert source.name == name and source.rows > 0 and source.files
        assert callable(importlib.import_module(f"data_scripts.{name}").layout_of)
        assert source.licence and source.citation and source.home.startswith("https://")
        for file in source.files:
            assert all(url.endswith(file.name) for url in file.mirrors)
            if file.checksum is not None:
                algorithm, _, digest = file.checksum.partition(":")
                assert len(digest) == 2 * hashlib.new(algorithm).digest_size
                int(digest, 16)
    assert catalogue.CATALOGUE["kdd12"].files[0].checksum, "what can be checked comes first"


def test_scripts_refuse_in_one_line(mirrored, tmp_path, capsys):
    for arguments in (
        ["verify"],
        ["prepare"],
        ["prepare", "--source", str(tmp_path / "nowhere")],
        ["prepare", "--source", str(tmp_path)],
        ["fetch", "--source", "x"],
    ):
        with contextlib.suppress(SystemExit):
            assert prepare.main("higgs", arguments) == 1
        printed = capsys.readouterr().err
        assert printed.startswith("higgs: ") and printed.count("\n") == 1, printed
