"""Lists of messages without a session: ids, matching a list to an earlier one, and input repair.

An id is a chained digest of a message and of all before it. The chain makes a checkpoint of one call fit the messages
of the next, whether those are the whole history or the last result's messages and all that came after.
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self, overload

import msgspec

from ..context import Checkpoint, HeadItem, HeadMessage, Request, View, apply_edits, event_id_ranges
from ..context.events import Event, EventKind
from ..errors import CheckpointMismatch, InvalidInput, InvalidLimit
from ..messages import (
    COMMON,
    Json,
    Message,
    Part,
    ToolCall,
    ToolResult,
    decode_all,
    decode_one,
    encode_all,
    find_problems,
    repair_messages,
    rules_for,
    split_notes,
    to_json,
    without_generated_id,
)
from ..messages.frameworks import dump_objects, framework_in, restore_objects
from ..messages.json_text import decodable
from ..strategies.history import message_numbers, previous_ledger
from ..strategies.read_back import read_notes_back
from ..tokens import ReportedUsage, Usage, estimator_for, read_usage
from .decide import Decision
from .options import CompactionOptions
from .result import CompactionResult, Cost, Partition
from .run import CompactionRun

if TYPE_CHECKING:
    from ..types import CheckpointLike, EstimatorLike, MessageLike, SystemLike, ToolsLike, UsageLike


START = "start"
"""The boundary of a checkpoint that only edits: nothing is archived."""
_ENCODER = msgspec.json.Encoder(order="sorted")


class PrefixIds(Sequence[str]):
    """The id of each message of a list, computed when it is first read."""

    def __init__(self, messages: Sequence[Any], known: Sequence[str] = (), before: str = "") -> None:
        self._messages = messages
        self._ids = list(known)
        self._before = before

    def __len__(self) -> int:
        return len(self._messages)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return _IdSlice(self, range(len(self))[index])
        index = range(len(self))[index]
        while len(self._ids) <= index:
            before = self._ids[-1] if self._ids else self._before
            message = self._messages[len(self._ids)]
            self._ids.append(self.digest(before, message))
        return self._ids[index]

    @staticmethod
    def digest(before: str, message: Any) -> str:
        """Returns the digest of a message and of the digest before it; ids that a codec generated do not count."""
        content = (before, message.role, [without_generated_id(part) for part in message.parts])
        try:
            encoded = _ENCODER.encode(content)
        except UnicodeEncodeError:
            encoded = repr(content).encode(errors="surrogatepass")
        return hashlib.blake2b(encoded, digest_size=16).hexdigest()


class PayloadIds(PrefixIds):
    """Ids of payloads: every field counts, also those that no codec reads, as marks for the prompt cache.

    Of a framework's message only its content counts: frameworks add names, ids and annotations to it later.
    """

    @staticmethod
    def digest(before: str, message: Any) -> str:
        """Returns the digest of a payload and of the digest before it."""
        name = framework_in(message) if isinstance(message, dict) else None
        if name is not None:
            return PrefixIds.digest(before, decode_one(message, name))
        return hashlib.blake2b(f"{before}{to_json(message)}".encode(errors="surrogatepass"), digest_size=16).hexdigest()


class _IdSlice(Sequence[str]):
    """A slice of the ids, as lazy as the whole."""

    def __init__(self, ids: Sequence[str], indices: range) -> None:
        self._ids, self._indices = ids, indices

    def __len__(self) -> int:
        return len(self._indices)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return _IdSlice(self._ids, self._indices[index])
        return self._ids[self._indices[index]]


class Prefix(NamedTuple):
    """A list of messages by length and digest: enough to recognise a longer list that starts with it."""

    length: int
    digest: str

    @classmethod
    def of(cls, ids: Sequence[str]) -> Self:
        """The whole list with these ids."""
        return cls(len(ids), ids[-1] if ids else "")

    def extended(self, payloads: Sequence[Json]) -> Prefix:
        """This list of payloads, followed by these."""
        ids = PayloadIds(payloads, before=self.digest)
        return Prefix(self.length + len(payloads), ids[-1]) if payloads else self

    def starts(self, ids: Sequence[str]) -> bool:
        """Whether the list with these ids starts with this one."""
        return 0 < self.length <= len(ids) and ids[self.length - 1] == self.digest


@decodable
class PrefixCheckpoint(Checkpoint, frozen=True, omit_defaults=True):
    """A checkpoint that refers to messages by digest: plain data, to be stored anywhere."""

    lead: int = 0
    """How many messages of the result precede the kept ones."""
    shown: int = 0
    """Length of the result."""
    shown_digest: str = ""
    kept: tuple[str, ...] = ()
    """Ids of the kept messages in the whole history."""
    numbers: tuple[int, ...] = ()
    """Numbers of the kept messages, unless they continue from the boundary's."""

    @property
    def result(self) -> Prefix:
        """The messages that the compaction returned, as a prefix of the next input."""
        return Prefix(self.shown, self.shown_digest)


def as_checkpoint(previous: Any) -> PrefixCheckpoint:
    """Returns the checkpoint of an earlier result, given as the object, as JSON or as a dict."""
    try:
        if isinstance(previous, PrefixCheckpoint):
            return previous
        given = msgspec.json.decode(previous) if isinstance(previous, str | bytes) else previous
        if isinstance(given, Mapping) and given and not set(PrefixCheckpoint.__struct_encode_fields__) & given.keys():
            raise msgspec.ValidationError(f"it has only {', '.join(map(str, given))}")
        return msgspec.convert(given, PrefixCheckpoint)
    except (msgspec.DecodeError, msgspec.ValidationError) as problem:
        raise CheckpointMismatch(
            f"previous= takes the `checkpoint` of an earlier result, not {type(previous).__name__} ({problem})."
        ) from problem


def locate(messages: Sequence[Message], previous: PrefixCheckpoint) -> tuple[int, Sequence[str], bool]:
    """Returns where the live messages start, their ids, and whether the list is the whole history.

    Raises CheckpointMismatch if the list continues neither the history nor the result.
    """
    ids = PrefixIds(messages)
    last_kept = previous.kept[-1] if previous.kept else None
    for index in range(len(messages) - len(previous.kept)):
        if ids[index] == previous.boundary and last_kept in (None, ids[index + len(previous.kept)]):
            return index + 1, ids[index + 1 :], True
    if previous.result.starts(ids):
        last = last_kept or previous.boundary or ""
        live = messages[previous.lead :]
        return previous.lead, PrefixIds(live, previous.kept, last), False
    if previous.boundary is None:
        return 0, ids, True
    raise CheckpointMismatch(
        "previous= belongs to other messages: pass the whole history, or the last result's messages "
        "and what came after, or leave previous= out."
    )


def continued_numbers(previous: PrefixCheckpoint, count: int) -> list[int]:
    """Returns numbers for a list that continues a result: 0 for its notes, then on from the kept messages."""
    archived = previous.carry.before_boundary
    known = [0] * previous.lead + list(previous.numbers or range(archived + 1, archived + 1 + len(previous.kept)))
    last = max([archived, *known])
    return [*known, *range(last + 1, last + 1 + count - len(known))][:count]


def repair_input(messages: list[Message], format: str) -> list[Message]:
    """Returns the messages, repaired if their wire format requires it; the same list if not."""
    rules, separate = rules_for(format), split_notes(messages)
    if not find_problems(separate, rules):
        return separate
    return decode_payloads(encode_all(repair_messages(separate, rules), format), format)


def decode_payloads(payloads: list[Json], format: str) -> list[Message]:
    """Decodes what `encode_all` returned for this format."""
    return decode_all(payloads, None if format == COMMON else format)[0]


def trace_numbers(history: Iterable[Message], given: Sequence[Message], numbers: Sequence[int]) -> list[int]:
    """Returns a number for each message of a repaired history: that of the given message with the same parts.

    A message that repair inserted takes the number of the one before it.
    """
    traced, last = [], 0
    for indices in trace_messages(history, given):
        last = numbers[indices[0]] if indices else last
        traced.append(last)
    return traced


def message_ids(given: Sequence[Message], history: Sequence[Message], known: Sequence[str] = ()) -> Sequence[str]:
    """Returns an id for each given message: that of the message of the repaired history with the same parts.

    `known` are the ids of the history, unless they are those of a history without a checkpoint.
    """
    own, known = PrefixIds(given), known or PrefixIds(history)
    if history is given:
        return known
    ids: dict[int, str] = {}
    for index, number in enumerate(trace_numbers(history, given, range(1, len(given) + 1))):
        ids.setdefault(number, known[index])
    return [ids.get(number, own[number - 1]) for number in range(1, len(given) + 1)]


def trace_messages(messages: Iterable[Message], among: Iterable[Message]) -> Iterator[list[int]]:
    """Yields, for each message, the indices of those among others that have the same parts, in order."""
    indices: dict[bytes, deque[int]] = {}
    for index, message in enumerate(among):
        for part in message.parts:
            indices.setdefault(_content_key(part), deque()).append(index)
    for message in messages:
        yield [indices[key].popleft() for key in map(_content_key, message.parts) if indices.get(key)]


def _content_key(part: Part) -> bytes:
    """A part's content without the ids that join calls and results: repair may change those."""
    if isinstance(part, ToolCall):
        part = ToolCall("", part.name, part.arguments_dict, part.kind)
    elif isinstance(part, ToolResult):
        part = ToolResult("", part.content, part.is_error)
    try:
        return msgspec.json.encode(part, order="sorted")
    except UnicodeEncodeError:
        return repr(part).encode(errors="surrogatepass")


def prompt_overhead(system: Any, tools: Any) -> tuple[str, ...]:
    """Returns the text of the system prompt and of the tools, which take room in the window next to the messages."""
    texts = []
    if system:
        texts.append(system if isinstance(system, str) else to_json(_plain(system)))
    if tools:
        texts.append(to_json(_plain(tools)))
    return tuple(texts)


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.model_dump(mode="json", exclude_none=True) if hasattr(value, "model_dump") else value


class StatelessCompaction:
    """One compaction of a list of messages: builds the view from the list, and the result from the decision."""

    def __init__(
        self,
        messages: Iterable[MessageLike],
        options: CompactionOptions,
        system: SystemLike | None,
        tools: ToolsLike | None,
        usage: UsageLike | ReportedUsage | None,
        estimator: EstimatorLike | None,
        format: str | None,
        previous: CheckpointLike | None,
        numbers: Sequence[int] | None,
    ) -> None:
        started = time.perf_counter()
        if options.budget is None:
            raise InvalidLimit("budget must be a whole number of at least 1, not None.")
        messages, self._originals = dump_objects(messages)
        self.given, self.format = decode_all(messages, format, borrow=True)
        self.history = repair_input(self.given, self.format)
        view = View(
            estimator_for(estimator),
            format=self.format,
            prompt_overhead=prompt_overhead(system, tools),
            calibrated=usage is not None,
        )
        self.previous = None if previous is None else as_checkpoint(previous)
        self.start, self.whole = 0, True
        if self.previous is None:
            view.load(self.history, PrefixIds(self.history))
            read_notes_back(view)
        else:
            self.start, self.whole = _resume(view, self.history, self.previous)
        if usage is not None:
            self._calibrate(view, usage)
        self.numbers = self._message_numbers(numbers)
        view.given_numbers = self._live_numbers(view, numbers is not None)
        self.run = CompactionRun(view, options, started=started)

    def _calibrate(self, view: View, usage: UsageLike | ReportedUsage) -> None:
        """Makes a provider's report the size of the context up to the reply it came with."""
        if not isinstance(usage, ReportedUsage):
            replies = (index for index in reversed(range(len(self.given))) if self.given[index].role == "assistant")
            usage = ReportedUsage(read_usage(usage).total, next(replies, -1) + 1)
        sums, later = view.token_sums, self.given[usage.covers :]
        size = sums.estimator.tokens(view.units() - sum(map(sums.estimator.measure, later)))
        if usage.covers <= self.start or size <= 0:
            return
        known = view.calibration
        report = Usage(input=usage.tokens)
        view.calibration = known.learn(size, report) if known.replies else known.from_report(size, usage.tokens)

    def _message_numbers(self, numbers: Sequence[int] | None) -> Sequence[int]:
        """Returns the number by which notes cite each given message: the given one, or its position."""
        count, previous = len(self.given), self.previous
        if numbers is None:
            positions = range(1, count + 1)
            return positions if self.whole or previous is None else continued_numbers(previous, count)
        if len(numbers) != count:
            raise InvalidInput(f"There are {len(numbers)} numbers for {count} messages: give each message one.")
        if not all(type(number) is int and number > 0 for number in numbers):
            raise InvalidInput("The numbers of messages must be positive integers.")
        return numbers

    def _live_numbers(self, view: View, explicit: bool) -> Sequence[int]:
        """Returns the numbers of the live messages, or none where the view can count them itself.

        Messages that repair inserted have no number of their own.
        """
        given, history, previous = self.given, self.history, self.previous
        if not explicit:
            if previous is None and view.synthetic:  # a note says where counting continues
                request = Request(view)
                return message_numbers(request, previous_ledger(request).archived)
            if history is given and not (previous and previous.numbers):
                return ()
        return (self.numbers if history is given else trace_numbers(history, given, self.numbers))[self.start :]

    def result(self, decision: Decision) -> CompactionResult:
        view, plan, planned = self.run.request.view, decision.plan, decision.planned
        encoded = encode_all(view.context_messages() if planned is None else planned.messages, self.format)
        cost = self.run.cost(decision)
        return self.run.result(
            decision,
            messages=lambda: restore_objects(encoded, self.format, self._originals),
            partition=lambda: self._partition(decision),
            checkpoint=lambda: self.previous if plan is None else self._checkpoint(decision, encoded, cost),
            round=view.checkpoint.carry.round + (planned is not None and planned.archives),
            format=self.format,
            cost=cost,
        )

    def _checkpoint(self, decision: Decision, encoded: list[Json], cost: Cost | None) -> PrefixCheckpoint:
        """Returns everything the next call needs, as plain data."""
        view, plan, planned = self.run.request.view, decision.plan, decision.planned
        assert plan is not None and planned is not None
        shown = repair_input(decode_payloads(encoded, view.format), view.format)
        emptied = {index for index in planned.edits if not planned.live[index - plan.cut].parts}
        kept = [index for index in range(plan.cut, len(view.messages)) if index not in emptied]
        ids = tuple(view.ids[index] for index in kept)
        checkpoint = self.run.checkpoint(
            decision,
            boundary=view.ids[plan.cut - 1] if plan.cut else view.checkpoint.boundary,
            head=(HeadItem(shown.kind, shown.source, shown.message) for shown in planned.head),
            kept=ids,
            archived=event_id_ranges(view.ids, planned.archived),
            previous=view.checkpoint.boundary,
            pins=view.pins,
            cost=cost,
        )
        prefix = Prefix.of(PrefixIds(shown))
        return PrefixCheckpoint(
            **msgspec.structs.asdict(checkpoint),
            lead=len(shown) - len(kept),
            shown=prefix.length,
            shown_digest=prefix.digest,
            kept=ids,
            numbers=tuple(view.given_numbers[index] for index in kept) if view.given_numbers else (),
        )

    def _partition(self, decision: Decision) -> Partition:
        """Returns the given messages, as events, by what became of them."""
        view, planned, start = self.run.request.view, decision.planned, self.start
        lead = [shown for shown in view.head if shown.source] if start and len(self.given) == len(self.history) else []
        events = self._given_events()
        if planned is None:
            return Partition([*map(self._head_event, lead), *events[start:]], [], [])
        gone = set(planned.archived)
        if self.history is self.given:
            kept = [index for index in range(start, len(events)) if index - start not in gone]
            archived = [start + index for index in planned.archived]
        else:
            kept, archived = self._trace_partition(gone)
        dropped = {shown.source for shown in planned.dropped}
        sources = list(trace_messages(self.history, self.given)) if self.history is not self.given else ()
        edited = [
            events[sources[start + index][0] if sources else start + index]
            for index in sorted(planned.edits)
            if not sources or sources[start + index]
        ]
        return Partition(
            [*(self._head_event(one) for one in lead if one.source not in dropped), *(events[i] for i in kept)],
            [*(self._head_event(one) for one in lead if one.source in dropped), *(events[i] for i in archived)],
            edited,
        )

    def _trace_partition(self, gone: Collection[int]) -> tuple[list[int], list[int]]:
        """Returns the indexes of the kept and archived given messages where repair changed them: found by parts."""
        kept, archived = [], []
        for given, indices in enumerate(trace_messages(self.given, self.history)):
            live = [index - self.start for index in indices]
            if any(index >= 0 and index not in gone for index in live):
                kept.append(given)
            elif any(index in gone for index in live) or not (live or self.start):
                archived.append(given)
        return kept, archived

    def _given_events(self) -> list[Event]:
        """The given messages as events; `seq` is the number by which notes cite them."""
        known = [*PrefixIds(self.history)[: self.start], *self.run.request.view.ids] if self.previous else ()
        ids = message_ids(self.given, self.history, known)
        return [self._event(*one) for one in zip(ids, self.given, self.numbers, strict=True)]

    def _head_event(self, shown: HeadMessage) -> Event:
        return self._event(shown.source or "", shown.message)

    def _event(self, id: str, message: Message, seq: int = 0) -> Event:
        format, payloads = self.format, encode_all([message], self.format)
        if len(payloads) != 1:  # one message for this format, or none: Anthropic's holds any parts
            format, payloads = (
                "anthropic",
                encode_all([message], "anthropic") or [{"role": message.role, "content": ""}],
            )
        body: Json = {"message": payloads[0]} if format == COMMON else {"message": payloads[0], "format": format}
        return Event(id, EventKind.MESSAGE, "", body, seq=seq)


def _resume(view: View, history: list[Message], previous: PrefixCheckpoint) -> tuple[int, bool]:
    """Loads the view as the previous checkpoint left it.

    Returns where its live messages start, and whether the list is the whole history.
    """
    start, ids, whole = locate(history, previous)
    live = history[start:]
    if whole and previous.edits:
        live = [apply_edits(message, previous.edits.get(ids[index], ())) for index, message in enumerate(live)]
    view.load(live, ids)
    head = [HeadMessage(item.kind, item.message, item.ref) for item in previous.head if item.message is not None]
    view.start_from(previous.boundary or START, previous, head)
    view.previously_kept = previous.carry.kept_until
    return start, whole
