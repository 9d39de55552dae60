"""One compaction of a list of messages without a session: from the list to a view, from the decision to a result."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ..context import HeadMessage, Plan, Request, View
from ..context.events import Event, EventKind
from ..errors import InvalidInput
from ..follow import ChainedIds
from ..messages import COMMON, Json, Message, apply_edits, decode_all, encode_all
from ..messages.codec import decode_payloads
from ..messages.frameworks import dump_objects, restore_objects
from ..messages.normalize import valid_input
from ..messages.repair import repair_input, trace_messages, trace_numbers
from ..strategies.history import message_numbers, previous_ledger
from ..strategies.read_back import read_notes_back
from ..tokens import ReportedUsage, Usage, estimator_for, read_usage
from ..tokens.estimators import prompt_overhead
from .decide import Decision
from .driver import Abort, Notify
from .policy import Policy
from .previous import PrefixCheckpoint, as_checkpoint, continued_numbers, locate, message_ids
from .result import CompactionResult, Cost, Partition
from .run import CompactionRun, checkpoint_of

if TYPE_CHECKING:
    from ..types import CheckpointLike, MessageLike, SystemLike, ToolsLike, UsageLike

START = "start"
"""The boundary of a checkpoint that only edits: nothing is archived."""
_REPAIRS_SHOWN = 3
"""Repairs that a remark names one by one."""


class ListedMessages(NamedTuple):
    """A list of messages as it was passed in, with what belongs to it."""

    messages: Iterable[MessageLike]
    format: str | None
    system: SystemLike | None
    tools: ToolsLike | None
    usage: UsageLike | ReportedUsage | None
    numbers: Sequence[int] | None
    alternating: bool = False


class StatelessCompaction:
    """One compaction of a list of messages: builds the view from the list, and the result from the decision."""

    def __init__(
        self,
        given: ListedMessages,
        policy: Policy,
        previous: CheckpointLike | None,
        notify: Notify | None = None,
        abort: Abort | None = None,
    ) -> None:
        started = time.perf_counter()
        messages, self._originals = dump_objects(given.messages)
        self.given, self.format = decode_all(messages, given.format, borrow=True)
        self._repairs: list[str] = []
        self.history = self._valid(self.given, given.alternating)
        view = View(
            estimator_for(policy.estimator),
            format=self.format,
            prompt_overhead=prompt_overhead(given.system, given.tools),
            calibrated=given.usage is not None,
            alternating=given.alternating,
        )
        self.previous = None if previous is None else as_checkpoint(previous)
        self.start, self.whole = 0, True
        if self.previous is None:
            view.load(self.history, ChainedIds(self.history))
            if view.synthetic:
                read_notes_back(view)
        else:
            self.start, self.whole = _resume(view, self.history, self.previous)
        if given.usage is not None:
            self._calibrate(view, given.usage)
        self.numbers = self._message_numbers(given.numbers)
        view.given_numbers = self._live_numbers(view, given.numbers is not None)
        self.run = CompactionRun(view, policy, started=started, notify=notify, abort=abort)

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
        view, plan = self.run.request.view, decision.plan
        encoded = encode_all(view.context_messages() if plan is None else plan.messages, self.format)
        cost = self.run.cost(decision)
        if self._repairs:
            decision = msgspec.structs.replace(decision, remarks=(*decision.remarks, _repair_remark(self._repairs)))
        return self.run.result(
            decision,
            messages=lambda: restore_objects(encoded, self.format, self._originals),
            partition=lambda: self._partition(decision),
            checkpoint=lambda: self.previous if plan is None else self._checkpoint(plan, decision, encoded, cost),
            round=view.checkpoint.carry.round + (plan is not None and plan.archives),
            format=self.format,
            cost=cost,
        )

    def _valid(self, messages: list[Message], alternating: bool) -> list[Message]:
        """Returns the messages with their notes apart, repaired if their wire format requires it."""
        separate = valid_input(messages, self.format, alternating=alternating)
        if separate is None:
            return repair_input(messages, self.format, self._repairs, alternating=alternating)
        return separate

    def _checkpoint(self, plan: Plan, decision: Decision, encoded: list[Json], cost: Cost | None) -> PrefixCheckpoint:
        """Returns everything the next call needs, as plain data."""
        view = plan.base
        shown = self._valid(decode_payloads(encoded, view.format), view.alternating)
        emptied = {index for index, message in plan.edited.items() if not message.parts}
        kept = [index for index in range(plan.cut, len(view.messages)) if index not in emptied]
        ids = tuple(view.ids[index] for index in kept)
        before, after = decision.tokens_before, decision.tokens_after
        checkpoint = checkpoint_of(plan, before, after, cost, previous=view.checkpoint.boundary)
        return PrefixCheckpoint(
            **msgspec.structs.asdict(checkpoint),
            lead=len(shown) - len(kept),
            shown=len(shown),
            shown_digest=ChainedIds(shown)[-1] if shown else "",
            kept=ids,
            numbers=tuple(view.given_numbers[index] for index in kept) if view.given_numbers else (),
        )

    def _partition(self, decision: Decision) -> Partition:
        """Returns the given messages, as events, by what became of them."""
        view, plan, start = self.run.request.view, decision.plan, self.start
        lead = [shown for shown in view.head if shown.source] if start and len(self.given) == len(self.history) else []
        events = self._given_events()
        if plan is None:
            return Partition([*map(self._head_event, lead), *events[start:]], [], [])
        gone = set(plan.archived)
        if self.history is self.given:
            kept = [index for index in range(start, len(events)) if index - start not in gone]
            archived = [start + index for index in plan.archived]
        else:
            kept, archived = self._trace_partition(gone)
        dropped = {shown.source for shown in plan.dropped}
        sources = list(trace_messages(self.history, self.given)) if self.history is not self.given else ()
        edited = [
            events[sources[start + index][0] if sources else start + index]
            for index in sorted(plan.edited)
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
        known = [*ChainedIds(self.history)[: self.start], *self.run.request.view.ids] if self.previous else ()
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


def _repair_remark(repairs: Sequence[str]) -> str:
    """Returns what was done to make the given messages valid, in one line."""
    shown, left = repairs[:_REPAIRS_SHOWN], len(repairs) - _REPAIRS_SHOWN
    return f"the messages were repaired: {'; '.join(shown)}" + (f"; and {left:,} more" if left > 0 else "")


def _resume(view: View, history: list[Message], previous: PrefixCheckpoint) -> tuple[int, bool]:
    """Loads the view as the previous checkpoint left it.

    Returns where its live messages start, and whether the list is the whole history.
    """
    start, ids, whole, edits = locate(history, previous)
    live = history[start:]
    if whole and edits:
        live = [apply_edits(message, edits.get(ids[index], ())) for index, message in enumerate(live)]
        previous = msgspec.structs.replace(previous, edits=edits)
    view.load(live, ids)
    head = [HeadMessage(item.kind, item.message, item.ref) for item in previous.head if item.message is not None]
    view.start_from(previous.boundary or START, previous, head)
    view.previously_kept = previous.carry.kept_until
    view.previously_seen = len(previous.kept)
    return start, whole
