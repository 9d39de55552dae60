"""`Gateway`: the HTTP server that forwards model calls and compacts long histories on the way."""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import time
from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import msgspec

from ..errors import HoldfastError, InvalidInput, UnknownSession
from ..io.access_keys import is_loopback, owner_of
from ..io.http_client import UpstreamFailure, UpstreamReply, length_of
from ..io.http_messages import BodyTooLarge, Pieces
from ..io.http_server import HttpReply, HttpRequest, HttpServer
from ..io.prometheus import CONTENT_TYPE
from ..io.text import MAX_LINE, sanitize_line
from ..models import scrub
from ..models.overflow import is_doubtful_overflow
from ..sessions import SessionService
from .alternation import Alternation
from .answers import Answer
from .browsers import cors_headers, host_of, is_foreign_page, is_preflight
from .client_keys import keys_in, provider_key
from .decisions import DecisionOptions, Decisions, GatewayCall
from .large_requests import LARGE_BYTES, LargeRequests
from .metrics import GatewayMetrics
from .options import GatewayOptions
from .protocols import RequestBody, WireProtocol, find_protocol, header_key, is_signed_call
from .recall import MAX_LOOKUPS, answer_lookups, offer_recall
from .replies import ModelListReader, ReplyReader, decode_body
from .rewriting import RewriteDecision
from .status_page import read_status, status_reply
from .tracing import RequestTracer
from .upstream import HEADER_PREFIX, Upstream, begin_reply, check_target, copy_reply, open_reply

log = logging.getLogger("holdfast.gateway")
_OWN_PATHS = ("/", "/healthz", "/readyz", "/metrics")


class Gateway:
    """Forwards requests to upstreams; conversations are sessions of `sessions`."""

    def __init__(self, options: GatewayOptions, sessions: SessionService) -> None:
        self.options = options
        self._names = {name.lower() for name in (options.host, *options.allowed_hosts)}
        self._origins = frozenset(map(str.lower, options.allowed_origins))
        self.metrics = GatewayMetrics()
        self.sessions = sessions
        keys = options.item_keys or (secrets.token_urlsafe(),)
        how = DecisionOptions(keys, options.native, options.max_body)
        self._decisions = Decisions(sessions, how, self.metrics.count_compaction, self._count_unwritten)
        self._large = LargeRequests(options.open_sessions, how, self.metrics.count_compaction)
        self._upstream = Upstream(options)
        self._alternation = Alternation(always=options.alternating)
        self._tracer = RequestTracer()
        self._tasks: set[asyncio.Task[None]] = set()
        self._draining = False

    # -- life ------------------------------------------------------------------------------------------

    async def run(
        self,
        stop: anyio.Event,
        on_start: Callable[[int], object] = lambda port: None,
        listening: socket.socket | None = None,
    ) -> None:
        """Serves until `stop` is set; running requests then have the drain time to finish.

        `listening` is a socket from which other processes accept connections, too.
        """
        server = HttpServer(self._handle, self._error, idle_seconds=self.options.header_timeout)
        try:
            port = await server.start(self.options.host, self.options.port, listening)
        except OSError as problem:
            place = f"{self.options.host}:{self.options.port}"
            raise InvalidInput(f"Cannot listen on {place} ({problem.strerror}): name another --port.") from None
        try:
            on_start(port)
            await stop.wait()
        finally:
            self._draining = True
            with anyio.CancelScope(shield=True):
                await server.stop(self.options.drain_seconds)
                await self._finish_tasks()
                await self._large.close()
                self._upstream.close()

    async def _finish_tasks(self) -> None:
        if writing := self._decisions.rewriter.writing:
            await asyncio.wait(writing, timeout=self.options.drain_seconds)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _count_unwritten(self) -> None:
        self.metrics.failures["unwritten"] += 1

    def _start_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def reload(self, options: GatewayOptions) -> None:
        """Uses other keys and upstreams from the next request on; address and limits stay as they are."""
        changed = msgspec.structs.replace(self.options, keys=options.keys, upstreams=options.upstreams)
        self.options = self._upstream.options = changed

    # -- requests --------------------------------------------------------------------------------------

    async def _handle(self, request: HttpRequest) -> None:
        """Answers a request, and logs it without anything that client or upstream wrote."""
        started = time.perf_counter()
        path = sanitize_line(request.target.partition("?")[0])[:MAX_LINE]
        with self._tracer.span(request.method, path, request.headers) as traced:
            try:
                reply = await self._respond(request)
                if reply is not None:
                    reply.headers |= cors_headers(request, self._origins)
                    await request.send(reply)
            except (asyncio.CancelledError, ConnectionResetError):
                self.metrics.failures["client_gone"] += 1
                raise
            traced |= {"status": request.status, **request.facts}
        self.metrics.replies[str(request.status)] += 1
        facts = {
            "method": request.method,
            "path": path,
            "status": request.status,
            "seconds": round(time.perf_counter() - started, 4),
            **request.facts,
        }
        log.info("%s", " ".join(f"{name}={value}" for name, value in facts.items()), extra={"facts": facts})

    async def _respond(self, request: HttpRequest) -> HttpReply | None:
        """Returns the gateway's own reply; None if the upstream's was sent."""
        owner = ""
        if refusal := self._refuse(request):
            return refusal
        if is_preflight(request) and cors_headers(request, self._origins):
            return HttpReply(204)
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
        except BodyTooLarge:
            return self._error(413, "too_large", f"The request is larger than {self.options.max_body:,} bytes.")
        except InvalidInput as problem:
            return self._error(400, "invalid_request", str(problem))
        except TimeoutError:
            return self._error(504, "upstream_timeout", "The upstream or the client took too long.")
        except UpstreamFailure as problem:
            return self._error(502, problem.kind, scrub(problem.message))
        except ConnectionResetError:
            raise
        except Exception as problem:
            log.exception("a request failed: %s", type(problem).__name__)
            if request.status:
                raise ConnectionResetError from None
            return self._error(500, "internal", "The gateway failed: its log has the reason.")
        finally:
            self.metrics.active -= 1

    def _refuse(self, request: HttpRequest) -> HttpReply | None:
        """Refuses other names than the gateway's own (DNS rebinding), other sites' pages, and WebSockets."""
        host = host_of(request)
        if not (host in self._names or is_loopback(host)):
            return self._error(421, "unknown_host", f"This gateway is not {host!r}: name it with --allow-host.")
        if not self.options.keys and is_foreign_page(request, self._origins):
            page = f"--allow-origin {sanitize_line(request.headers.get('Origin') or 'ORIGIN')[:MAX_LINE]}"
            return self._error(
                403, "foreign_site", f"This web page may not use the gateway: start it with {page}, or with --key-file."
            )
        if "upgrade" in request.headers.get("Connection").lower():
            return self._error(426, "no_websocket", "The gateway speaks HTTP: send the request with POST.")
        return None

    async def _forward(self, request: HttpRequest, owner: str) -> HttpReply | None:
        found = find_protocol(request.method, request.path)
        if found is None:
            await self._pass(request)
            return None
        protocol = found[0]
        async with asyncio.timeout(self.options.read_timeout):
            sent = await request.body.read_pieces(self.options.max_body)
        started = time.perf_counter()
        answer = await self._decide(request, sent, protocol, owner)
        decision = answer.decision
        added = time.perf_counter() - started
        saved = decision.tokens_before - decision.tokens_after
        self.metrics.count_request(protocol.format, decision.outcome, added, saved, owner)
        if decision.outcome in ("failed", "too_large", "refused"):
            self.metrics.failures["refused" if decision.outcome == "refused" else "decision"] += 1
        if answer.reply is not None:
            answer.reply.headers |= _decision_headers(decision)
            return answer.reply
        offers_recall = self.options.recall and answer.edit is None and decision.conversation is not None
        is_offered = offers_recall and decision.body is not None
        if is_offered and await self._exchange_with_recall(request, protocol, answer, owner):
            return None
        await self._exchange(request, sent, protocol, answer, owner)
        return None

    async def _decide(self, request: HttpRequest, sent: Pieces, protocol: WireProtocol, owner: str) -> Answer:
        """Decides about a request; in a process of its own if it is large, or would be if it was unpacked."""
        encoding = request.headers.get("Content-Encoding")
        call = GatewayCall(b"", encoding, request.path, owner, header_key(request.headers))
        if self.options.summarize_with_client_model:
            call.upstream = self.options.upstream_for(protocol.format)
            call.provider_key = self.options.upstream_key or provider_key(request.headers, self.options.keys)
        if sum(map(len, sent)) > LARGE_BYTES:
            return await self._large.decide(call, sent)
        call.raw = b"".join(sent)
        try:
            call.unpack(LARGE_BYTES)
        except BodyTooLarge:
            return await self._large.decide(call, sent)
        except InvalidInput:
            return Answer(RewriteDecision("other"))  # the upstream says what is wrong with it
        return await self._decisions.decide(call)

    async def _exchange(
        self, request: HttpRequest, sent: Pieces, protocol: WireProtocol, answer: Answer, owner: str
    ) -> None:
        """Sends the request, and the reply to the client.

        A request that was too long, or whose roles must alternate, is changed and sent once more.
        """
        decided_by = self._large if answer.number else self._decisions
        body, shrunk = answer.body, False
        changed = body.encode() if body is not None and body.is_changed else None
        headers = {} if answer.headers is None else answer.headers(request.headers)
        while True:
            decision = answer.decision
            content: bytes | Pieces | None = answer.pieces
            if content is None:
                content = self._alternation.shape(body, changed if decision.body is None else decision.body)
            rewritten = content is not None
            content = content or sent
            async with self._upstream.send(
                request, protocol.format, content, rewritten=rewritten, changed=headers
            ) as response:
                opening, failure = await open_reply(response, protocol)
                if failure is not None and is_doubtful_overflow(failure, length_of(content) or 0):
                    failure = None
                if failure is not None and not shrunk:
                    shrunk = True
                    smaller = await decided_by.recover(answer, failure)
                    if smaller is not None:
                        answer.decision = smaller
                        saved = smaller.tokens_before - smaller.tokens_after
                        self.metrics.count_recovery(protocol.format, saved, owner)
                        continue
                encoding = response.headers.get("Content-Encoding")
                if response.status >= 400 and (
                    self._alternation.learn(body, response.status, read := b"".join(opening), encoding)
                    or self._decisions.without_store(answer, response.status, read, encoding)
                ):
                    continue
                await self._reply(request, response, opening, protocol, answer, owner)
                return

    async def _exchange_with_recall(
        self, request: HttpRequest, protocol: WireProtocol, answer: Answer, owner: str
    ) -> bool:
        """Answers lookups of the model, and sends its first reply without one to the client; False if there is none."""
        decision = answer.decision
        body = offer_recall(RequestBody(protocol, decision.body or b"", request.path))
        for _ in range(MAX_LOOKUPS):
            if body is None:
                break
            content = body.encode()
            content = self._alternation.shape(body, content) or content
            async with self._upstream.send(request, protocol.format, content, rewritten=True) as response:
                read = await response.content.read(self.options.max_body)
                if response.status >= 400:
                    break
                encoding = response.headers.get("Content-Encoding")
                plain = decode_body(read, encoding, self.options.max_body)
                kind = response.headers.get("Content-Type")
                more = await answer_lookups(self.sessions, decision.session_id, body, kind, plain)
                if more is None:
                    answer.body = body
                    await self._reply(request, response, [read], protocol, answer, owner)
                    return True
                self.metrics.lookups += 1
                body = more
        return False

    async def _reply(
        self,
        request: HttpRequest,
        response: UpstreamReply,
        opening: list[bytes],
        protocol: WireProtocol,
        answer: Answer,
        owner: str,
    ) -> None:
        decision = answer.decision
        kind, encoding = (response.headers.get(name) for name in ("Content-Type", "Content-Encoding"))
        reader = ReplyReader(protocol, kind, encoding, lambda reply: self._decisions.note_reply(answer, reply))
        edited = answer.edit(kind, encoding) if answer.edit is not None and response.status < 400 else None
        headers = _decision_headers(decision)
        request.facts = {"format": protocol.format, "owner": owner} | {
            name.removeprefix(HEADER_PREFIX): value for name, value in headers.items()
        }
        if decision.why:
            request.facts["why"] = decision.why
        begin_reply(request, response, {**headers, **cors_headers(request, self._origins)}, edited=edited is not None)

        async def before_end() -> None:
            reader.finish()
            await decision.written()

        if not await copy_reply(request, response, opening, reader.feed, edited, before_end):
            self.metrics.failures["stream_broken"] += 1
        self.metrics.count_usage(reader.usage)
        if response.status < 400:
            self._start_task((self._large if answer.number else self._decisions).finish(answer, reader.usage))

    async def _pass(self, request: HttpRequest) -> None:
        """Forwards a request that is no model call."""
        async with self._upstream.send(request, "", request.body if request.has_body else None) as response:
            outcome = {f"{HEADER_PREFIX}outcome": "other"} if is_signed_call(request.path) else {}
            begin_reply(request, response, {**outcome, **cors_headers(request, self._origins)})
            models = ModelListReader(response.headers.get("Content-Encoding"))
            lists = request.path.endswith("/models") and response.status == 200
            if not await copy_reply(request, response, [], models.feed if lists else lambda chunk: None):
                self.metrics.failures["stream_broken"] += 1
            for model, window in models.windows().items():
                self.sessions.stated.note(model, reported=window)

    # -- own pages -------------------------------------------------------------------------------------

    async def _answer(self, request: HttpRequest, owner: str) -> HttpReply:
        path = request.path
        if path == "/metrics":
            return HttpReply(200, self.metrics.render(self.options.worker).encode(), {"Content-Type": CONTENT_TYPE})
        if path == "/healthz":
            return HttpReply.json({"status": "stopping" if self._draining else "ok"})
        problem = await self._store_problem()
        if path == "/readyz":
            ready = problem is None and not self._draining
            return HttpReply.json({"ready": ready, "why": problem or ""}, status=200 if ready else 503)
        how = "stopping" if self._draining else problem or "ok"
        status = await read_status(self.sessions, self.metrics, owner, how)
        return status_reply(status, as_json="application/json" in request.headers.get("Accept"))

    async def _store_problem(self) -> str | None:
        try:
            with anyio.fail_after(3):
                await self.sessions.get("-")
        except UnknownSession:
            return None
        except (HoldfastError, OSError, TimeoutError) as problem:
            return scrub(str(problem)) or "no answer"
        return None

    def _error(self, status: int, kind: str, message: str, headers: dict[str, str] | None = None) -> HttpReply:
        self.metrics.failures[kind] += 1
        body = {"error": {"type": kind, "message": message, "code": kind}}
        return HttpReply.json(body, status=status, headers={"x-holdfast-outcome": "refused"} | (headers or {}))


def _decision_headers(decision: RewriteDecision) -> dict[str, str]:
    facts: dict[str, str] = {"outcome": decision.outcome}
    if decision.session_id:
        facts["session"] = decision.session_id
    if decision.body is not None:
        facts |= {"tokens-before": str(decision.tokens_before), "tokens-after": str(decision.tokens_after)}
    return {HEADER_PREFIX + name: value for name, value in facts.items()}
