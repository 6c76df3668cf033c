"""Who is answered: the rules that keep every other web page, and every other machine, out.

The server runs code, so a page from elsewhere must not be able to call it, nor read from it. Each
rule is a function that raises `Rejected`; a request must pass all of them before a handler sees it.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

from tornado.httputil import HTTPServerRequest
from tornado.web import RequestHandler

# The only address that the server listens at.
ADDRESS = "127.0.0.1"
LOOPBACK = frozenset({ADDRESS, "localhost"})
ENTER = "/enter"
UPLOAD = "/api/upload"
API = "/api/"
# The header in which a page shows its secret.
PAGE_SECRET = "X-Labelaudit-Page"
# On every answer. No header of cross-origin sharing is ever sent.
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
# Pages load from this server alone. That holds for the frames in them too, so that what a run made
# cannot leave by the address of another page.
PAGE_POLICY = (
    "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; frame-src 'self';"
    " frame-ancestors 'self'; base-uri 'self'; form-action 'self'; object-src 'none'"
)
# The page of a run may hold what somebody else wrote into a table. It has an origin of its own,
# which no cookie belongs to, and may load and send nothing.
SANDBOX = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'"
    " 'unsafe-eval'; style-src 'unsafe-inline'; img-src data:; font-src data:; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'self'"
)
# A figure or a file needs no script at all, also where a tab of its own shows it.
STILL = (
    "sandbox allow-downloads; default-src 'none'; style-src 'unsafe-inline'; img-src data:;"
    " frame-ancestors 'self'"
)


# Storage belongs to an origin, and a port is a part of that. All tabs of the book share it.
ENTRANCE = """<!doctype html><title>labelaudit</title>
<script>localStorage.setItem("labelaudit-page", "{secret}"); location.replace("/");</script>
"""


class Rejected(Exception):
    """A request that is not answered: a status of HTTP, and why."""

    def __init__(self, status: int, reason: str) -> None:
        """`reason` is shown to whoever asked."""
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True, kw_only=True)
class Keys:
    """The token of the printed address, and the two secrets that it is exchanged for.

    A browser sends the cookie to every port of this machine, so to any other server that its user
    runs or visits there. The secret of the page it keeps for this port alone.

    The address that a browser is started with can be read in the list of processes by every user of
    the machine. So it has a token of its own, which is valid once.
    """

    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    page: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    once: set[str] = field(default_factory=set)

    def token_for_one_use(self) -> str:
        """A further token, for the first who shows it."""
        token = secrets.token_urlsafe(32)
        self.once.add(token)
        return token

    def accept(self, token: str) -> bool:
        """Whether a token opens the book; one for one use does so no more."""
        spent = {secret for secret in self.once if same_secret(token, secret)}
        self.once.difference_update(spent)
        return bool(spent) or same_secret(token, self.token)


def cookie_name(request: HTTPServerRequest) -> str:
    """Cookies do not know ports, so the name does: two servers do not log each other out."""
    return f"labelaudit-{request.host.partition(':')[2] or 80}"


def loopback_host(request: HTTPServerRequest, keys: Keys) -> None:
    """A name that somebody else's DNS points at this machine is not ours."""
    name, _, port = request.host.partition(":")
    if name not in LOOPBACK or not re.fullmatch(r"[0-9]{0,5}", port):
        raise Rejected(403, f"the host {request.host!r} is not this machine")


def own_origin(request: HTTPServerRequest, keys: Keys) -> None:
    """A request that says which page sent it must come from our own."""
    origin = request.headers.get("Origin")
    if origin is not None and origin != f"http://{request.host}":
        raise Rejected(403, f"a page of {origin!r} may not ask this server")


def own_site(request: HTTPServerRequest, keys: Keys) -> None:
    """Pages at another port of this machine share our cookies; the browser tells them apart."""
    site = request.headers.get("Sec-Fetch-Site", "none")
    if site not in ("same-origin", "none"):
        reason = "another page led here; type the address into the browser instead"
        raise Rejected(403, reason)


def typed_body(request: HTTPServerRequest, keys: Keys) -> None:
    """A form of a foreign page can send text, but not JSON without asking first."""
    if request.method != "POST":
        return
    kind = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    expected = "multipart/form-data" if request.path == UPLOAD else "application/json"
    if kind != expected:
        raise Rejected(415, f"the body must be {expected}, not {kind or 'untyped'}")


def known_cookie(request: HTTPServerRequest, keys: Keys) -> None:
    """All but the first address needs the cookie that the first address gives."""
    if request.path == ENTER:
        return
    cookie = request.cookies.get(cookie_name(request))
    if not same_secret(cookie.value if cookie else "", keys.cookie):
        reason = "open the address that `labelbook serve` printed when it was started"
        raise Rejected(401, reason)


def known_page(request: HTTPServerRequest, keys: Keys) -> None:
    """What changes or starts anything, or lists what a reader has, is for our own pages alone."""
    if request.method != "POST" and not request.path.startswith(API):
        return
    if not same_secret(request.headers.get(PAGE_SECRET, ""), keys.page):
        reason = "open the address that `labelbook serve` printed, in this browser"
        raise Rejected(401, reason)


def same_secret(offered: str, secret: str) -> bool:
    """Whether two secrets are equal, in a time that does not tell how far they agree."""
    return hmac.compare_digest(offered.encode(), secret.encode())


Rule = Callable[[HTTPServerRequest, Keys], None]
RULES: tuple[Rule, ...] = (
    loopback_host,
    own_origin,
    own_site,
    typed_body,
    known_cookie,
    known_page,
)


class Guarded(RequestHandler):
    """A handler that answers only requests which pass every rule."""

    policy = PAGE_POLICY

    def set_default_headers(self) -> None:
        """The headers of every answer, errors included."""
        self.clear_header("Server")
        for name, value in HEADERS.items():
            self.set_header(name, value)
        self.set_header("Content-Security-Policy", self.policy)

    def prepare(self) -> None:
        """Apply the rules before any method of a handler runs."""
        try:
            for rule in RULES:
                rule(self.request, self.settings["keys"])
            if "%00" in self.request.path:
                raise Rejected(400, "no file has a name with a null byte")
        except Rejected as rejection:
            self.reject(rejection)

    def reject(self, rejection: Rejected) -> None:
        """Answer with the reason, as text."""
        self.set_status(rejection.status)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(f"labelaudit: {rejection}\n")


class Enter(Guarded):
    """The first address: takes the token out of sight and gives the two secrets."""

    def get(self) -> None:
        """Exchange the token for the cookie, which no script can read, and the page's secret."""
        keys = self.settings["keys"]
        if not keys.accept(self.get_query_argument("token", "")):
            return self.reject(Rejected(401, "this token is not the one that was printed"))
        name = cookie_name(self.request)
        self.set_cookie(name, keys.cookie, httponly=True, samesite="Strict", path="/")
        self.set_header("Cache-Control", "no-store")
        self.finish(ENTRANCE.format(secret=keys.page))
        return None
