"""`Gateway`: the HTTP server that forwards model calls and compacts long histories on the way."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any

import aiohttp
import anyio
import msgspec
from aiohttp import web

from ..errors import HoldfastError, InvalidInput, UnknownSession
from ..io.access_keys import is_loopback, owner_of
from ..io.prometheus import CONTENT_TYPE
from ..io.text import MAX_LINE, sanitize_line
from ..models import scrub
from ..models.overflow import is_doubtful_overflow
from ..sessions import SessionService
from .alternation import Alternation
from .browsers import cors_headers, host_of, is_foreign_page, is_preflight
from .client_keys import keys_in, provider_key
from .client_model import client_model
from .client_sessions import Caller
from .metrics import GatewayMetrics
from .options import GatewayOptions
from .protocols import CallKind, RequestBody, WireProtocol, find_protocol, session_key
from .recall import MAX_LOOKUPS, answer_lookups, offer_recall
from .replies import ModelListReader, ReplyReader, decode_body
from .rewriting import RewriteDecision, Rewriter
from .sealed_items import ItemSealer
from .status_page import read_status, status_reply
from .tracing import RequestTracer
from .upstream import (
    HEADER_PREFIX,
    Body,
    ForwardedReply,
    Upstream,
    begin_reply,
    check_target,
    copy_reply,
    open_reply,
    upstream_problem,
)
from .vendor_compaction import (
    EditedReply,
    ReplyEditor,
    VendorCompaction,
    VendorDecision,
    refused_reply,
    upstream_headers,
)
from .vendor_requests import ProtocolRefusal

log = logging.getLogger("holdfast.gateway")
_no_log = logging.Logger("aiohttp", logging.CRITICAL)
"""The server library would log parts of malformed requests."""
_OWN_PATHS = ("/", "/healthz", "/readyz", "/metrics")


class Gateway:
    """Forwards requests to upstreams; conversations are sessions of `sessions`."""

    def __init__(self, options: GatewayOptions, sessions: SessionService) -> None:
        self.options = options
        self._names = {name.lower() for name in (options.host, *options.allowed_hosts)}
        self._origins = frozenset(map(str.lower, options.allowed_origins))
        self.metrics = GatewayMetrics()
        self.sessions = sessions
        self._rewriter = Rewriter(sessions, self.metrics.count_compaction)
        self._vendor = VendorCompaction(self._rewriter, ItemSealer(options.item_keys), native=options.native)
        self._upstream = Upstream(options)
        self._alternation = Alternation(always=options.alternating)
        self._tracer = RequestTracer()
        self._tasks: set[asyncio.Task[None]] = set()
        self._draining = False

    # -- life ------------------------------------------------------------------------------------------

    async def run(self, stop: anyio.Event, on_start: Callable[[int], object] = lambda port: None) -> None:
        """Serves until `stop` is set; running requests then have the drain time to finish."""
        app = web.Application(client_max_size=self.options.max_body)
        app.router.add_route("*", r"/{path:[\s\S]*}", self._handle)
        app.on_response_prepare.append(self._set_headers)
        runner = web.AppRunner(
            app,
            access_log=None,
            logger=_no_log,
            handler_cancellation=True,
            auto_decompress=False,
            keepalive_timeout=self.options.header_timeout,
            lingering_time=1,
            max_line_size=65_536,
            max_field_size=65_536,
            shutdown_timeout=self.options.drain_seconds,
        )
        async with self._upstream:
            await runner.setup()
            site = web.TCPSite(runner, self.options.host, self.options.port, backlog=1_024)
            try:
                await site.start()
            except OSError as problem:
                await runner.cleanup()
                place = f"{self.options.host}:{self.options.port}"
                raise InvalidInput(f"Cannot listen on {place} ({problem.strerror}): name another --port.") from None
            try:
                on_start(runner.addresses[0][1])
                await stop.wait()
                self._draining = True
                await site.stop()
            finally:
                await runner.cleanup()
                await self._finish_tasks()

    async def _finish_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def reload(self, options: GatewayOptions) -> None:
        """Uses other keys and upstreams from the next request on; address and limits stay as they are."""
        changed = msgspec.structs.replace(self.options, keys=options.keys, upstreams=options.upstreams)
        self.options = self._upstream.options = changed

    # -- requests --------------------------------------------------------------------------------------

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        """Answers a request, and logs it without anything that client or upstream wrote."""
        started = time.perf_counter()
        path = sanitize_line(request.raw_path.partition("?")[0])[:MAX_LINE]
        with self._tracer.span(request.method, path, request.headers) as traced:
            try:
                reply = await self._respond(request)
            except asyncio.CancelledError:
                self.metrics.failures["client_gone"] += 1
                raise
            about = reply.facts if isinstance(reply, ForwardedReply) else {}
            traced |= {"status": reply.status, **about}
        self.metrics.replies[str(reply.status)] += 1
        facts = {
            "method": request.method,
            "path": path,
            "status": reply.status,
            "seconds": round(time.perf_counter() - started, 4),
            **about,
        }
        log.info("%s", " ".join(f"{name}={value}" for name, value in facts.items()), extra={"facts": facts})
        return reply

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        owner = ""
        if refusal := self._refuse(request):
            return refusal
        if is_preflight(request) and cors_headers(request, self._origins):
            return web.Response(status=204)
        if request.path != "/healthz" and self.options.keys:
            found = (owner_of(key, self.options.keys) for key in keys_in(request))
            if (known := next((one for one in found if one is not None), None)) is None:
                return self._error(401, "unauthorized", "This gateway needs a key: send it as the API key.")
            owner = known
        if request.method == "GET" and request.path in _OWN_PATHS:
            return await self._answer(request, owner)
        if self._draining:
            return self._error(503, "stopping", "The gateway is stopping: try again.", {"Retry-After": "1"})
        if self.metrics.active >= self.options.max_requests:
            return self._error(503, "overloaded", "Too many requests at once: try again.", {"Retry-After": "1"})
        self.metrics.active += 1
        try:
            check_target(request, self.options.keys)
            return await self._forward(request, owner)
        except InvalidInput as problem:
            return self._error(400, "invalid_request", str(problem))
        except web.HTTPRequestEntityTooLarge:
            return self._error(413, "too_large", f"The request is larger than {self.options.max_body:,} bytes.")
        except TimeoutError:
            return self._error(504, "upstream_timeout", "The upstream or the client took too long.")
        except aiohttp.ClientError as problem:
            return self._error(502, *upstream_problem(problem))
        except Exception as problem:
            log.exception("a request failed: %s", type(problem).__name__)
            return self._error(500, "internal", "The gateway failed: its log has the reason.")
        finally:
            self.metrics.active -= 1

    def _refuse(self, request: web.Request) -> web.Response | None:
        """Refuses other names than the gateway's own (DNS rebinding), other sites' pages, and WebSockets."""
        host = host_of(request)
        if not (host in self._names or is_loopback(host)):
            return self._error(421, "unknown_host", f"This gateway is not {host!r}: name it with --allow-host.")
        if not self.options.keys and is_foreign_page(request, self._origins):
            page = f"--allow-origin {sanitize_line(request.headers.get('Origin') or 'ORIGIN')[:MAX_LINE]}"
            return self._error(
                403, "foreign_site", f"This web page may not use the gateway: start it with {page}, or with --key-file."
            )
        if "upgrade" in request.headers.get("Connection", "").lower():
            return self._error(426, "no_websocket", "The gateway speaks HTTP: send the request with POST.")
        return None

    async def _forward(self, request: web.Request, owner: str) -> web.StreamResponse:
        found = find_protocol(request.method, request.path)
        if found is None:
            return await self._pass(request)
        protocol, kind = found
        with anyio.fail_after(self.options.read_timeout):
            raw = await request.read()
        started = time.perf_counter()
        try:
            body, answer = await self._decide(request, raw, protocol, kind, owner)
        except ProtocolRefusal as refusal:
            self.metrics.failures["refused"] += 1
            return refused_reply(refusal)
        decision = answer.decision
        added = time.perf_counter() - started
        saved = decision.tokens_before - decision.tokens_after
        self.metrics.count_request(protocol.format, decision.outcome, added, saved, owner)
        if decision.outcome == "failed":
            self.metrics.failures["decision"] += 1
        if answer.reply is not None:
            for name, value in _decision_headers(decision).items():
                answer.reply.headers[HEADER_PREFIX + name] = value
            return answer.reply
        offers_recall = self.options.recall and answer.editor is None and decision.conversation is not None
        if offers_recall and decision.body is not None:
            reply = await self._exchange_with_recall(request, protocol, decision, owner)
            if reply is not None:
                return reply
        return await self._exchange(request, raw, body, protocol, decision, owner, answer.editor)

    async def _decide(
        self, request: web.Request, raw: bytes, protocol: WireProtocol, kind: CallKind, owner: str
    ) -> tuple[RequestBody | None, VendorDecision]:
        try:
            encoding = request.headers.get("Content-Encoding", "")
            body = RequestBody(protocol, decode_body(raw, encoding, self.options.max_body), request.path)
            caller = Caller(owner, session_key(request.headers, body), protocol.format)
        except RecursionError:
            raise InvalidInput("The JSON of the request is nested too deeply.") from None
        except InvalidInput:
            return None, VendorDecision(RewriteDecision("other"))  # the upstream says what is wrong with it
        summarizer = None
        if self.options.summarize_with_client_model:
            key = self.options.upstream_key or provider_key(request.headers, self.options.keys)
            summarizer = client_model(protocol.format, body.model, self.options.upstream_for(protocol.format), key)
        if body.may_ask_for_compaction(kind):
            return body, await self._vendor.decide(body, kind, caller, summarizer)
        return body, VendorDecision(await self._rewriter.decide(body, kind, caller, summarizer=summarizer))

    async def _exchange(
        self,
        request: web.Request,
        raw: bytes,
        body: RequestBody | None,
        protocol: WireProtocol,
        decision: RewriteDecision,
        owner: str,
        editor: ReplyEditor | None,
    ) -> web.StreamResponse:
        """Sends the request, and the reply to the client.

        A request that was too long, or whose roles must alternate, is changed and sent once more.
        """
        forwarded = body.encode() if body is not None and body.is_changed else raw
        ours = forwarded is not raw and not self.options.native
        headers = upstream_headers(request.headers, edited=editor is not None) if ours else {}
        shrunk = False
        while True:
            content = self._alternation.shape(body, forwarded if decision.body is None else decision.body)
            rewritten = content is not raw
            async with self._upstream.send(
                request, protocol.format, content, rewritten=rewritten, changed=headers
            ) as response:
                opening, failure = await open_reply(response, protocol)
                if failure is not None and is_doubtful_overflow(failure, len(content)):
                    failure = None
                if failure is not None and not shrunk and body is not None:
                    shrunk = True
                    smaller = await self._rewriter.recover(body, decision, failure)
                    if smaller is not None:
                        decision = smaller
                        saved = decision.tokens_before - decision.tokens_after
                        self.metrics.count_recovery(protocol.format, saved, owner)
                        continue
                encoding = response.headers.get("Content-Encoding", "")
                if self._alternation.learn(body, response.status, b"".join(opening), encoding):
                    continue
                return await self._reply(request, response, opening, body, protocol, decision, owner, editor)

    async def _exchange_with_recall(
        self, request: web.Request, protocol: WireProtocol, decision: RewriteDecision, owner: str
    ) -> web.StreamResponse | None:
        """Answers lookups of the model, and sends its first reply without one to the client; None if there is none."""
        body = offer_recall(RequestBody(protocol, decision.body or b"", request.path))
        for _ in range(MAX_LOOKUPS):
            if body is None:
                break
            content = self._alternation.shape(body, body.encode())
            async with self._upstream.send(request, protocol.format, content, rewritten=True) as response:
                read = await response.read()
                if response.status >= 400:
                    break
                encoding = response.headers.get("Content-Encoding", "")
                plain = decode_body(read, encoding, self.options.max_body)
                kind = response.headers.get("Content-Type", "")
                more = await answer_lookups(self.sessions, decision.session_id, body, kind, plain)
                if more is None:
                    return await self._reply(request, response, [read], body, protocol, decision, owner)
                self.metrics.lookups += 1
                body = more
        return None

    async def _reply(
        self,
        request: web.Request,
        response: aiohttp.ClientResponse,
        opening: list[bytes],
        body: RequestBody | None,
        protocol: WireProtocol,
        decision: RewriteDecision,
        owner: str,
        editor: ReplyEditor | None = None,
    ) -> web.StreamResponse:
        kind, encoding = (response.headers.get(name, "") for name in ("Content-Type", "Content-Encoding"))
        reader = ReplyReader(protocol, kind, encoding)
        edited = EditedReply(editor, kind, encoding) if editor is not None and response.status < 400 else None
        headers = _decision_headers(decision)
        reply = await begin_reply(request, response, headers, edited=edited is not None)
        reply.facts = {"format": protocol.format, "owner": owner, **headers}
        if not await copy_reply(request, response, reply, opening, reader.feed, edited):
            self.metrics.failures["stream_broken"] += 1
        usage = reader.finish()
        self.metrics.count_usage(usage)
        if response.status < 400 and body is not None:
            self._start_task(self._rewriter.finish(body, decision, usage))
        return reply

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        """Forwards a request that is no model call."""
        content: Body = request.content if request.body_exists else None
        async with self._upstream.send(request, "", content) as response:
            reply = await begin_reply(request, response, {})
            models = ModelListReader(response.headers.get("Content-Encoding", ""))
            lists = request.path.endswith("/models") and response.status == 200
            if not await copy_reply(request, response, reply, [], models.feed if lists else lambda chunk: None):
                self.metrics.failures["stream_broken"] += 1
            for model, window in models.windows().items():
                self.sessions.stated.note(model, reported=window)
            return reply

    # -- own pages -------------------------------------------------------------------------------------

    async def _answer(self, request: web.Request, owner: str) -> web.Response:
        path = request.path
        if path == "/metrics":
            return web.Response(body=self.metrics.render(), headers={"Content-Type": CONTENT_TYPE})
        if path == "/healthz":
            return web.json_response({"status": "stopping" if self._draining else "ok"})
        problem = await self._store_problem()
        if path == "/readyz":
            ready = problem is None and not self._draining
            return web.json_response({"ready": ready, "why": problem or ""}, status=200 if ready else 503)
        how = "stopping" if self._draining else problem or "ok"
        status = await read_status(self.sessions, self.metrics, owner, how)
        return status_reply(status, as_json="application/json" in request.headers.get("Accept", ""))

    async def _store_problem(self) -> str | None:
        try:
            with anyio.fail_after(3):
                await self.sessions.get("-")
        except UnknownSession:
            return None
        except (HoldfastError, OSError, TimeoutError) as problem:
            return scrub(str(problem)) or "no answer"
        return None

    async def _set_headers(self, request: web.Request, reply: web.StreamResponse) -> None:
        reply.headers["Server"] = "holdfast"
        reply.headers.update(cors_headers(request, self._origins))

    def _error(self, status: int, kind: str, message: str, headers: dict[str, str] | None = None) -> web.Response:
        self.metrics.failures[kind] += 1
        body = {"error": {"type": kind, "message": message, "code": kind}}
        return web.json_response(body, status=status, headers={"x-holdfast-outcome": "refused"} | (headers or {}))


def _decision_headers(decision: RewriteDecision) -> dict[str, str]:
    headers: dict[str, str] = {"outcome": decision.outcome}
    if decision.session_id:
        headers["session"] = decision.session_id
    if decision.body is not None:
        headers |= {"tokens-before": str(decision.tokens_before), "tokens-after": str(decision.tokens_after)}
    return headers
