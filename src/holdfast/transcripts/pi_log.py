"""A session of ours as a session file of pi: the same context, the same compactions (P6).

pi shows a summary in the user's name, then a run of messages as they stand in the file. Where a checkpoint of ours
shows more than that (a message out of its row, a cleared result), what it shows is written once more, on a branch
that starts where the archived part ends; pi's files are trees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ..compaction import beside
from ..events import Event, Kind, SessionRecord
from ..messages import COMMON, Message, Text, decode_one, is_summary, profile_for
from ..tokens import Estimator, Usage
from ..view import Checkpoint, Shown, View
from .notes import Notes
from .pi_writing import PiWriter
from .transcript import Record

VERSION = 3


class Written(msgspec.Struct):
    """Records on the way to the newest one, and the messages of ours that they tell; a compaction tells none."""

    records: list[Record]
    shown: list[tuple[str, Message]] = []


def pi_records(exported: Sequence[Mapping[str, Any]], estimator: Estimator, notes: Notes) -> list[Record]:
    """The records of pi's file, from what `SessionService.export` gives."""
    session = msgspec.convert({k: v for k, v in exported[0].items() if k != "kind"}, SessionRecord)
    events = [msgspec.convert(line, Event) for line in exported[1:]]
    root = [event for event in events if event.lane is None]
    notes.count("event", "of sub-agents left out", len(events) - len(root))
    return _File(session, root, estimator, notes).written()


class _File:
    """A file in the making."""

    def __init__(self, session: SessionRecord, events: list[Event], estimator: Estimator, notes: Notes) -> None:
        self._session = session
        self._events = events
        self._estimator = estimator
        self._notes = notes
        self._known = {event.id: event for event in events}
        self._writer = PiWriter(session.model, notes)
        self._view = self._fresh()
        self._records: list[Record] = []
        self._path: list[Written] = []
        self._ids: set[str] = set()

    def written(self) -> list[Record]:
        in_force = self._in_force()
        for place, event in enumerate(self._events):
            if event.kind == Kind.MESSAGE:
                self._say(event)
            elif event.id in in_force:
                self._compact(event, self._events[:place])
            elif event.kind == Kind.COMPACTION:
                self._notes.count("compaction", "that was undone left out")
        header: Record = {
            "type": "session",
            "version": VERSION,
            "id": self._session.id,
            "timestamp": self._session.created,
            "cwd": "/",
        }
        return [header | ({"modelId": self._session.model} if self._session.model else {}), *self._records]

    def _in_force(self) -> set[str]:
        """The checkpoint that holds now, and those it goes back to."""
        now: str | None = None
        for event in self._events:
            if event.kind == Kind.COMPACTION:
                now = event.id
            elif event.kind == Kind.UNDO:
                now = event.body.get("to")
        chain: set[str] = set()
        while now in self._known and now not in chain:
            chain.add(now)
            now = self._known[now].body.get("previous")
        return chain

    def _say(self, event: Event) -> None:
        before = len(self._view.messages)
        self._view.append(event)
        fresh = list(zip(self._view.ids[before:], self._view.messages[before:], strict=True))
        self._notes.count("event", "that no context shows left out", int(not fresh))
        usage = event.body.get("usage")
        for name, message in fresh:
            counted = msgspec.convert(usage, Usage) if usage and name == event.id else None
            self._write(name, message, event.time, counted)

    def _write(self, name: str, message: Message, time: str, usage: Usage | None = None, start: int = 0) -> None:
        said = list(self._writer.write(message, time, usage))
        last = self._path[-1] if len(self._path) > start else None
        if last is not None and not is_summary(message) and self._goes_on(last, said):
            last.records[-1]["message"] = _joined(last.records[-1]["message"], said[0])
            last.shown.append((name, message))
            return
        self._path.append(Written([], [(name, message)]))
        for one in said:
            self._add("message", name, time, {"message": one})

    def _goes_on(self, last: Written, said: Sequence[Record]) -> bool:
        """Items of one reply, as OpenAI has them, and neighbours that Anthropic takes for one, are one of pi's."""
        profile = profile_for(self._view.format)
        if not ((profile.items or profile.merges_roles) and last.shown and last.records and len(said) == 1):
            return False
        return bool(said[0]["role"] == last.records[-1]["message"]["role"] == "assistant")

    def _add(self, kind: str, name: str, time: str, more: Record) -> Record:
        """Add a record behind the newest, to what is being written now."""
        id, number = name, 2
        while id in self._ids:
            id, number = f"{name}.{number}", number + 1
        self._ids.add(id)
        parent = next((written.records[-1]["id"] for written in reversed(self._path) if written.records), None)
        record = {"type": kind, "id": id, "parentId": parent, "timestamp": time} | more
        self._records.append(record)
        self._path[-1].records.append(record)
        return record

    # -- compactions --------------------------------------------------------------------------------

    def _compact(self, event: Event, before: Sequence[Event]) -> None:
        checkpoint = msgspec.convert(event.body, Checkpoint)
        view = self._view = self._open(event, checkpoint, before)
        summary, rest = _summary(view.head)
        shown = [*((one.source or event.id, one.message) for one in rest), *zip(view.ids, view.messages, strict=True)]
        start = self._start_of(shown)
        if start is None:
            start = self._again(shown, event.time)
        kept = [one["id"] for written in self._path[start:] for one in written.records]
        self._path.append(Written([]))
        record = self._add(
            "compaction", event.id, event.time, {"summary": summary, "tokensBefore": checkpoint.tokens_before}
        )
        record["firstKeptEntryId"] = kept[0] if kept else record["id"]

    def _open(self, event: Event, checkpoint: Checkpoint, before: Sequence[Event]) -> View:
        view = self._fresh()
        head = []
        for item in checkpoint.head:
            source = self._known.get(item.ref or "")
            message = item.message
            if message is None and source is not None:
                message = decode_one(source.body["message"], source.body.get("format"))
            if message is not None:
                head.append(Shown(item.kind, message, item.ref))
        view.begin(event.id, checkpoint, head, event.seq)
        boundary = self._known.get(checkpoint.boundary or "")
        for one in before:
            if boundary is None or one.seq > boundary.seq:
                view.append(one)
        return view

    def _start_of(self, shown: Sequence[tuple[str, Message]]) -> int | None:
        """From where on the path tells just this; None if it does not."""
        rest = list(shown)
        for place in range(len(self._path), 0, -1):
            told = self._path[place - 1].shown
            if not rest:
                return place
            if told and rest[-len(told) :] != told:
                return None
            rest = rest[: len(rest) - len(told)]
        return None if rest else 0

    def _again(self, shown: Sequence[tuple[str, Message]], time: str) -> int:
        """Tell it once more, on a branch from what is archived; returns where on the path it starts."""
        kept = {name for name, _ in shown}
        while self._path and self._path[-1].shown and all(name in kept for name, _ in self._path[-1].shown):
            self._path.pop()
        start = len(self._path)
        for name, message in shown:
            self._write(name, message, time, start=start)
        return start

    def _fresh(self) -> View:
        session = self._session
        return View(self._estimator, format=session.format or COMMON, beside=beside(session.system, session.tools))


def _summary(head: Sequence[Shown]) -> tuple[str, Sequence[Shown]]:
    """What pi would show in the user's name, and what else stands first."""
    if head and head[0].message.role == "user" and head[0].source is None:
        parts = head[0].message.parts
        if len(parts) == 1 and isinstance(parts[0], Text):
            return parts[0].text, head[1:]
    return "", head


def _joined(first: Record, more: Record) -> Record:
    usage = more["usage"] if more["usage"]["totalTokens"] else first["usage"]
    stop = "toolUse" if "toolUse" in (first["stopReason"], more["stopReason"]) else "stop"
    return first | {"content": [*first["content"], *more["content"]], "usage": usage, "stopReason": stop}
