"""The live book's server: who is answered, what is accepted, and what becomes of jobs."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from book_fixture import kernels_below
from commands import LABELBOOK, with_sources
from serve_fixture import Live, make_book
from smoke import CHECKOUT, DECLARED

from book import cli
from book.tools.cache_key import run_name
from book.tools.chapters import load_chapters
from book.tools.page import write_page
from book.tools.runner import execute
from book.tools.serve import audits, guard, uploads
from book.tools.serve.guard import RULES, SANDBOX, STILL
from book.tools.serve.worker import imports_of

CHECK = "/api/check/01_coin"
COIN = {"scale": "smoke", "values": {"bias": "0.25"}}
TABLE = b"affair,age,day\n1,20,a\n0,30,b\n"


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    server = Live(make_book(tmp_path_factory.mktemp("serve")))
    yield server
    server.close()


def without(rule, monkeypatch):
    monkeypatch.setattr(guard, "RULES", tuple(r for r in RULES if r.__name__ != rule))


# For each rule: a request that breaks this rule alone, and the status that it gets.
BROKEN = [
    ("loopback_host", {"Host": "book.example:{port}"}, 403),
    ("loopback_host", {"Host": "127.0.0.1.book.example:{port}"}, 403),
    ("own_origin", {"Origin": "http://127.0.0.1:9"}, 403),
    ("own_origin", {"Origin": "http://book.example"}, 403),
    ("own_origin", {"Origin": "null"}, 403),
    ("own_site", {"Sec_Fetch_Site": "same-site"}, 403),
    ("own_site", {"Sec_Fetch_Site": "cross-site"}, 403),
    ("typed_body", {"Content_Type": "text/plain"}, 415),
    ("typed_body", {"Content_Type": "application/x-www-form-urlencoded"}, 415),
    ("typed_body", {"Content_Type": None}, 415),
    ("known_cookie", {"Cookie": None}, 401),
    ("known_cookie", {"Cookie": "labelaudit-{port}=guess"}, 401),
    ("known_cookie", {"Cookie": "labelaudit-{port}="}, 401),
    ("known_page", {"X_Labelaudit_Page": None}, 401),
    ("known_page", {"X_Labelaudit_Page": "guess"}, 401),
]


@pytest.mark.parametrize(("rule", "headers", "status"), BROKEN)
def test_each_rule_rejects_and_nothing_else_would(rule, headers, status, live, monkeypatch):
    sent = {name: value and value.format(port=live.port) for name, value in headers.items()}
    answer = live.ask(CHECK, COIN, **sent)
    assert answer.status == status, answer.text
    assert answer.text.startswith("labelaudit: ")
    without(rule, monkeypatch)
    assert live.ask(CHECK, COIN, **sent).status == 200, "another rule hides that this one is gone"


HOSTS = ["0.0.0.0:{port}", "127.0.0.1.:{port}", "127.0.0.2:{port}", "[::1]:{port}"]
HOSTS += ["127.0.0.1:{port}@book.example", "127.0.0.1:{port}:{port}", "localhost:port"]
HOSTS += ["localhost.book.example", "book.example#localhost:{port}"]


@pytest.mark.parametrize("host", HOSTS)
def test_only_the_two_names_of_this_machine_are_hosts(host, live):
    assert live.ask("/", Host=host.format(port=live.port)).status in (400, 403)


def test_an_address_that_no_handler_has_is_judged_by_the_rules_too(live):
    for target in ("http://book.example/", "*"):
        head = f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{live.port}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", live.port), timeout=10) as connection:
            connection.sendall(head.encode())
            answer = connection.recv(5000)
        assert b" 401 " in answer.splitlines()[0] and b"frame-ancestors" in answer


def test_every_rule_has_a_request_that_breaks_it():
    assert {rule for rule, _, _ in BROKEN} == {rule.__name__ for rule in RULES}


@pytest.mark.parametrize("site", ["same-origin", "none", None])
def test_own_pages_and_typed_addresses_are_answered(site, live):
    own = {"Sec_Fetch_Site": site, "Origin": live.address}
    assert live.ask(CHECK, COIN, **own).status == 200
    assert live.ask("/", Sec_Fetch_Site=site, Host=f"localhost:{live.port}").status == 200


def test_the_token_becomes_a_cookie_that_no_script_and_no_other_site_gets(live):
    answer = live.ask(f"/enter?token={live.keys.token}", Cookie=None)
    assert answer.status == 200 and 'location.replace("/")' in answer.text
    assert live.keys.page in answer.text and answer.headers["Cache-Control"] == "no-store"
    cookie = answer.headers["Set-Cookie"]
    assert live.keys.page not in cookie
    assert live.keys.cookie in cookie and live.keys.token not in cookie
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    wrong = live.ask("/enter?token=guess", Cookie=None)
    assert wrong.status == 401 and "Set-Cookie" not in wrong.headers
    assert live.ask("/enter", Cookie=None).status == 401


@pytest.mark.parametrize("address", ["/", "/notebooks/01_coin.html", "/audit", "/live/tools.js"])
def test_what_the_cookie_opens_does_not_tell_the_secret_of_the_page(address, live):
    answer = live.ask(address, X_Labelaudit_Page=None)
    assert answer.status == 200
    assert live.keys.page not in answer.text + str(answer.headers)


OF_THE_PAGE = ["check/01_coin", "run/01_coin", "jobs/1", "runs/01_coin-smoke", "upload"]
OF_THE_PAGE += ["upload/delete", "audits", "reports/0123456789abcdef", "form/01_coin"]


@pytest.mark.parametrize("path", ["/nothing", *(f"/api/{path}" for path in OF_THE_PAGE)])
def test_whoever_has_the_cookie_alone_changes_and_lists_nothing(path, live):
    """A browser gives it to a server at any port of this machine."""
    before = len(live.jobs)
    kind = "multipart/form-data; boundary=edge" if path == "/api/upload" else "application/json"
    stolen = {"X_Labelaudit_Page": None, "Content_Type": kind}
    assert live.ask(path, b"{}", **stolen).status == 401
    if path.startswith("/api/"):
        assert live.ask(path, X_Labelaudit_Page=None).status == 401
    assert len(live.jobs) == before


def test_the_address_that_a_browser_is_started_with_opens_the_book_once(tmp_path, monkeypatch):
    """Every user of the machine can read it in the list of processes."""
    checkout, opened = make_book(tmp_path), []

    async def served(checkout, keys, port, started):
        started(9)
        token = opened[0].partition("token=")[2]
        opened.extend([keys.accept(token), keys.accept(token), keys.accept(keys.token)])

    monkeypatch.chdir(checkout.root)
    monkeypatch.setattr("book.tools.serve.server.serve", served)
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert cli.main(["serve", "--port", "0"]) == 0
    assert opened[1:] == [True, False, True]


def test_secrets_are_compared_in_constant_time(live, monkeypatch):
    compared = []
    plain = guard.hmac.compare_digest
    monkeypatch.setattr(
        guard.hmac, "compare_digest", lambda a, b: compared.append((a, b)) or plain(a, b)
    )
    live.ask("/")
    live.ask("/enter?token=guess", Cookie=None)
    cookie, token = (secret.encode() for secret in (live.keys.cookie, live.keys.token))
    assert compared == [(cookie, cookie), (b"guess", token)]


def test_no_answer_allows_another_origin_to_read_it(live):
    run = live.run()["run"]
    foreign = {"Origin": "http://127.0.0.1:9", "Access_Control_Request_Method": "POST"}
    answers = [
        live.ask("/"),
        live.ask(CHECK, COIN),
        live.ask(f"/runs/{run}/page"),
        live.ask("/nothing"),
        live.ask(CHECK, method="OPTIONS", **foreign),
    ]
    assert answers[-1].status in (403, 405)
    for answer in answers:
        assert not [name for name in answer.headers if name.lower().startswith("access-control")]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "frame-ancestors 'self'" in answer.headers["Content-Security-Policy"]


def test_what_a_run_made_is_served_in_a_sandbox_until_it_is_deleted(live):
    run = live.run(bias="0.75")["run"]
    policies = {"page": SANDBOX, "figures/fig-coin.svg": STILL, "files/tosses.csv": STILL}
    for path, policy in policies.items():
        answer = live.ask(f"/runs/{run}/{path}")
        assert answer.status == 200
        assert answer.headers["Content-Security-Policy"] == policy
        assert policy.startswith("sandbox ") and "default-src 'none'" in policy
        assert "allow-same-origin" not in policy and "connect-src" not in policy
    assert "script" not in STILL
    tab = live.ask(f"/runs/{run}/page", Sec_Fetch_Dest="document")
    assert (tab.status, tab.headers["Location"]) == (302, f"/compare/{run}"), "no tab of its own"
    assert live.ask(f"/runs/{run}/page", Sec_Fetch_Dest="iframe").status == 200
    assert live.ask(f"/api/runs/{run}", {}).status == 200
    assert live.ask(f"/api/runs/{run}").status == live.ask(f"/runs/{run}/page").status == 404
    assert not live.checkout.page(run).exists(), "deleted when asked"


@pytest.mark.parametrize("name", ["..", "%2e%2e", ".", "...", "..%2fruns", "%00", "-"])
def test_no_forged_name_of_a_run_is_read_or_deleted(name, live):
    run = live.run()["run"]
    record = (live.checkout.page(run) / "run.json").read_text()
    forged = [live.checkout.build / "run.json", live.checkout.build / "runs" / "run.json"]
    for path in forged:
        path.write_text(record)
    try:
        for address in (f"/api/runs/{name}", f"/runs/{name}/page"):
            assert live.ask(address).status in (400, 404)
        assert live.ask(f"/api/runs/{name}", {}).status in (400, 404)
        assert live.checkout.page(run).is_dir() and live.checkout.site.is_dir()
    finally:
        for path in forged:
            path.unlink()


@pytest.mark.parametrize("path", ["/etc/passwd", "../notebooks/01_coin.md", "upload:..", "C:\\a"])
def test_no_path_of_the_machine_is_accepted(path, live):
    answer = live.ask("/api/run/03_table", {"scale": "smoke", "values": {"table": path}})
    assert answer.status == 422
    assert "no path is accepted" in answer.text
    assert live.ask("/api/audits", {"table": path, "label": "affair"}).status == 422


OUTSIDE = ["/../chapters.yml", "/..%2f..%2fnotebooks/chapters.yml", "/%2e%2e/%2e%2e/pyproject.toml"]
OUTSIDE += ["/notebooks/../../../pyproject.toml", "/..%2f..%2fbook/index.html", "/runs/../page"]
OUTSIDE += ["/runs/..%2f..%2fhtml/page", "/live/../server.py", "/audits/..%2f..%2fhtml/page"]
OUTSIDE += ["/runs/a%0d%0aSet-Cookie:%20a=b/page", "/a%0d%0aSet-Cookie:%20a=b.html"]


@pytest.mark.parametrize("address", OUTSIDE)
def test_no_file_outside_is_served_and_no_header_is_added(address, live):
    answer = live.ask(address)
    assert answer.status in (400, 403, 404)
    assert "Set-Cookie" not in answer.headers


def test_a_link_in_the_site_that_leads_out_of_it_is_not_followed(live):
    for name in ("out.html", "out.txt"):
        link = live.checkout.site / name
        link.symlink_to(live.checkout.chapters_file)
        assert live.ask(f"/{name}").status in (403, 404)
        link.unlink()


def test_a_file_that_is_too_large_is_rejected_before_it_arrives(live):
    head = (
        f"POST /api/upload HTTP/1.1\r\nHost: 127.0.0.1:{live.port}\r\n"
        f"Cookie: labelaudit-{live.port}={live.keys.cookie}\r\n"
        f"X-Labelaudit-Page: {live.keys.page}\r\n"
        "Content-Type: multipart/form-data; boundary=edge\r\nContent-Length: 900000000\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", live.port), timeout=10) as connection:
        connection.sendall(head.encode())
        assert b"413" in connection.recv(1000).splitlines()[0]


def test_an_upload_is_judged_by_the_rules_before_it_arrives(live):
    before = sorted(live.checkout.uploads.glob("*"))
    assert live.upload("a.csv", TABLE, Cookie=None).status == 401
    assert live.upload("a.csv", TABLE, Origin="http://127.0.0.1:9").status == 403
    assert live.upload("a.csv", TABLE, Content_Type="application/json").status == 415
    assert sorted(live.checkout.uploads.glob("*")) == before


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "book.example"])
def test_another_address_than_this_machine_is_refused(host, capsys):
    assert cli.main(["serve", "--host", host, "--no-open"]) == 2
    assert f"--host: '{host}' is not this machine" in capsys.readouterr().err


def test_the_server_listens_at_this_machine_alone(live):
    assert guard.ADDRESS == "127.0.0.1"
    with pytest.raises(OSError):
        socket.create_connection((socket.gethostbyname("127.0.0.2"), live.port), timeout=2)


def test_a_port_that_is_taken_is_one_clear_line(live, capsys):
    assert cli.main(["serve", "--port", str(live.port), "--no-open"]) == 2
    assert f"--port: {live.port} is taken" in capsys.readouterr().err
    assert cli.main(["serve", "--port", "70000", "--no-open"]) == 2


def test_pages_get_the_form_and_files_stay_as_they_are(live):
    page = live.checkout.site / "notebooks" / "01_coin.html"
    before = page.read_bytes()
    assert 'data-chapter="01_coin"' in live.ask("/notebooks/01_coin.html").text
    assert 'data-chapter=""' in live.ask("/notebooks/02_plain.html").text, "it has no parameters"
    assert live.ask("/notebooks/01_coin.html?plain").text.encode() == before
    assert page.read_bytes() == before and b"live" not in before
    assert live.ask("/_images/coin.svg").text == (page.parents[1] / "_images/coin.svg").read_text()


def test_the_form_has_every_field_with_its_range_and_values(live):
    form = live.json("/api/form/01_coin")
    fields = {field["name"]: field for field in form["fields"]}
    assert list(fields) == ["bag_sizes", "bias", "law", "fail", "sleep", "seed"]
    assert (fields["bias"]["low"], fields["bias"]["high"]) == (0, 1)
    assert fields["bias"]["slider"] and not fields["bias"]["logarithmic"]
    assert fields["law"]["choices"] == ["uniform", "beta-2-30"]
    assert fields["bag_sizes"]["scales"] == {
        "smoke": "[2]", "laptop": "[2, 4]", "paper": "[2, 4, 8]",
    }  # fmt: skip
    assert form["seconds"] == {"smoke": 3, "laptop": 4, "paper": 600}
    assert live.ask("/api/form/99_absent").status == 404


@pytest.mark.parametrize(
    ("values", "field", "sentence"),
    [
        ({"bias": "2"}, "bias", "2 is out of range; allowed: 0 to 1"),
        ({"bias": ""}, "bias", "no value given; allowed: 0 to 1"),
        ({"bias": "nan"}, "bias", "'nan' is not one number"),
        ({"bag_sizes": "4"}, "bag_sizes", "4 is not a list; write it as [4]"),
        ({"bag_sizes": "[4"}, "bag_sizes", "bag_sizes is not valid YAML"),
        ({"law": "normal"}, "law", "'normal' is not among: uniform, beta-2-30"),
        ({"bais": "1"}, "", "01_coin has no parameter 'bais'; did you mean bias?"),
        ({"bias": 1}, "bias", "1 is not text"),
        ({"bag_sizes": "[" * 9000}, "bag_sizes", "a list in a list in a list is no value"),
        ({"bag_sizes": "[[&a [1], *a]]"}, "bag_sizes", "a list in a list in a list is no value"),
        ({"bag_sizes": f"[{'1, ' * 9000}1]"}, "bag_sizes", "the value has more than"),
    ],
)
def test_an_invalid_value_gets_the_contracts_own_sentence(values, field, sentence, live):
    before = len(live.jobs)
    answer = live.ask("/api/run/01_coin", {"scale": "smoke", "values": values})
    assert answer.status == 422
    errors = live.json(CHECK, {"scale": "smoke", "values": values})["errors"]
    assert list(errors) == [field] and errors[field].startswith(sentence)
    assert len(live.jobs) == before


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'"text"', b"\xff", b"[" * 100_000])
def test_a_body_that_is_no_object_is_an_error(body, live):
    assert live.ask(CHECK, body, Content_Type="application/json").status == 400
    assert live.json(CHECK, {"scale": "huge"})["errors"][""].startswith("'huge' is not a scale")


@pytest.mark.parametrize(
    ("name", "headers"),
    [
        ("\x00.csv", {}),
        ("a.csv", {"Content_Type": "multipart/form-data; boundary=another"}),
        ("a.csv", {"Content_Length": "abc"}),
    ],
)
def test_an_upload_that_cannot_be_read_is_an_error(name, headers, live):
    assert live.upload(name, TABLE, **headers).status == 400


def test_the_command_is_what_a_reader_would_type(live):
    values = {"bias": "0.25", "bag_sizes": "[2, 8]", "law": "uniform"}
    command = live.json(CHECK, {"scale": "smoke", "values": values})["command"]
    assert command == "labelbook run 01_coin --scale smoke -p bias 0.25 -p bag_sizes '[2, 8]'"
    assert live.json(CHECK, {"scale": "laptop"})["command"] == "labelbook run 01_coin"


def test_a_run_goes_through_its_states_and_is_kept_beside_the_book(live):
    done = live.run(bias="0.125")
    assert (done["state"], done["cell"], done["heading"]) == ("done", 3, "Tosses")
    run = live.json(f"/api/runs/{done['run']}")
    assert run["description"] == "smoke scale, bias 0.125"
    assert run["numbers"] == [
        {
            "meaning": "fraction of heads",
            "yours": "0.125 (this coin)",
            "book": "0.5 (fair coin)",
        }
    ]
    listed = [run["run"] for run in live.json("/api/form/01_coin")["runs"]]
    assert listed[0] == done["run"] == "01_coin-smoke-bias=0.125-" + done["run"][-10:]


def test_a_chapters_own_objection_is_passed_on(live):
    end = live.run(fail="true")
    assert (end["state"], end["message"]) == ("refused", "bias does not fit")


def test_one_job_runs_at_a_time_and_equal_ones_are_shared(live):
    order = {"scale": "smoke", "values": {"seed": "79"}}
    with live.holding():
        first, same = (live.json("/api/run/01_coin", order)["job"]["id"] for _ in range(2))
        second = live.json("/api/run/01_coin", {"scale": "laptop"})["job"]
        assert first == same
        assert (second["state"], second["ahead"]) == ("waiting", 1)
    assert live.finished(second["id"])["state"] == "done"
    assert live.json(f"/api/jobs/{first}")["state"] == "done"


def test_cancelling_ends_one_job_and_its_process_alone(live):
    order = {"scale": "smoke", "values": {"sleep": "300"}}
    long = live.json("/api/run/01_coin", order)["job"]["id"]
    waiting = live.json("/api/run/01_coin", {"scale": "smoke", "values": {"seed": "77"}})["job"]
    never = live.json("/api/run/01_coin", {"scale": "smoke", "values": {"seed": "78"}})["job"]
    while live.json(f"/api/jobs/{long}")["state"] != "running":
        time.sleep(0.02)
    worker = live.app.settings["workers"].process.pid
    assert live.json(f"/api/jobs/{never['id']}", {})["state"] == "cancelled"
    assert live.json(f"/api/jobs/{long}", {})["state"] == "cancelled"
    assert live.finished(waiting["id"])["state"] == "done"
    assert live.app.settings["workers"].process.pid != worker
    assert live.json(f"/api/jobs/{never['id']}")["state"] == "cancelled"
    assert live.json(f"/api/jobs/{long}", {})["state"] == "cancelled", "a second time"


def test_a_worker_that_dies_fails_its_job_and_is_replaced(live):
    job = live.json("/api/run/01_coin", {"scale": "smoke", "values": {"sleep": "301"}})["job"]
    while live.json(f"/api/jobs/{job['id']}")["state"] != "running":
        time.sleep(0.02)
    os.kill(live.app.settings["workers"].process.pid, signal.SIGKILL)
    assert live.finished(job["id"])["message"] == "its process was ended"
    assert live.run(seed="5")["state"] == "done"


def test_a_table_is_kept_by_its_content_and_deleted_when_asked(live):
    stored = live.json_of(live.upload("my table.csv", TABLE))
    assert stored["columns"] == ["affair", "age", "day"]
    assert stored["name"] == "my_table.csv"
    again = live.json_of(live.upload("b.csv", TABLE))
    assert again["reference"] == stored["reference"], "the same content is one file"
    live.upload("my table.csv", TABLE)
    path = uploads.find(live.checkout, stored["reference"])
    assert path.read_bytes() == TABLE and path.parent.parent == live.checkout.uploads
    values = {"table": stored["reference"], "mechanisms": "[llp]"}
    checked = live.json("/api/check/03_table", {"scale": "smoke", "values": values})
    assert checked["errors"] == {}
    assert checked["command"].endswith("-p table my_table.csv -p mechanisms '[llp]'")
    assert live.ask("/api/upload/delete", {"reference": stored["reference"]}).status == 200
    assert not path.exists()
    again = live.json("/api/check/03_table", {"scale": "smoke", "values": values})
    assert again["errors"]["table"] == "this file is no longer here; choose it again"


def test_a_link_among_the_tables_is_neither_read_nor_its_target_deleted(live, tmp_path):
    mine = tmp_path / "mine" / "mine.csv"
    mine.parent.mkdir()
    mine.write_bytes(TABLE)
    reference = live.json_of(live.upload("t.csv", TABLE))["reference"]
    path = uploads.find(live.checkout, reference)
    path.unlink()
    path.symlink_to(mine)
    body = {"table": reference, "label": "affair"}
    assert "no longer here" in live.ask("/api/audits", body).text
    assert live.ask("/api/upload/delete", {"reference": reference}).status == 200
    assert mine.read_bytes() == TABLE and not path.parent.exists()


def test_a_table_that_claims_more_than_memory_holds_is_rejected(live, monkeypatch, tmp_path):
    pandas = pytest.importorskip("pandas")
    pandas.DataFrame({"a": range(3), "b": range(3)}).to_parquet(tmp_path / "t.parquet")
    content = (tmp_path / "t.parquet").read_bytes()
    assert live.json_of(live.upload("t.parquet", content))["columns"] == ["a", "b"]
    monkeypatch.setattr(uploads, "MAX_TABLE_VALUES", 5)
    answer = live.upload("t.parquet", content)
    assert answer.status == 422 and "3 rows of 2 columns; at most 5 values" in answer.text
    answer = live.upload("wide.csv", b"," * 2_000_000)
    assert answer.status == 422 and "its first line has more than 1,000,000 bytes" in answer.text
    long = b"a,b\n" + "ü,1\n".encode() * 400_000
    assert live.json_of(live.upload("long.csv", long))["columns"] == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.txt", b"x", "is not a file of .csv"),
        ("a.csv", b"", "is empty"),
        ("a.parquet", b"no parquet", "cannot be read as a table"),
        ("../../evil.csv", TABLE, None),
        ("..", TABLE, "is not a file of .csv"),
    ],
)
def test_what_is_no_table_is_refused_and_names_lead_nowhere(name, content, sentence, live):
    answer = live.upload(name, content)
    if sentence is None:
        path = uploads.find(live.checkout, live.json_of(answer)["reference"])
        assert path.parent.parent == live.checkout.uploads
    else:
        assert answer.status == 422 and sentence in answer.text


@pytest.mark.parametrize(
    ("name", "content"), [("a.csv", b"\x89PNG\r\n\x00\xff"), ("a.parquet", b"a,b\n1,2\n")]
)
def test_a_file_that_is_rejected_does_not_stay_and_harms_no_other(name, content, live):
    kept = live.json_of(live.upload("kept.csv", b"a,b\n1,2\n"))["reference"]
    before = sorted(live.checkout.uploads.rglob("*"))
    assert live.upload(name, content).status == 422
    assert sorted(live.checkout.uploads.rglob("*")) == before
    assert uploads.find(live.checkout, kept).name == "kept.csv"


def test_a_table_that_was_not_audited_is_listed_until_it_is_deleted(live):
    stored = live.json_of(live.upload("unaudited.csv", b"a,b\n5,6\n"))
    reference = stored["reference"]
    listed = {table["reference"]: table for table in live.json("/api/audits")["files"]}
    assert listed[reference] == stored, "its columns too, so that it can be audited"
    uploads.find(live.checkout, reference).write_bytes(b"\x89PNG\xff")
    [file] = [f for f in live.json("/api/audits")["files"] if f["reference"] == reference]
    assert file == {"reference": reference, "name": "unaudited.csv"}, "it can only be deleted"
    live.ask("/api/upload/delete", {"reference": reference})
    left = [table["reference"] for table in live.json("/api/audits")["files"]]
    assert reference not in left and not (live.checkout.uploads / reference[7:]).exists()


def audit_body(live, **chosen):
    reference = live.json_of(live.upload("t.csv", TABLE))["reference"]
    return {"table": reference, "label": "affair", "target": "additive", "limit": 0.05} | chosen


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        ({"label": ""}, "label: choose the column"),
        ({"label": "absent"}, "label: 'absent' is not a column of t.csv"),
        ({"bag": "--output=x"}, "bag: '--output=x' is not a column"),
        ({"target": "best"}, "target: 'best' is not among"),
        ({"limit": -1}, "limit: -1 is not a number"),
        ({"limit": "0.1"}, "limit: '0.1' is not a number"),
        ({"limit": float("nan")}, "limit: nan is not a number"),
        ({"limit": 10**400}, "limit: 1000"),
        ({"positive": "a\0b"}, "positive: 'a\\x00b' holds a null byte"),
    ],
)
def test_an_audit_is_checked_before_it_is_queued(chosen, sentence, live):
    before = len(live.jobs)
    answer = live.ask("/api/audits", audit_body(live, **chosen))
    assert answer.status == 422 and sentence in answer.text
    assert len(live.jobs) == before


@pytest.mark.parametrize("status", [0, 3])
def test_an_audit_runs_the_command_and_its_traces_are_deleted(status, live, monkeypatch):
    script = (
        "import pathlib, sys; print('[0 s] reading', sys.argv[-1], file=sys.stderr)\n"
        "name = next(a for a in sys.argv if a.startswith('--output=')).partition('=')[2]\n"
        "pathlib.Path(name).write_text('<html><head></head>' + ' '.join(sys.argv[1:]))\n"
        "pathlib.Path(name).with_suffix('.json').write_text('{}')\n"
        # An audit that recommends nothing is as finished as one that does.
        f"sys.exit({status})"
    )
    monkeypatch.setattr(audits, "COMMAND", (sys.executable, "-c", script))
    body = audit_body(live, bag="day")
    done = live.finished(live.json("/api/audits", body)["id"])
    assert done["state"] == "done" and done["heading"] == "reading t.csv"
    page = live.ask(f"/audits/{done['audit']}/page")
    assert "--label=affair --bag=day --target=additive=0.05" in page.text
    assert page.headers["Content-Security-Policy"] == SANDBOX
    assert live.ask(f"/audits/{done['audit']}/numbers").text == "{}"
    assert live.json("/api/audits")["audits"][0]["chosen"]["label"] == "affair"
    tab = live.ask(f"/audits/{done['audit']}/page", Sec_Fetch_Dest="document")
    assert (tab.status, tab.headers["Location"]) == (302, "/audit")
    assert live.ask("/api/upload/delete", {"reference": body["table"]}).status == 200
    assert live.ask(f"/api/reports/{done['audit']}", {}).status == 200
    assert live.ask(f"/audits/{done['audit']}/page").status == 404
    assert live.json("/api/check/03_table", {"values": {"table": body["table"]}})["errors"]


@pytest.mark.parametrize("length", [100_000, 3_000_000])
def test_a_long_line_of_progress_leaves_no_audit_behind(length, live, monkeypatch, tmp_path):
    """The names of many columns, say; a line that is too long ends the audit."""
    script = (
        "import os, pathlib, sys, time\n"
        f"pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid()))\n"
        f"print('x' * {length}, file=sys.stderr, flush=True)\n"
        f"time.sleep({0 if length < 2**20 else 600})\n"
        "print('labelaudit: no such column', file=sys.stderr)\n"
        "sys.exit(2)"
    )
    monkeypatch.setattr(audits, "COMMAND", (sys.executable, "-c", script))
    end = live.finished(live.json("/api/audits", audit_body(live, bag="day"))["id"])
    assert end["state"] == ("refused" if length < 2**20 else "failed")
    assert not list((live.checkout.build / "audits").glob("*"))
    said = "no such column" if length < 2**20 else "it wrote a line that is too long to be read"
    assert end["message"] == said and len(end.get("heading", "")) <= audits.MAX_SHOWN_MESSAGE
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_ending_the_server_ends_its_worker(number, tmp_path):
    checkout = make_book(tmp_path)
    process = subprocess.Popen(
        [*LABELBOOK, "serve", "--no-open", "--port", "0"],
        cwd=checkout.root, env=with_sources(), stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "the book is at\n"
    [worker] = children(process.pid)
    process.send_signal(number)
    process.communicate(timeout=20)
    assert process.returncode == (-9 if number == signal.SIGKILL else 0)
    deadline = time.monotonic() + 20
    while Path(f"/proc/{worker}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{worker}").exists()


def children(process):
    path = Path(f"/proc/{process}/task/{process}/children")
    if not path.exists():
        pytest.skip("this system does not list the children of a process")
    return [int(word) for word in path.read_text().split()]


@pytest.mark.slow
def test_the_worker_makes_the_page_that_the_command_makes_and_cancelling_ends_its_kernel(tmp_path):
    checkout = make_book(tmp_path)
    coin = load_chapters(checkout.chapters_file)["01_coin"]
    live = Live(checkout, [sys.executable, "-m", "book.tools.serve.worker", str(checkout.root)])
    try:
        first, again = (live.run(bias="0.25") for _ in range(2))
        assert first["state"] == again["state"] == "done", (first, again)
        assert (first["cells"], first["heading"]) == (5, "A coin") and "cells" not in again
        folder = checkout.page(first["run"])
        page = (folder / "01_coin.html").read_text()
        shutil.rmtree(folder)
        execution = execute(checkout, coin, coin.resolve("smoke", {"bias": 0.25}), scale="smoke")
        assert execution.reason == "", "the run of the worker is the run of the command"
        assert write_page(checkout, execution).read_text() == page
        order = {"scale": "smoke", "values": {"sleep": "300"}}
        job = live.json("/api/run/01_coin", order)["job"]["id"]
        while live.json(f"/api/jobs/{job}").get("cell", 0) < 2:
            time.sleep(0.1)
        live.json(f"/api/jobs/{job}", {})
        assert live.run(seed="3")["state"] == "done"
    finally:
        live.close()
    deadline = time.monotonic() + 20
    while kernels_below(checkout) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert kernels_below(checkout) == []


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """A server with the real worker, and a chapter that rejects one seed."""
    checkout = make_book(tmp_path_factory.mktemp("serve-real"))
    source = checkout.source("01_coin")
    code = source.read_text().replace(
        "ipython3\nimport time\n",
        "ipython3\n:tags: [refuses]\nimport time\n"
        'if seed == 13:\n    raise ValueError("unlucky")\n',
    )
    source.write_text(code)
    server = Live(checkout, [sys.executable, "-m", "book.tools.serve.worker", str(checkout.root)])
    yield server
    server.close()


def full_disk(live, values):
    """Let every write of the run's notebook fail as on a full disk."""
    coin = load_chapters(live.checkout.chapters_file)["01_coin"]
    parameters = coin.resolve("smoke", values)
    notebook = live.checkout.executed(run_name("01_coin", parameters)) / "partial.ipynb"
    notebook.parent.mkdir(parents=True)
    notebook.symlink_to("/dev/full")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "full", "state", "message"),
    [
        ({"seed": 13}, False, "refused", "unlucky"),
        ({"fail": True}, False, "failed", "the coin is lost"),
        ({"seed": 14}, True, "failed", "No space left on device"),
    ],
)
def test_a_run_that_ends_badly_leaves_nothing_for_the_next_to_wait_for(
    values, full, state, message, real
):
    real.ask("/notebooks/01_coin.html")  # a visit makes a kernel ready
    if full:
        full_disk(real, values)
    end = real.run(**{name: json.dumps(value) for name, value in values.items()})
    assert end["state"] == state and message in end["message"]
    answer = real.json("/api/run/01_coin", {"values": {"seed": str(100 + len(real.jobs))}})
    assert real.finished(answer["job"]["id"], seconds=60)["state"] == "done"


@pytest.mark.parametrize(("chapter", "loaded"), [("01_setting", False), ("07_scatter_plots", True)])
def test_a_spare_kernel_loads_what_shades_need_where_they_are_drawn(chapter, loaded):
    code = imports_of(CHECKOUT, DECLARED[chapter])
    assert ("seaborn" in code) == loaded and "import matplotlib" in code
