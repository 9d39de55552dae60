"""`Inspector`: the pages and their data as one ASGI application, and the server that runs it."""

from __future__ import annotations

import logging
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import urlencode

import anyio
import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..context.events import SessionRecord
from ..errors import HoldfastError, InvalidInput, UnknownSession
from ..io.secrets import scrub
from ..jobs.queue_status import QueueReader
from ..sessions import SessionService
from . import assets, pages
from .access import Access, Guard
from .api import Api
from .html import Html
from .jobs import JobPages
from .lab import LabPages
from .overview import Overview, read_title
from .replies import SECURITY_HEADERS, json_reply, page_reply, problem_reply

log = logging.getLogger("holdfast.web")
MAX_WRONG_KEYS = 20
"""Logins of one client that wait for being refused; a right key never waits."""
SessionPage = Callable[[Overview, Request], Html]


class Inspector:
    """Pages over the sessions of a service.

    `store_url` lets a process of its own do CPU-bound work, `reports` is a folder of lab reports, `queue` the queue
    of background jobs.
    """

    def __init__(
        self,
        sessions: SessionService,
        access: Access,
        *,
        store_url: str | None = None,
        read_only: bool = False,
        reports: Path | None = None,
        queue: QueueReader | None = None,
    ) -> None:
        self.sessions, self.access, self.read_only, self.queue = sessions, access, read_only, queue
        self._wrong_keys = Counter[str]()
        """By address of the client: logins that are being refused."""
        self.api = Api(sessions, access, store_url=store_url, read_only=read_only)
        in_session: dict[str, SessionPage] = {
            "": lambda one, _: pages.session_page(one, read_only=read_only),
            "/at/{seq:int}": lambda one, request: pages.context_page(
                one, request.path_params["seq"], _query_number(request, "vs"), read_only=read_only
            ),
            "/c/{seq:int}": lambda one, request: pages.compaction_page(
                one, request.path_params["seq"], read_only=read_only
            ),
            "/try": lambda one, _: pages.try_page(one, read_only=read_only),
            "/cost": lambda one, _: pages.cost_page(one, read_only=read_only),
        }
        routes = [
            Route("/", self._sessions_page),
            Route("/search", self._search_page),
            Route("/login", self._login, methods=["GET", "POST"]),
            Route("/static/{version}/{name}", _asset),
            *(Route(f"/s/{{id}}{path}", self._session_page(page)) for path, page in in_session.items()),
            *self.api.routes(),
            *LabPages(access, reports).routes(),
            *JobPages(self.api.overviews, sessions, access, queue).routes(),
        ]
        self.app = Starlette(
            routes=routes,
            middleware=[Middleware(Guard, access=access)],
            exception_handlers={404: _not_found, 405: _not_found, Exception: _failed},
        )

    # -- pages -----------------------------------------------------------------------------------------

    async def _sessions_page(self, request: Request) -> Response:
        return page_reply(pages.sessions_page())

    async def _search_page(self, request: Request) -> Response:
        query = request.query_params.get("q", "")[:1_000]
        if not query.strip():
            return page_reply(pages.search_page("", (), "", None, None))
        found, problem, more = dict[str, Any](hits=[], next=None), "", None
        titles: dict[str, str] = {}
        try:
            found = await self.api.find(request)
            for id in {hit["session"] for hit in found["hits"]}:
                titles[id] = await read_title(self.sessions, await self.sessions.get(id))
        except HoldfastError as error:
            problem = scrub(str(error))
        for hit in found["hits"]:
            hit["title"] = titles.get(hit["session"], "")
        if found["next"] is not None:
            more = str(request.url.include_query_params(offset=found["next"]).replace(scheme="", netloc=""))
        everywhere = f"/search?{urlencode({'q': query})}" if "session" in request.query_params else None
        return page_reply(pages.search_page(query, found["hits"], problem, more, everywhere))

    def _session_page(self, page: SessionPage) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            try:
                record: SessionRecord = await self.api.record(request)
                return page_reply(page(await self.api.overviews.read(record), request))
            except UnknownSession:
                return problem_reply(404, "There is no such session.", request.url.path)
            except HoldfastError as problem:
                return problem_reply(500, scrub(str(problem)), request.url.path)

        return answer

    async def _login(self, request: Request) -> Response:
        if request.method == "GET":
            return page_reply(pages.login_page())
        try:
            given = msgspec.json.decode(await request.body(), type=dict[str, str])
        except (msgspec.DecodeError, UnicodeError):
            given = {}
        cookie = self.access.log_in(given.get("key", ""))
        if cookie is None:
            return await self._refuse_key(request.client.host if request.client else "")
        return self.access.set_cookie(json_reply({}), cookie)

    async def _refuse_key(self, client: str) -> Response:
        if self._wrong_keys[client] >= MAX_WRONG_KEYS:
            return problem_reply(429, "Too many wrong keys at once: wait a second, then try again.")
        self._wrong_keys[client] += 1
        try:
            await anyio.sleep(1)
        finally:
            self._wrong_keys -= Counter([client])
        return problem_reply(401, "This key is not known.")


async def _asset(request: Request) -> Response:
    name = request.path_params["name"]
    if request.path_params["version"] != assets.VERSION or (content := assets.FILES.get(name)) is None:
        return problem_reply(404, "There is no such file.", request.url.path)
    headers = {"cache-control": "public, max-age=31536000, immutable"}
    return Response(content, media_type=assets.MEDIA_TYPES[PurePath(name).suffix], headers=headers)


def _query_number(request: Request, name: str) -> int | None:
    given = request.query_params.get(name, "")
    return int(given) if given.isdecimal() and len(given) < 13 else None


async def _not_found(request: Request, _: Exception) -> Response:
    return problem_reply(404, "There is no such page.", request.url.path)


async def _failed(request: Request, problem: Exception) -> Response:
    log.error("a request failed: %s", type(problem).__name__, exc_info=problem)
    reply = problem_reply(500, "The server failed: its log has the reason.", request.url.path)
    reply.raw_headers.extend(SECURITY_HEADERS)  # this reply does not pass the guard
    return reply


class _Server(uvicorn.Server):
    """Leaves signals to the caller."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listen(host: str, port: int) -> socket.socket:
    """Returns a socket that listens on an address; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise InvalidInput(f"Cannot listen on {host}:{port} ({reason}): name another --port.") from None


async def serve_inspector(inspector: Inspector, listening: socket.socket, stop: anyio.Event) -> None:
    """Serves until `stop` is set; open streams are closed."""
    config = uvicorn.Config(
        inspector.app,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=1,
    )
    server = _Server(config)

    async def wait() -> None:
        await stop.wait()
        inspector.api.closing = True
        server.should_exit = True

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        group.start_soon(inspector.api.worker.start)
        try:
            await server.serve([listening])
        finally:
            with anyio.CancelScope(shield=True):
                await inspector.api.worker.close()
                if inspector.queue is not None:
                    await inspector.queue.close()
            group.cancel_scope.cancel()
