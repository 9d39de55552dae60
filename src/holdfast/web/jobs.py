"""Background compaction: which sessions are compacted, due or failing, and the queue, if there is one."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..context.events import EventKind, SessionRecord
from ..errors import HoldfastError, QueueError
from ..io.secrets import scrub
from ..io.text import printable
from ..jobs.queue_status import QueuedJob, QueueReader
from ..messages import Json
from ..sessions import SessionService
from ..stores import Lease, Slice
from .access import Access
from .addresses import session_path
from .html import Html, document, tag
from .overview import OverviewReader
from .replies import json_reply, page_reply

_MAX_SESSIONS = 50
"""Newest sessions that are looked at; each takes reading its live window."""
_KEPT_SESSIONS = 200
_MAX_REASON = 300
State = Literal["compacting", "due", "failed", "compacted", "never compacted", "unreadable"]
_ORDER: tuple[State, ...] = ("compacting", "due", "failed", "unreadable", "compacted", "never compacted")


class SessionJob(msgspec.Struct, frozen=True):
    """A session as a worker sees it."""

    path: str
    title: str
    owner: str
    state: State
    tokens: int = 0
    next_at: int | None = None
    compaction: int | None = None
    """Number of the last compaction."""
    time: str = ""
    """When the last compaction ran, or failed."""
    reason: str = ""
    """Why it failed, and when it is tried again."""
    lease: float | None = None
    """Seconds until the lease of a running compaction expires."""


class JobPages:
    """The page of background jobs, and its data. Only logins that see every session see the queue."""

    def __init__(
        self, overviews: OverviewReader, sessions: SessionService, access: Access, queue: QueueReader | None
    ) -> None:
        self._overviews, self._sessions, self._access, self._queue = overviews, sessions, access, queue
        self._known: OrderedDict[str, tuple[int, float, SessionJob]] = OrderedDict()
        """By session id: its version, the time from which on the state may be another, and the state."""

    def routes(self) -> list[Route]:
        return [Route("/jobs", self._page), Route("/api/jobs", self._data)]

    async def _page(self, request: Request) -> Response:
        return page_reply(jobs_page())

    async def _data(self, request: Request) -> Response:
        owner = self._access.owner(request.headers)
        records = (await self._sessions.list(owner))[:_MAX_SESSIONS]
        found = [await self._session(record) for record in records]
        found.sort(key=lambda one: one.time, reverse=True)
        found.sort(key=lambda one: _ORDER.index(one.state))
        preset = self._sessions.preset
        reply: dict[str, Any] = {"sessions": found, "preset": preset.name if preset is not None else None}
        if owner is None:
            reply |= await self._queue_data()
        return json_reply(reply)

    async def _queue_data(self) -> dict[str, Any]:
        if self._queue is None:
            return {"queue": None}
        try:
            status = await self._queue.read()
        except QueueError as problem:
            return {"queue": None, "problem": scrub(str(problem))}
        return {"queue": msgspec.to_builtins(status) | {"jobs": [_job_row(job) for job in status.jobs]}}

    async def _session(self, record: SessionRecord) -> SessionJob:
        """Returns the state of a session; all but its lease is kept until its version changes."""
        version, until, known = self._known.get(record.id, (-1, 0.0, None))
        if known is None or version != record.version or self._sessions.clock() >= until:
            known, until = await self._read(record)
            self._known[record.id] = record.version, until, known
            if len(self._known) > _KEPT_SESSIONS:
                self._known.popitem(last=False)
        store = self._sessions.store
        lease = await store.held(record.id, "compaction") if isinstance(store, Lease) else None
        return known if lease is None else msgspec.structs.replace(known, state="compacting", lease=lease)

    async def _read(self, record: SessionRecord) -> tuple[SessionJob, float]:
        path, until = session_path(record.id), float("inf")
        try:
            one = await self._overviews.read(record)
            due = await self._sessions.due(record.id)
            attempts = await self._sessions.store.read(
                record.id, Slice(kinds=(EventKind.ATTEMPT,), limit=1, newest=True)
            )
        except HoldfastError as problem:
            reason = printable(scrub(str(problem)))[:_MAX_REASON]
            return SessionJob(path, record.id, record.owner or "", "unreadable", reason=reason), until
        last = one.last
        state: State = "due" if due else "compacted" if last is not None else "never compacted"
        time, reason = (last.time if last is not None else ""), ""
        if attempts and (last is None or attempts[0].seq > last.seq):
            body, time = attempts[0].body, attempts[0].time
            reason = printable(f"{body.get('failures', 1)} in a row: {body.get('why', '')}")[:_MAX_REASON]
            if not due:
                state, until = "failed", _number(body.get("retry_at"))
        found = SessionJob(
            path,
            one.title,
            one.owner,
            state,
            0 if one.size is None else one.size.tokens,
            None if one.size is None else one.size.threshold,
            None if last is None else last.seq,
            time,
            reason,
        )
        return found, until if until > self._sessions.clock() else float("inf")


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _job_row(job: QueuedJob) -> Json:
    outcome = printable(scrub(job.outcome))[:_MAX_REASON]
    path = session_path(job.session_id) if job.session_id else None
    shown: Json = msgspec.to_builtins(job)
    return shown | {"path": path, "outcome": outcome, "session_id": printable(job.session_id)[:_MAX_REASON]}


def jobs_page() -> Html:
    """The frame of the page; its script reads the data, again and again while it is visible."""
    return document(
        "Jobs",
        tag("div", tag("h1", "Background jobs"), class_="title"),
        tag("p", id="state", class_="lead", aria_busy="true"),
        tag("div", id="queue"),
        tag("h2", "Sessions"),
        tag("div", id="sessions"),
        tag("div", id="status", role="status", aria_live="polite"),
        script="jobs.js",
        section="jobs",
    )
