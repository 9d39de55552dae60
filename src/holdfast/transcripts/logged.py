"""Another tool's session as a log of ours: its messages as events, and what it compacted as checkpoints (P6)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..compaction import beside
from ..events import Event, Kind, LaneTip, SessionRecord, digest_of, now
from ..messages import COMMON, Json, Message, ToolResult, decode_all, lift_media
from ..tokens import Estimator
from ..tokens import Usage as Tokens
from ..view import Checkpoint, Edit, HeadItem, HeadKind, Run, Shown, View, runs_of
from .carry import carry_over, cut_at
from .shown import CLEARED, head_of, in_force, is_entry
from .transcript import Entry, PastCompaction, Transcript


class Step(msgspec.Struct, frozen=True):
    """An event as a store takes it."""

    event: Event
    media: dict[str, str]
    tip: LaneTip | None = None
    """Where a checkpoint puts its session."""


class Logged(msgspec.Struct, frozen=True):
    """A session that is ready to be written."""

    record: SessionRecord
    steps: list[Step]


def logged(transcript: Transcript, estimator: Estimator, id: str | None = None) -> Logged:
    """The same transcript gives the same ids, so that what was imported before is known again."""
    return _Log(transcript, estimator, id).written()


class _Log:
    """A log in the making, with the view that a session would have at each point of it."""

    def __init__(self, transcript: Transcript, estimator: Estimator, id: str | None) -> None:
        self._transcript = transcript
        self._estimator = estimator
        self._messages, self._format = decode_all(transcript.messages, transcript.format)
        self._names = _Names()
        self._created = next((entry.time for entry in transcript.entries if _is_time(entry.time)), None) or now()
        self._time = self._created
        self._steps: list[Step] = []
        self._events: list[Event] = []
        self._at: dict[int, Event] = {}
        """Message events by the place of their entry …"""
        self._said: dict[str, Event] = {}
        """… and by what they say, where a checkpoint may show them again."""
        self._shows_again = any(past.head for past in transcript.compactions)
        self._view = self._fresh()
        own = transcript.id or f"{transcript.kind}-{digest_of(transcript.messages)[:12]}"
        self.record = SessionRecord(
            id=own if id is None else id,
            created=self._created,
            system=transcript.system,
            tools=transcript.tools,
            format=None if self._format == COMMON else self._format,
            model=transcript.model,
            metadata={"imported": {"from": transcript.kind, "id": transcript.id}},
        )

    def written(self) -> Logged:
        pasts = in_force(self._transcript)
        summaries = {past.after for past in pasts if is_entry(self._transcript, past)}
        said = 0
        for past in pasts:
            self._say(range(said, past.after), summaries)
            said = past.after
            self._compact(past)
        self._say(range(said, len(self._messages)), summaries)
        return Logged(self.record, self._steps)

    # -- messages -----------------------------------------------------------------------------------

    def _say(self, places: range, summaries: set[int]) -> None:
        for place in places:
            if place not in summaries:
                self._say_one(place)

    def _say_one(self, place: int) -> None:
        entry, message = self._transcript.entries[place], self._messages[place]
        body: Json = {"message": entry.message if message.raw is None else message.raw}
        if message.format not in (None, COMMON):
            body["format"] = message.format
        body |= {"units": self._estimator.measure(message), "counter": self._estimator.name}
        if entry.usage is not None:
            usage = entry.usage
            counted = Tokens(usage.input, usage.output, usage.cache_read, usage.cache_write)
            body["usage"] = msgspec.to_builtins(counted)
        event = self._event(self._names.of(entry.id, f"message-{place + 1}"), Kind.MESSAGE, body, entry)
        self._at[place] = event
        if self._shows_again:
            self._said[digest_of(entry.message)] = event
        self._add(event)
        self._view.append(event)

    def _event(self, id: str, kind: str, body: Json, entry: Entry | None) -> Event:
        if entry is not None and _is_time(entry.time):
            self._time = str(entry.time)
        return Event(id, kind, self._time, body, None, len(self._events) + 1, self._view.checkpoint_id)

    def _add(self, event: Event, tip: LaneTip | None = None) -> None:
        body, media = lift_media(event.body)
        if media:
            body["media"] = sorted(media)
        self._events.append(event)
        self._steps.append(Step(msgspec.structs.replace(event, body=body), media, tip))

    # -- compactions --------------------------------------------------------------------------------

    def _compact(self, past: PastCompaction) -> None:
        entries, number = self._transcript.entries, sum(step.tip is not None for step in self._steps) + 1
        entry = entries[past.after] if is_entry(self._transcript, past) else None
        name = self._names.of(entry.id if entry else None, f"compaction-{number}")
        first = past.after - past.kept
        last = max((place for place in self._at if place < first), default=None)
        boundary = None if last is None else self._at[last]
        start = 0 if boundary is None else boundary.seq
        head = self._head(past, start)
        before = self._view
        following = entries[past.after] if past.after < len(entries) else None
        checkpoint = Checkpoint(
            boundary=None if boundary is None else boundary.id,
            head=tuple(item for item, _ in head),
            edits=self._edits(past, first),
            carry=carry_over(before, cut_at(before, start), len(self._events)),
            archived=self._archived(start, head),
            tokens_before=before.tokens if past.tokens_before is None else past.tokens_before,
            summary=past.summary,
            previous=before.checkpoint_id,
            strategy=f"{self._transcript.kind}{' prune' if past.trigger == 'prune' else ''}",
        )
        event = self._event(name, Kind.COMPACTION, {}, following)
        self._view = self._fresh()
        self._view.begin(name, checkpoint, [shown for _, shown in head], event.seq)
        for one in self._events[start:]:
            self._view.append(one)
        after = self._view.tokens if past.tokens_after is None else past.tokens_after
        checkpoint = self._view.checkpoint = msgspec.structs.replace(checkpoint, tokens_after=after)
        body = msgspec.to_builtins(checkpoint)
        self._add(msgspec.structs.replace(event, body=body), LaneTip(event.seq, name, start))

    def _head(self, past: PastCompaction, start: int) -> list[tuple[HeadItem, Shown]]:
        """References where the tool shows an earlier message again, as Codex does with the user's; else notes."""
        if is_entry(self._transcript, past):
            shown = Shown("note", self._messages[past.after])
            return [(HeadItem("note", None, shown.message), shown)]
        payloads = head_of(self._transcript, past)
        messages, _ = decode_all(payloads, None if self._format == COMMON else self._format)
        sources = [self._said.get(digest_of(payload)) for payload in payloads]
        sources = [source if source is not None and source.seq <= start else None for source in sources]
        asked = [place for place, message in enumerate(messages) if sources[place] and message.role == "user"]
        head = []
        for place, (message, source) in enumerate(zip(messages, sources, strict=True)):
            kind = _kind(message, source, newest=place in asked[-1:])
            if source is None:
                head.append((HeadItem(kind, None, message), Shown(kind, message)))
            else:
                head.append((HeadItem(kind, source.id), Shown(kind, message, source.id)))
        return head

    def _edits(self, past: PastCompaction, first: int) -> dict[str, tuple[Edit, ...]]:
        edits: dict[str, tuple[Edit, ...]] = {}
        for place, call in past.cleared:
            if place < first or place not in self._at:
                continue
            parts = enumerate(self._messages[place].parts)
            found = [Edit(n, CLEARED) for n, part in parts if isinstance(part, ToolResult) and part.call_id == call]
            event = self._at[place].id
            edits[event] = tuple(sorted((*edits.get(event, ()), *found), key=lambda edit: edit.part))
        return edits

    def _archived(self, start: int, head: Sequence[tuple[HeadItem, Shown]]) -> tuple[Run, ...]:
        view, shown = self._view, {item.ref for item, _ in head}
        gone = [p for p in range(cut_at(view, start)) if view.ids[p] in view.events and view.ids[p] not in shown]
        left = [one.source for one in view.head if one.source and one.source not in shown]
        return (*(Run(name, name, 1) for name in left), *runs_of(view.ids, gone))

    def _fresh(self) -> View:
        transcript = self._transcript
        texts = beside(transcript.system, transcript.tools)
        return View(self._estimator, format=self._format, beside=texts, calibrated=True)


class _Names:
    """Ids as the tool gave them, each once; where it gave none, one that tells the place."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def of(self, given: str | None, place: str) -> str:
        name = wanted = given if given and given.isprintable() else place
        number = 2
        while name in self._taken:
            name, number = f"{wanted}.{number}", number + 1
        self._taken.add(name)
        return name


def _is_time(time: str | None) -> bool:
    return bool(time) and str(time).isprintable()


def _kind(message: Message, source: Event | None, *, newest: bool) -> HeadKind:
    """A user's message that stands there again stays; the newest goes when its turn is over."""
    if source is None:
        return "note"
    if message.role == "system":
        return "system"
    return "turn" if newest else "preamble"
