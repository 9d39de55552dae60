"""JSON for the pages: every reply is bounded, and shows only sessions of the owner whose cookie came with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from functools import wraps
from typing import Any, TypeVar

import anyio
import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from ..context.events import Event, SessionRecord
from ..errors import Conflict, HoldfastError, InvalidInput, StaleVersion, UnknownEvent, UnknownSession
from ..io.secrets import scrub
from ..io.text import printable
from ..messages import Json, decode_one, to_json
from ..recall.search import SessionSearch
from ..sessions import Context, SessionService
from ..sessions.restore import quote_message
from ..stores import Slice
from ..strategies.names import parse_strategy
from ..tokens import Usage
from ..tokens.catalog import price_of
from .access import Access
from .actions import ActionRequest, plan_action, run_action
from .addresses import decode_id, session_path
from .content import sentences_of
from .diff import compare_contexts
from .events import MAX_TEXT, message_line, read_event, read_rows, role_of, tools_of
from .overview import OverviewReader
from .replies import json_reply, problem_reply
from .stats import CompactionFacts, ReplyFacts, StatsReader
from .worker import PreviewOptions, StoreWorker

_MAX_HITS, _LISTED = 50, 20
_MAX_LINES = 3_000
"""Lines of a page of notes, or events of a compaction, in a reply."""
_MAX_MESSAGES = 400
"""Messages of a context in a reply."""
_WIRE_PIECE = 200_000
"""Characters of wire JSON in a reply."""
_POLL_SECONDS = 0.4
_HEARTBEAT_SECONDS = 15.0
MAX_STREAMS = 100
"""Pages of one owner that follow a session."""
Result = TypeVar("Result")
Handler = Callable[["Api", Request], Awaitable[Response]]


def _answering(handler: Handler) -> Handler:
    """Turns errors into replies that say what happened."""

    @wraps(handler)
    async def answer(self: Api, request: Request) -> Response:
        try:
            return await handler(self, request)
        except (UnknownSession, UnknownEvent) as problem:
            return problem_reply(404, str(problem))
        except (Conflict, StaleVersion):
            return problem_reply(409, "Somebody else changed this session meanwhile: look again, then repeat.")
        except (InvalidInput, msgspec.ValidationError, msgspec.DecodeError, ValueError) as problem:
            return problem_reply(400, scrub(str(problem)))
        except HoldfastError as problem:
            return problem_reply(500, scrub(str(problem)))

    return answer


class Api:
    """The data behind the pages."""

    def __init__(
        self, sessions: SessionService, access: Access, *, store_url: str | None = None, read_only: bool = False
    ) -> None:
        self.sessions, self.access, self.read_only = sessions, access, read_only
        self.overviews = OverviewReader(sessions)
        self.worker = StoreWorker(sessions, store_url)
        self.stats = StatsReader(sessions)
        self._contexts: dict[tuple[str, int, int], Context] = {}
        self.closing = False
        """True when the server stops: streams end."""
        self.streams = Counter[str | None]()
        """Pages that follow a session now, by the owner of their login."""

    def routes(self) -> list[Route]:
        paths: dict[str, Callable[[Request], Awaitable[Response]]] = {
            "": self.overview,
            "/rows": self.rows,
            "/event/{seq:int}": self.event,
            "/sizes": self.sizes,
            "/price": self.price,
            "/cost": self.cost,
            "/at/{seq:int}": self.context_at,
            "/at/{seq:int}/message/{index:int}": self.message_at,
            "/at/{seq:int}/wire": self.wire_at,
            "/c/{seq:int}": self.compaction,
            "/preview": self.preview,
            "/before/{action}": self.plan,
            "/live": self.live,
        }
        found = [Route(f"/api/s/{{id}}{path}", handler) for path, handler in paths.items()]
        found.append(Route("/api/s/{id}/do/{action}", self.act, methods=["POST"]))
        found += [Route("/api/search", self.search), Route("/api/sessions", self.listed)]
        return found

    async def record(self, request: Request) -> SessionRecord:
        """Returns the session of a path; one of another owner does not exist."""
        session_id = decode_id(request.path_params["id"])
        record = await self.sessions.get(session_id)
        owner = self.access.owner(request.headers)
        if owner is not None and record.owner != owner:
            raise UnknownSession(session_id)
        return record

    # -- sessions and events ---------------------------------------------------------------------------

    @_answering
    async def overview(self, request: Request) -> Response:
        return json_reply(await self.overviews.read(await self.record(request)))

    @_answering
    async def listed(self, request: Request) -> Response:
        """Some sessions, newest first, and how many there are."""
        records = await self.sessions.list(self.access.owner(request.headers))
        first = _number(request, "from", 0)
        found = [await self.overviews.try_read(record) for record in records[first : first + _LISTED]]
        return json_reply({"count": len(records), "sessions": found})

    @_answering
    async def rows(self, request: Request) -> Response:
        record = await self.record(request)
        first, last = _number(request, "from", 1), _number(request, "to", record.version)
        return json_reply({"version": record.version, "rows": await read_rows(self.sessions, record, first, last)})

    @_answering
    async def event(self, request: Request) -> Response:
        record, seq = await self.record(request), request.path_params["seq"]
        found = await read_event(self.sessions, record, seq, _number(request, "offset", 0))
        if found is None:
            return problem_reply(404, f"There is no event #{seq}: the newest is #{record.version}.")
        return json_reply(found)

    @_answering
    async def sizes(self, request: Request) -> Response:
        record = await self.record(request)
        stats, size = await self.stats.read(record.id), await self.sessions.size(record.id)
        seqs, sizes, reported = stats.curve(size.tokens)
        marks = [
            (one.seq, one.before, one.after, one.archived, one.seq in stats.undone) for one in stats.compactions[-400:]
        ]
        curve = {"seqs": seqs, "sizes": sizes, "reported": reported}
        return json_reply(curve | {"compactions": marks, "threshold": size.threshold})

    @_answering
    async def price(self, request: Request) -> Response:
        """The price of a session for the list of all; its whole log is read once."""
        stats = await self.stats.read((await self.record(request)).id)
        return json_reply({"price": stats.price, "count": len(stats.replies)})

    @_answering
    async def cost(self, request: Request) -> Response:
        record = await self.record(request)
        stats, size = await self.stats.read(record.id), await self.sessions.size(record.id)
        growth = [max(0, b - a) for a, b in zip(stats.sizes[-60:], stats.sizes[-59:], strict=False)]
        compactions = [
            msgspec.to_builtins(one)
            | {"undone": one.seq in stats.undone, "replies_since": len(stats.replies) - one.replies}
            | {"paid_at": _paid_at(stats.replies, one), "spent": _spent(one, record.model)}
            for one in stats.compactions[-200:]
        ]
        return json_reply(
            {
                "tokens": size.tokens,
                "compacts_at": size.threshold,
                "growth": sum(growth) / len(growth) if growth else 0,
                "usage": stats.usage,
                "price": stats.price,
                "count": len(stats.replies),
                "replies": stats.replies[-400:],
                "compactions": compactions,
            }
        )

    @_answering
    async def search(self, request: Request) -> Response:
        return json_reply(await self.find(request))

    async def find(self, request: Request) -> dict[str, Any]:
        """Searches every event that the owner may see, or those of one session."""
        query, within = request.query_params.get("q", ""), request.query_params.get("session")
        session_id = None if within is None else decode_id(within)
        owner = self.access.owner(request.headers)
        if session_id is not None and owner is not None and (await self.sessions.get(session_id)).owner != owner:
            raise UnknownSession(session_id)
        offset = _number(request, "offset", 0)
        found = await SessionSearch(self.sessions).search(
            query[:1_000], session_id=session_id, owner=owner, limit=_MAX_HITS, offset=offset
        )
        hits = [
            {
                "session": hit.session_id,
                "path": session_path(hit.session_id),
                "seq": hit.event.seq,
                "time": hit.event.time,
                "role": hit.role or hit.event.kind,
                "archived": hit.archived,
                "snippet": printable(hit.snippet),
            }
            for hit in found.hits
        ]
        return {"hits": hits, "next": found.next}

    # -- time travel -----------------------------------------------------------------------------------

    async def _context(self, request: Request, seq: int) -> Context:
        """Returns the context after an event; the last two are kept until something but a message is appended."""
        record = await self.record(request)
        key = record.id, seq, max((tip.mark for tip in record.lanes.values()), default=0)
        if key not in self._contexts:
            found = await self.sessions.context_at(record.id, (await self._event_at(record, seq)).id)
            if len(self._contexts) >= 2:
                del self._contexts[next(iter(self._contexts))]
            self._contexts[key] = found
        return self._contexts[key]

    async def _event_at(self, record: SessionRecord, seq: int) -> Event:
        found = await self.sessions.store.read(record.id, Slice(any_lane=True, after=seq - 1, until=seq))
        if not found:
            raise UnknownEvent(f"#{seq}", record.id)
        return found[0]

    @_answering
    async def context_at(self, request: Request) -> Response:
        if request.query_params.get("quick"):
            record = await self.record(request)
            estimate = await self.sessions.estimate(record.id, at=request.path_params["seq"])
            figures = {} if estimate is None else {"tokens": estimate.tokens_before}
            return json_reply(figures | {"count": 0 if estimate is None else estimate.kept + estimate.archived})
        context = await self._context(request, request.path_params["seq"])
        first = _number(request, "from", 0)
        estimator, rows, names = self.sessions.estimator, list[Any](), dict[str, str]()
        for index in range(first, min(len(context), first + _MAX_MESSAGES)):
            message = decode_one(context[index], context.format)
            tokens = estimator.tokens(estimator.measure(message))
            line, tool = printable(message_line(message))[:180], tools_of(message, names)
            rows.append((index, role_of(message), line, tokens, context.numbers[index], tool))
        reply: dict[str, Any] = {
            "tokens": context.tokens,
            "known": context.known,
            "format": context.format,
            "count": len(context),
            "messages": rows,
        }
        if request.query_params.get("vs"):
            reply["diff"] = compare_contexts(await self._context(request, _number(request, "vs", 1)), context)
        return json_reply(reply)

    @_answering
    async def message_at(self, request: Request) -> Response:
        context, index = await self._context(request, request.path_params["seq"]), request.path_params["index"]
        if index >= len(context):
            return problem_reply(404, f"The context has {len(context):,} messages.")
        text, offset = quote_message(decode_one(context[index], context.format)), _number(request, "offset", 0)
        return json_reply(_piece(text, offset, MAX_TEXT) | {"number": context.numbers[index]})

    @_answering
    async def wire_at(self, request: Request) -> Response:
        context = await self._context(request, request.path_params["seq"])
        body: Any = context.messages if context.format is None else context.request
        return json_reply(_piece(to_json(body), _number(request, "offset", 0), _WIRE_PIECE))

    # -- compactions -----------------------------------------------------------------------------------

    @_answering
    async def compaction(self, request: Request) -> Response:
        record = await self.record(request)
        event = await self._event_at(record, request.path_params["seq"])
        mark = max((tip.mark for tip in record.lanes.values()), default=0)
        found = await self.worker.explain(record.id, event.id, mark)
        fates = [(one.seq, one.fate, one.rule, one.tokens, one.lines) for one in found.events]
        ranks = [line.rank for line in (*found.page.lines, *found.page.result_lines) if line.rank]
        page = msgspec.structs.replace(
            found.page,
            lines=found.page.lines[:_MAX_LINES],
            result_lines=found.page.result_lines[:_MAX_LINES],
            left_out=found.page.left_out[:_MAX_LINES],
        )
        return json_reply(
            {
                "seq": event.seq,
                "time": event.time,
                "before": found.tokens_before,
                "after": found.tokens_after,
                "agrees": found.agrees,
                "why": found.why,
                "parameters": found.parameters,
                "count": len(fates),
                "fates": fates[-_MAX_LINES:],
                "page": page,
                "cut": max(ranks, default=0),
                "remarks": sentences_of(event)[1:],
            }
        )

    @_answering
    async def preview(self, request: Request) -> Response:
        record, query = await self.record(request), request.query_params
        budget, strategy, preset = _number(request, "budget", 0) or None, query.get("strategy"), query.get("preset")
        if query.get("quick"):
            seq = _number(request, "at", record.version)
            given = None if not strategy else parse_strategy(strategy)
            estimate = await self.sessions.estimate(record.id, given, at=seq, preset=preset or None, budget=budget)
            figures = {} if estimate is None else msgspec.to_builtins(estimate)
            return json_reply(figures | {"quick": True})
        at = (await self._event_at(record, _number(request, "at", 1))).id if query.get("at") else None
        options = PreviewOptions(strategy or None, preset or None, budget, at)
        found = await _while_connected(request, self.worker.preview(record.id, options))
        reply: Json = msgspec.to_builtins(found)
        reply |= {name: len(getattr(found, name)) for name in ("kept", "archived", "edited")}
        reply["page"] = found.page[:MAX_TEXT]
        return json_reply(reply)

    @_answering
    async def plan(self, request: Request) -> Response:
        record, action = await self.record(request), request.path_params["action"]
        event, given = None, request.query_params.get("seq")
        if given:
            event = await self._event_at(record, _number(request, "seq", 1))
        one = await self.overviews.read(record)
        wanted = one.undone if action == "redo" else one.last
        compaction = None if wanted is None else await self._event_at(record, wanted.seq)
        return json_reply(await plan_action(self.sessions, record, action, event, compaction))

    @_answering
    async def act(self, request: Request) -> Response:
        if self.read_only:
            return problem_reply(403, "This server only reads: start it without --read-only to change sessions.")
        record = await self.record(request)
        given = msgspec.json.decode(await request.body(), type=ActionRequest)
        found = await run_action(self.sessions, record, request.path_params["action"], given)
        if (session := found.get("session")) is not None:
            found["path"] = session_path(session)
        return json_reply(found)

    # -- live ------------------------------------------------------------------------------------------

    @_answering
    async def live(self, request: Request) -> Response:
        record, owner = await self.record(request), self.access.owner(request.headers)
        if self.streams[owner] >= MAX_STREAMS:
            return problem_reply(503, "Too many pages are open: close some.")
        self.streams[owner] += 1
        return _LiveReply(self._versions(record.id), lambda: self.streams.subtract([owner]))

    async def _versions(self, session_id: str) -> AsyncIterator[bytes]:
        """Yields the session's version whenever it changes; the page then reads what it shows.

        It asks the store again and again, on PostgreSQL too: that takes a fraction of a millisecond for each open page,
        while a notification of every append would be paid by every writer.
        """
        try:
            known, quiet = -1, 0.0
            while not self.closing:
                version = (await self.sessions.get(session_id)).version
                if version != known:
                    known, quiet = version, 0.0
                    yield f"data: {version}\n\n".encode()
                elif quiet >= _HEARTBEAT_SECONDS:
                    quiet = 0.0
                    yield b": still here\n\n"
                quiet += _POLL_SECONDS
                await anyio.sleep(_POLL_SECONDS)
        except UnknownSession:
            yield b"event: gone\ndata: 0\n\n"


async def _while_connected(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """Runs work for as long as the browser waits for it: cancelling a request ends what it has started."""
    found: list[Result] = []
    failed: list[HoldfastError] = []
    async with anyio.create_task_group() as group:

        async def run() -> None:
            try:
                found.append(await work)
            except HoldfastError as problem:
                failed.append(problem)
            group.cancel_scope.cancel()

        group.start_soon(run)
        while (await request.receive())["type"] != "http.disconnect":
            pass
        group.cancel_scope.cancel()
    if not found:
        raise failed[0] if failed else InvalidInput("The request was cancelled.")
    return found[0]


class _LiveReply(StreamingResponse):
    """A stream of events that says when it has ended, also where it was never read."""

    def __init__(self, events: AsyncIterator[bytes], on_end: Callable[[], object]) -> None:
        super().__init__(events, media_type="text/event-stream")
        self._on_end = on_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._on_end()


def _number(request: Request, name: str, default: int) -> int:
    given = request.query_params.get(name)
    if not given:
        return default
    if not given.isdecimal() or len(given) > 12:
        raise InvalidInput(f"{name} must be a number of 0 or more, not {given!r:.40}.")
    return int(given)


def _piece(text: str, offset: int, most: int) -> dict[str, Any]:
    end = offset + most
    return {"text": text[offset:end], "next": end if end < len(text) else None, "length": len(text)}


def _spent(compaction: CompactionFacts, model: str | None) -> float | None:
    """Returns the price of a compaction: of its calls, and of writing the cache again."""
    if (cost := compaction.cost) is None or cost.price is None:
        return None
    written = price_of(Usage(cache_write=cost.rewritten), model)
    return None if written is None else cost.price + written


def _paid_at(replies: Sequence[ReplyFacts], compaction: CompactionFacts) -> int | None:
    """Returns the seq of the reply at which a compaction had paid for itself; None if it has not, or never will."""
    cost = compaction.cost
    if cost is None or cost.pays_after is None:
        return None
    at = compaction.replies + max(0, cost.pays_after - 1)
    return replies[at].seq if at < len(replies) else None
