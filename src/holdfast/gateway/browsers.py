"""Requests of web pages: which of them may use the gateway, and what their browser needs to know of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from ..errors import InvalidInput
from ..io.access_keys import is_loopback

if TYPE_CHECKING:
    from ..io.http_server import HttpRequest

_METHODS = "GET, POST, PUT, PATCH, DELETE, HEAD"
_NO_URL = SplitResult("", "", "", "", "")
_PREFLIGHT_SECONDS = 600


def host_of(request: HttpRequest) -> str:
    """Returns the name by which a client addressed the gateway, without its port; empty if it is none."""
    return _split(f"//{request.headers.get('Host', 'localhost')}").hostname or ""


def is_foreign_page(request: HttpRequest, listed: Collection[str]) -> bool:
    """Whether a browser sent a request for a page that is not listed, not the gateway's own, nor of this machine."""
    if origins := request.headers.getall("Origin"):
        return not all(_may_call(origin.lower(), request, listed) for origin in origins)
    sites = request.headers.getall("Sec-Fetch-Site")
    return any(site not in ("none", "same-origin") for site in sites)


def _may_call(origin: str, request: HttpRequest, listed: Collection[str]) -> bool:
    page = _split(origin)
    is_near = is_loopback(page.hostname or "") or page.netloc == request.headers.get("Host").lower()
    return origin in listed or (page.scheme in ("http", "https") and bool(page.netloc) and is_near)


def is_preflight(request: HttpRequest) -> bool:
    return request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers


def cors_headers(request: HttpRequest, listed: Collection[str]) -> Mapping[str, str]:
    """Returns the headers by which a browser gives a reply to the page that asked for it; none unless it is listed."""
    origin, *others = request.headers.getall("Origin") or ("",)
    if others or origin.lower() not in listed:
        return {}
    headers = {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}
    if not is_preflight(request):
        return headers | {"Access-Control-Expose-Headers": "*"}
    headers["Access-Control-Allow-Methods"] = _METHODS
    headers["Access-Control-Max-Age"] = str(_PREFLIGHT_SECONDS)
    if names := request.headers.get("Access-Control-Request-Headers"):
        headers["Access-Control-Allow-Headers"] = names
    if "Access-Control-Request-Private-Network" in request.headers:
        headers["Access-Control-Allow-Private-Network"] = "true"
    return headers


def check_origin(text: str) -> str:
    """Returns an origin in the form that browsers send; raises InvalidInput for anything else."""
    parts = _split(text)
    if not parts.netloc or text.lower() != f"{parts.scheme}://{parts.netloc}".lower() or len(text.split()) > 1:
        raise InvalidInput(f"{text!r} is not the origin of a page: give one such as https://app.example.")
    return text.lower()


def _split(text: str) -> SplitResult:
    try:
        return urlsplit(text)
    except ValueError:
        return _NO_URL
