"""Convert a transcript to a log: its messages become events, its compactions checkpoints."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..context import (
    Carry,
    Checkpoint,
    EventIdRange,
    HeadItem,
    HeadKind,
    HeadMessage,
    Request,
    View,
    event_id_ranges,
)
from ..context.events import Event, EventKind, LaneTip, SessionRecord, digest_of, now
from ..ledger import HistoryExtractor, score_names, trim_ledger
from ..messages import (
    COMMON,
    Edit,
    Json,
    Message,
    ToolResult,
    apply_edits,
    change,
    decode_all,
    extract_media,
    starts_turn,
    user_topics,
)
from ..sessions.history import FOLDER, TITLE
from ..strategies.history import message_numbers, previous_ledger
from ..tokens import Estimator
from ..tokens.estimators import prompt_overhead
from ..tokens.window import WindowFacts
from .transcript import (
    CLEARED_RESULT,
    PastCompaction,
    Transcript,
    TranscriptEntry,
    compaction_head,
    effective_compactions,
    summary_is_entry,
)

_CARRIED_CHARACTERS = 60_000
"""Maximum characters of ledger lines carried into the next round."""


def archived_count(view: View, seq: int) -> int:
    """How many of the view's live messages belong to events up to this seq, placeholder results included."""
    known = [index for index, name in enumerate(view.ids) if name in view.events and view.events[name].seq <= seq]
    return known[-1] + 1 if known else 0


def build_carry(view: View, cut: int, version: int) -> Carry:
    """The carry of an imported checkpoint. Clearing results without a cut does not start a new round."""
    before, gone = view.checkpoint.carry, view.messages[:cut]
    return Carry(
        round=before.round + (cut > 0),
        archived=before.archived + cut,
        format=None if view.format == COMMON else view.format,
        counter=view.token_sums.estimator.name,
        topics=tuple(user_topics(gone, before.topics)),
        before_boundary=before.before_boundary + cut,
        kept_until=version if cut else before.kept_until,
        ledger=_carried_ledger(view, cut) if cut else before.ledger,
    )


def _carried_ledger(view: View, cut: int) -> dict[str, object]:
    request = Request(view)
    earlier = previous_ledger(request)
    history = HistoryExtractor(earlier)
    history.read(view.messages[:cut], message_numbers(request, earlier.archived)[:cut])
    ledger = trim_ledger(history.ledger(), history.name_cache.__getitem__, score_names(history), _CARRIED_CHARACTERS)
    plain: dict[str, object] = msgspec.to_builtins(ledger)
    return plain


class ImportStep(msgspec.Struct, frozen=True):
    """An event to append, with its media and the tip it sets."""

    event: Event
    media: dict[str, str]
    tip: LaneTip | None = None
    """The lane tip that a checkpoint sets."""


class ImportLog(msgspec.Struct, frozen=True):
    """A session record and the events to append."""

    record: SessionRecord
    steps: list[ImportStep]


def log_from_transcript(transcript: Transcript, estimator: Estimator, id: str | None = None) -> ImportLog:
    """Builds the log of a transcript. Event ids are deterministic, so that a repeated import is recognised."""
    return _ImportLogBuilder(transcript, estimator, id).build()


class _ImportLogBuilder:
    """Builds a log event by event, along with the session's view at that point."""

    def __init__(self, transcript: Transcript, estimator: Estimator, id: str | None) -> None:
        self._transcript = transcript
        self._estimator = estimator
        self._messages, self._format = decode_all(transcript.messages, transcript.format)
        self._ids = _UniqueIds()
        self._created = next((entry.time for entry in transcript.entries if _is_timestamp(entry.time)), None) or now()
        self._time = self._created
        self._steps: list[ImportStep] = []
        self._events: list[Event] = []
        self._at: dict[int, Event] = {}
        """Message events by the index of their entry."""
        self._by_digest: dict[str, Event] = {}
        """Message events by digest, for compactions that show messages again."""
        self._shows_again = any(past.head for past in transcript.compactions)
        self._view = self._new_view()
        own = transcript.id or f"{transcript.kind}-{digest_of(transcript.messages)[:12]}"
        self.record = SessionRecord(
            id=own if id is None else id,
            created=self._created,
            system=transcript.system,
            tools=transcript.tools,
            format=None if self._format == COMMON else self._format,
            model=transcript.model,
            metadata={"imported": {"from": transcript.kind, "id": transcript.id}} | _about(transcript),
            policy=_stored_window(transcript),
        )

    def build(self) -> ImportLog:
        pasts = effective_compactions(self._transcript)
        summaries = {past.after for past in pasts if summary_is_entry(self._transcript, past)}
        done = 0
        for past in pasts:
            self._append_messages(range(done, past.after), summaries)
            done = past.after
            self._compact(past)
        self._append_messages(range(done, len(self._messages)), summaries)
        return ImportLog(self.record, self._steps)

    # -- messages -----------------------------------------------------------------------------------

    def _append_messages(self, indexes: range, summaries: set[int]) -> None:
        for index in indexes:
            if index not in summaries:
                self._append_message(index)

    def _append_message(self, index: int) -> None:
        entry, message = self._transcript.entries[index], self._messages[index]
        body: Json = {"message": entry.message if message.raw is None else message.raw}
        if message.format not in (None, COMMON):
            body["format"] = message.format
        body |= {"units": self._estimator.measure(message), "counter": self._estimator.name}
        if entry.usage is not None:
            body["usage"] = msgspec.to_builtins(entry.usage)
        event = self._event(self._ids.pick(entry.id, f"message-{index + 1}"), EventKind.MESSAGE, body, entry)
        self._at[index] = event
        if self._shows_again:
            self._by_digest[digest_of(entry.message)] = event
        self._add(event)
        self._view.append(event)

    def _event(self, id: str, kind: str, body: Json, entry: TranscriptEntry | None) -> Event:
        if entry is not None and _is_timestamp(entry.time):
            self._time = str(entry.time)
        return Event(id, kind, self._time, body, None, len(self._events) + 1, self._view.checkpoint_id)

    def _add(self, event: Event, tip: LaneTip | None = None) -> None:
        body, media = extract_media(event.body)
        if media:
            body["media"] = sorted(media)
        if "usage" in body:  # of another tool's prompt: it does not say how large the context is here
            body = body | {"foreign_usage": True}
        self._events.append(event)
        self._steps.append(ImportStep(msgspec.structs.replace(event, body=body), media, tip))

    # -- compactions --------------------------------------------------------------------------------

    def _compact(self, past: PastCompaction) -> None:
        entries, number = self._transcript.entries, sum(step.tip is not None for step in self._steps) + 1
        entry = entries[past.after] if summary_is_entry(self._transcript, past) else None
        name = self._ids.pick(entry.id if entry else None, f"compaction-{number}")
        first = past.after - past.kept
        last = max((index for index in self._at if index < first), default=None)
        boundary = None if last is None else self._at[last]
        start = 0 if boundary is None else boundary.seq
        head = self._head(past, start)
        before = self._view
        following = entries[past.after] if past.after < len(entries) else None
        checkpoint = Checkpoint(
            boundary=None if boundary is None else boundary.id,
            head=tuple(item for item, _ in head),
            edits=self._edits(past, first),
            carry=build_carry(before, archived_count(before, start), len(self._events)),
            archived=self._archived(start, head),
            tokens_before=before.tokens if past.tokens_before is None else past.tokens_before,
            summary=past.summary,
            previous=before.checkpoint_id,
            strategy=f"{self._transcript.kind}{' prune' if past.trigger == 'prune' else ''}",
        )
        event = self._event(name, EventKind.COMPACTION, {}, following)
        self._view = self._new_view()
        self._view.start_from(name, checkpoint, [shown for _, shown in head], event.seq)
        for one in self._events[start:]:
            self._view.append(one)
        after = self._view.tokens if past.tokens_after is None else past.tokens_after
        checkpoint = self._view.checkpoint = msgspec.structs.replace(checkpoint, tokens_after=after)
        body = msgspec.to_builtins(checkpoint)
        self._add(msgspec.structs.replace(event, body=body), LaneTip(event.seq, name, start))

    def _head(self, past: PastCompaction, start: int) -> list[tuple[HeadItem, HeadMessage]]:
        """The head of a checkpoint: references to messages that the tool shows again (as Codex does), else notes."""
        if summary_is_entry(self._transcript, past):
            shown = HeadMessage("note", self._messages[past.after])
            return [(HeadItem("note", None, shown.message), shown)]
        payloads = compaction_head(self._transcript, past)
        messages, _ = decode_all(payloads, None if self._format == COMMON else self._format)
        sources = [self._by_digest.get(digest_of(payload)) for payload in payloads]
        sources = [source if source is not None and source.seq <= start else None for source in sources]
        asked = [index for index, message in enumerate(messages) if sources[index] and starts_turn(message)]
        head = []
        for index, (message, source) in enumerate(zip(messages, sources, strict=True)):
            kind = _head_kind(message, source, newest=index in asked[-1:])
            if source is None:
                head.append((HeadItem(kind, None, message), HeadMessage(kind, message)))
            else:
                head.append((HeadItem(kind, source.id), HeadMessage(kind, message, source.id)))
        return head

    def _edits(self, past: PastCompaction, first: int) -> dict[str, tuple[Edit, ...]]:
        edits: dict[str, tuple[Edit, ...]] = {}
        for index, call in past.cleared:
            if index < first or index not in self._at:
                continue
            message = self._messages[index]
            parts = enumerate(message.parts)
            found = [n for n, part in parts if isinstance(part, ToolResult) and part.call_id == call]
            event = self._at[index].id
            known = apply_edits(message, edits.get(event, ()))
            edits[event] = change(known, dict.fromkeys(found, CLEARED_RESULT)).edits
        return edits

    def _archived(self, start: int, head: Sequence[tuple[HeadItem, HeadMessage]]) -> tuple[EventIdRange, ...]:
        view, shown = self._view, {item.ref for item, _ in head}
        gone = [
            p for p in range(archived_count(view, start)) if view.ids[p] in view.events and view.ids[p] not in shown
        ]
        left = [one.source for one in view.head if one.source and one.source not in shown]
        return (*(EventIdRange(name, name, 1) for name in left), *event_id_ranges(view.ids, gone))

    def _new_view(self) -> View:
        transcript = self._transcript
        texts = prompt_overhead(transcript.system, transcript.tools)
        return View(self._estimator, format=self._format, prompt_overhead=texts, calibrated=True)


class _UniqueIds:
    """Event ids: the tool's, made unique; where it has none, a default."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def pick(self, given: str | None, default: str) -> str:
        name = wanted = given if given and given.isprintable() else default
        number = 2
        while name in self._taken:
            name, number = f"{wanted}.{number}", number + 1
        self._taken.add(name)
        return name


def _about(transcript: Transcript) -> Json:
    """Folder and title as metadata, where the tool knows them."""
    return {key: value for key, value in ((FOLDER, transcript.folder), (TITLE, transcript.title)) if value}


def _stored_window(transcript: Transcript) -> Json | None:
    """The window that the tool recorded, as a session stores it with its policy."""
    if transcript.window is None:
        return None
    facts = WindowFacts(model=transcript.model, recorded=transcript.window, whole=transcript.whole_window)
    return {"window": msgspec.to_builtins(facts)}


def _is_timestamp(time: str | None) -> bool:
    return bool(time) and str(time).isprintable()


def _head_kind(message: Message, source: Event | None, *, newest: bool) -> HeadKind:
    """Kind of a head item: a user message shown again stays, the newest one until its turn is over."""
    if source is None:
        return "note"
    if message.role == "system":
        return "system"
    return "turn" if newest else "preamble"
