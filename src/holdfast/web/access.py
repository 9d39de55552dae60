"""Who may see the pages, and which requests are answered at all.

A one-time token in the printed address becomes a cookie; on other addresses than loopback, a key of the key file does.
Only the server's own names are accepted as Host, against DNS rebinding. Writes need the page's own origin and a header
that no form can send.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import NamedTuple
from urllib.parse import parse_qs, urlencode

from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..errors import InvalidInput
from ..io.access_keys import is_loopback, owner_of
from .replies import SECURITY_HEADERS, problem_reply

WRITE_HEADER = "x-holdfast"
MAX_BODY = 64 * 1024
"""Bytes of a request."""
_COOKIE_SECONDS = 30 * 24 * 3600
MAX_LOGINS = 100
"""Cookies of one owner; the oldest ends first."""
_OPEN_PATHS = ("/static/", "/login")
"""Paths that need no cookie: they hold nothing of any session."""


class _Login(NamedTuple):
    owner: str | None
    key: str | None = None


class Access:
    """Names of the server, the token or keys that open it, and the cookies that it gave.

    `owner` limits everyone to the sessions of one owner; with keys, each key has its own.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        names: tuple[str, ...] = (),
        keys: Mapping[str, str] | None = None,
        owner: str | None = None,
    ) -> None:
        if not keys and not is_loopback(host):
            raise InvalidInput(
                f"{host} can be reached from other machines: name a file of keys with --key-file, "
                "or listen on 127.0.0.1."
            )
        own = ("127.0.0.1", "localhost", "[::1]", f"[{host}]" if ":" in host else host)
        here = {f"{name.lower()}{suffix}" for name in own for suffix in _suffixes(port)}
        named = {f"{name.lower()}{suffix}" for name in names for suffix in ("", f":{port}")}  # a proxy has its own port
        self.hosts = frozenset(here | named)
        self.origins = frozenset({f"http://{name}" for name in self.hosts} | {f"https://{name}" for name in named})
        self.cookie = f"holdfast-{port}"
        self.token: str | None = None if keys else secrets.token_urlsafe(24)
        self.address = f"http://{own[3] if is_loopback(host) else own[0]}:{port}/"
        self._keys, self._owner = dict(keys or {}), owner
        self._logins: dict[str, _Login] = {}
        """By the value of the cookie."""

    @property
    def opening_url(self) -> str:
        """The address to open: with the token, until it was used."""
        return self.address if self.token is None else f"{self.address}?{urlencode({'token': self.token})}"

    @property
    def has_keys(self) -> bool:
        return bool(self._keys)

    @property
    def login_count(self) -> int:
        """How many cookies are valid."""
        return len(self._logins)

    def redeem(self, token: str) -> str | None:
        """Returns a new cookie for the token of the printed address, which works once; None for anything else."""
        if self.token is None or not secrets.compare_digest(token.encode(), self.token.encode()):
            return None
        self.token = None
        return self._add(_Login(self._owner))

    def log_in(self, key: str) -> str | None:
        """Returns a new cookie for a key; None for anything else."""
        owner = owner_of(key, self._keys)
        return None if owner is None else self._add(_Login(owner, key))

    def _add(self, login: _Login) -> str:
        own = [value for value, other in self._logins.items() if other.owner == login.owner]
        for oldest in own[: len(own) + 1 - MAX_LOGINS]:
            del self._logins[oldest]
        value = secrets.token_urlsafe(32)
        self._logins[value] = login
        return value

    def reload(self, keys: Mapping[str, str]) -> None:
        """Uses other keys; cookies that were given for a key which is gone, or has another owner, end."""
        self._keys = dict(keys)
        self._logins = {
            value: login
            for value, login in self._logins.items()
            if login.key is None or self._keys.get(login.key) == login.owner
        }

    def set_cookie(self, reply: Response, value: str) -> Response:
        reply.set_cookie(self.cookie, value, max_age=_COOKIE_SECONDS, path="/", httponly=True, samesite="strict")
        return reply

    def is_known(self, headers: Headers) -> bool:
        return self._login(headers) is not None

    def owner(self, headers: Headers) -> str | None:
        """Returns the owner whose sessions a request may see; None for all of them."""
        login = self._login(headers)
        return None if login is None else self._logins[login].owner

    def _login(self, headers: Headers) -> str | None:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return None
        return found.value if found is not None and found.value in self._logins else None


def _suffixes(port: int) -> tuple[str, ...]:
    return (f":{port}", "") if port in (80, 443) else (f":{port}",)


class Guard:
    """ASGI middleware that refuses requests before any page sees them, and adds the security headers."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app, self.access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(h for h in SECURITY_HEADERS if h[0] not in given)]
            await send(message)

        reply = self._refuse(scope, headers) or self._log_in(scope, headers)
        await (reply or self.app)(scope, receive, send_guarded)

    def _refuse(self, scope: Scope, headers: Headers) -> Response | None:
        path, method = scope["path"], scope["method"]
        if headers.get("host", "").lower() not in self.access.hosts:
            return problem_reply(421, "This server has another name: open the address that it printed.", path)
        if method not in ("GET", "HEAD", "POST"):
            return problem_reply(405, "Only GET and POST are answered.", path)
        site = headers.get("sec-fetch-site", "same-origin")
        if method == "POST":
            return self._refuse_write(headers, site, path)
        if path.startswith("/api/") and site not in ("same-origin", "none"):
            return problem_reply(403, "Pages of other sites may not read from this server.", path)
        return None

    def _refuse_write(self, headers: Headers, site: str, path: str) -> Response | None:
        if site != "same-origin" or headers.get("origin", "") not in self.access.origins:
            return problem_reply(403, "Pages of other sites may not write to this server.", path)
        if headers.get(WRITE_HEADER) != "1":
            return problem_reply(403, f"A write needs the header {WRITE_HEADER}: 1.", path)
        length = headers.get("content-length", "")
        if not length.isdigit() or int(length) > MAX_BODY:
            return problem_reply(413, f"A request has at most {MAX_BODY:,} bytes and states its length.", path)
        return None

    def _log_in(self, scope: Scope, headers: Headers) -> Response | None:
        """Turns a token in the address into a cookie; refuses requests without either."""
        path = scope["path"]
        query: dict[str, list[str]] = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        if (token := query.get("token")) and path == "/" and scope["method"] == "GET":
            cookie = self.access.redeem(token[0])
            if cookie is not None:
                return self.access.set_cookie(RedirectResponse("/", 303), cookie)
            if self.access.is_known(headers):
                return RedirectResponse("/", 303)
        if path.startswith(_OPEN_PATHS) or self.access.is_known(headers):
            return None
        if self.access.has_keys and not path.startswith("/api/"):
            return RedirectResponse("/login", 303)
        return problem_reply(
            401, "Open the address that holdfast web printed; it works once. Start it again for a new one.", path
        )
