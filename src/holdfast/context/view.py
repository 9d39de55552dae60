"""The view: the fold from events to context, in constant work per append."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from itertools import chain, islice, pairwise

import msgspec

from ..messages import (
    ACKNOWLEDGED,
    COMMON,
    CONTINUE,
    OPENING,
    CallIdAssigner,
    FormatRules,
    Json,
    Links,
    Message,
    Role,
    ToolCall,
    ToolResult,
    apply_edits,
    bound_parts,
    can_be_first,
    drop_parts,
    drop_rejected_parts,
    filler_between,
    has_ends,
    is_filler,
    is_foreign_summary,
    is_framed,
    is_from_user,
    is_note,
    is_system_message,
    is_vendor_summary,
    normalize_for_wire,
    opening_pair,
    possible_notes,
    rules_for,
    system_text,
)
from ..messages.links import Pairing
from ..messages.payload import INTERRUPTED_TEXT
from ..tokens import Calibration, Estimator, Usage
from ..tokens.estimators import TokenSums
from ..tokens.window import WindowFacts
from .checkpoint import Checkpoint, HeadKind
from .events import Event, EventKind, message_in
from .references import READ_TOOL

SYNTHETIC_ID_SUFFIX = "~"
"""Suffix of the id of a closing result that only the view adds: the log has no event for it."""


_FILLERS: dict[Role, Message] = {"user": CONTINUE, "assistant": ACKNOWLEDGED}


class HeadMessage(msgspec.Struct, frozen=True):
    """A message shown before the live ones; `source` is the id of its event, if it has one."""

    kind: HeadKind
    message: Message
    source: str | None = None


class View:
    """The context of one lane: head, live messages, and the running sums that triggers read."""

    def __init__(
        self,
        estimator: Estimator,
        *,
        format: str = COMMON,
        prompt_overhead: Sequence[str | Message] = (),
        lane: str | None = None,
        calibrated: bool = False,
        alternating: bool = False,
    ) -> None:
        self.lane = lane
        self.format = format
        self.prompt_overhead = tuple(prompt_overhead)
        """System prompt and tool definitions: sent with the messages, and counted."""
        self.calibrated = calibrated
        self.alternating = alternating
        """Whether the model's chat template refuses two messages of one role in a row."""
        self.checkpoint_id: str | None = None
        self.checkpoint_seq = 0
        self.undone = False
        """True after an undo, until the next user message."""
        self.checkpoint = Checkpoint()
        self.calibration = Calibration()
        self._has_report = False
        """Whether a reply since the checkpoint had a report of its size."""
        self.reported_seq = 0
        """Seq of the reply whose reported size counts; 0 if the size is an estimate."""
        self.usage_remark = ""
        """Why the provider's newest report does not count; empty if it does."""
        self._reporting_model = ""
        """The model that reported last: another one counts otherwise."""
        self.window_facts = WindowFacts()
        """What the session knows about the window of its model."""
        self.prompt_units: int | None = None
        """Units of the prompt and the tools that were set since the session was created; None if it has those."""
        self.head: list[HeadMessage] = []
        self.ids: Sequence[str] = []
        self.given_numbers: Sequence[int] = ()
        """Citation numbers passed in with the messages; empty if they are counted or come from events."""
        self.events: dict[str, Event] = {}
        """Visible events by id, in the view of a session."""
        self.hidden: dict[str, int] = {}
        """Seq of events after the boundary that edits of the checkpoint hide, by id."""
        self.messages: list[Message] = []
        self.turns: list[int] = []
        """Indices of the user's own messages."""
        self.synthetic: list[int] = []
        """Indices of notes and summaries: kept by every cut, counted by no window."""
        self.systems: list[int] = []
        """Indices of system messages: kept by every cut, counted by no window."""
        self.fillers: list[int] = []
        """Indices of messages added for a wire format or by a program: archived with their neighbours, not counted."""
        self.previously_kept = 0
        """Number of live messages that the last compaction already kept."""
        self.previously_seen = 0
        """Number of live messages that were there when the last compaction, or pruning, was made."""
        self.pins: set[str] = set()
        self.policy: Json | None = None
        """The newest policy that was set for the session; None if it has the one it was created with."""
        self.version = 0
        self.failures = 0
        """Consecutive failed compactions since the last successful one."""
        self.retry_at = 0.0
        """Time at which the circuit breaker allows the next automatic compaction."""
        self.attempted = False
        """True after a failed compaction, until the next message."""
        self.token_sums = TokenSums(estimator, self.prompt_overhead)
        self._other_sums: dict[int, TokenSums] = {}
        self._links: Links | None = None
        self._inserted: Counter[Role] = Counter()
        """Number of messages that the format requires in between, by role."""
        self._assign_ids = CallIdAssigner()

    @cached_property
    def _pairing(self) -> Pairing:
        return Pairing()

    # -- building -----------------------------------------------------------------------------------

    def load(self, messages: list[Message], ids: Sequence[str]) -> None:
        """Loads repaired messages at once; recognises notes and summaries by their frame or their opening."""
        self.messages, self.ids = messages, ids
        self.token_sums.load(messages)
        self._count_inserted()
        roles = [message.role for message in messages]
        users = [index for index, role in enumerate(roles) if role == "user"]
        named = [index for index, role in enumerate(roles) if role == "system"] if "system" in roles else []
        possible = possible_notes(messages)
        asked = [index for index in possible if roles[index] == "user"]
        framed = [index for index in asked if is_framed(messages[index])]
        self.systems = sorted(index for index in (*named, *framed) if is_system_message(messages[index]))
        replied = (index for index, role in enumerate(roles) if role == "assistant") if self.alternating else ()
        self.fillers = sorted(index for index in (*framed, *replied) if is_filler(messages[index]))
        notes = set(framed).union(index for index in asked if is_foreign_summary(messages[index]))
        self.synthetic = sorted(notes.difference(self.systems, self.fillers))
        notes.update(pair := opening_pair(messages))
        others = notes.union(index for index in asked if not is_from_user(messages[index]))
        self.turns = [index for index in users if index not in others] if others else users
        found = [i for i in possible if messages[i].raw is not None and is_vendor_summary(messages[i])]
        spoken = self.turns[0] if self.turns else len(messages)  # a reply to the user may look like a note, and is none
        replies = [index for index, role in enumerate(roles[:spoken]) if role == "assistant"]
        found += [index for index in (*named, *replies) if is_note(messages[index])]
        self.synthetic = sorted({*self.synthetic, *found, *pair})

    def _count_inserted(self) -> None:
        rules = self.rules
        if rules.calls_follow_user or rules.alternates:
            fillers = (filler_between(before, after, rules) for before, after in pairwise(self.messages))
            self._inserted = Counter(filler.role for filler in fillers if filler is not None)

    def planned(
        self, cut: int, head: Iterable[HeadMessage], edited: Mapping[int, Message], units: Mapping[int, int]
    ) -> View:
        """Returns the view of a next context, with this view's classification and sizes of its messages.

        `edited` are messages that change, by index; `units` their new sizes.
        """
        view = copy(self)
        view.head, view.messages, view.ids = list(head), self.messages[cut:], self.ids[cut:]
        for index, message in edited.items():
            view.messages[index - cut] = message
        view.given_numbers = self.numbers[cut:]
        view.previously_kept = max(0, self.previously_kept - cut)
        view.previously_seen = max(0, self.previously_seen - cut)
        for name in ("synthetic", "systems", "fillers", "turns"):
            setattr(view, name, [index - cut for index in getattr(self, name) if index >= cut])
        known = {id(shown.message): size for shown, size in zip(self.head, self.token_sums.head, strict=True)}
        view.token_sums = self.token_sums.sliced(cut, units)
        view.token_sums.measure_head([shown.message for shown in view.head], known)
        view._other_sums, view._links = {}, None
        view._count_inserted()
        view.calibration = self.calibration.reset_size()  # the report was of another context, now as once it is stored
        carry = self.checkpoint.carry
        carry = msgspec.structs.replace(carry, before_boundary=carry.before_boundary + cut)
        view.checkpoint = msgspec.structs.replace(self.checkpoint, carry=carry)
        return view

    def snapshot(self) -> View:
        """Returns a copy that later appends do not change, for use while a model is called."""
        duplicate = copy(self)
        duplicate._inserted = self._inserted.copy()
        for name in ("head", "messages", "turns", "synthetic", "systems", "fillers"):
            setattr(duplicate, name, list(getattr(self, name)))
        duplicate.ids = self.ids[:] if isinstance(self.ids, list) else self.ids
        duplicate.events, duplicate.hidden = dict(self.events), dict(self.hidden)
        duplicate.token_sums = self.token_sums.snapshot()
        duplicate._other_sums, duplicate._links = {}, self.links.copy()
        return duplicate

    def start_from(
        self, checkpoint_id: str | None, checkpoint: Checkpoint, head: Iterable[HeadMessage], seq: int = 0
    ) -> None:
        """Starts from a checkpoint; of the events before its boundary only those in its head are read."""
        self.checkpoint_id, self.checkpoint, self.checkpoint_seq = checkpoint_id, checkpoint, seq
        self.head = list(head)
        self.token_sums.measure_head([shown.message for shown in self.head])
        carry = checkpoint.carry
        self.pins, self.policy = set(carry.pins), carry.policy
        self.window_facts = carry.window or self.window_facts
        if carry.counter == self.token_sums.estimator.name:
            self._set_prompt(carry.prompt)
        if self.calibrated and carry.counter == self.token_sums.estimator.name:
            self.calibration = carry.calibration
        if self.format == COMMON and carry.format:
            self.format = carry.format

    def append(self, event: Event) -> None:
        """Applies one event of this lane; unknown kinds are ignored."""
        self.version = max(self.version, event.seq)
        if event.kind == EventKind.PIN:
            self._pin(event)
        elif event.kind == EventKind.POLICY:
            self.policy = event.body.get("policy", self.policy)
            if "window" in event.body and event.seq > self.checkpoint_seq:  # an earlier one is in the checkpoint
                self._set_window_facts(msgspec.convert(event.body["window"], WindowFacts))
            if "prompt" in event.body and event.seq > self.checkpoint_seq:
                if event.body.get("counter") == self.token_sums.estimator.name:
                    self._set_prompt(event.body["prompt"])
                self.calibration = self.calibration.as_ratio()
        elif event.kind == EventKind.UNDO:
            self.undone = event.seq > self.checkpoint_seq
        elif event.kind == EventKind.ATTEMPT and event.seq > self.checkpoint_seq and event.lane == self.lane:
            self.failures, self.retry_at = int(event.body["failures"]), float(event.body["retry_at"])
            self.attempted = True
        elif event.kind == EventKind.COMPACTION:
            self.failures, self.retry_at, self.attempted = 0, 0.0, False
        elif event.kind == EventKind.MESSAGE:
            self._append_message(event)

    def _pin(self, event: Event) -> None:
        changed = {str(event.body.get("event"))}
        self.pins = self.pins | changed if event.body.get("pinned", True) else self.pins - changed

    def _append_message(self, event: Event) -> None:
        body = event.body
        if self.format == COMMON and body.get("format"):
            self.format = body["format"]
        rules = self.rules
        decoded = message_in(event)
        message = drop_rejected_parts(self._assign_ids(decoded, event.seq), rules)
        if message is None:
            return
        self._close_pending_calls(message, event.id)
        shown = self._pairing.accept(message, rules)
        if shown is None:
            return
        if shown.role != message.role:
            self._close_pending_calls(shown, event.id)
        if edits := self.checkpoint.edits.get(event.id):
            shown = apply_edits(shown, edits)
        outdated = body.get("made_on", self.checkpoint_id or "") != (self.checkpoint_id or "")
        unbound = event.seq < self.checkpoint_seq or outdated  # it was made for another context
        if unbound and (bound := bound_parts(shown, rules)):
            shown = drop_parts(shown, bound)
        if not shown.parts and message.parts:
            self.hidden[event.id] = event.seq
            return
        units = None if shown.edits else body.get("units")
        counted = units if body.get("counter") == self.token_sums.estimator.name else None
        self.events[event.id] = event
        restored = "source" in body  # a restored copy may be archived again
        filler = restored or bool(body.get("aside")) or self._is_filler(shown)
        note = is_vendor_summary(shown) or bool(body.get("synthetic") and not restored)
        note = note or (not filler and self._is_note(shown))
        self._push(shown, event.id, counted, synthetic=note, filler=filler)
        self.previously_kept += event.seq <= self.checkpoint.carry.kept_until
        self.previously_seen += event.seq <= self.checkpoint_seq
        self.attempted = False
        if self.turns and self.turns[-1] == len(self.messages) - 1:
            self.undone = False
        if shown.role == "assistant" and event.seq > self.checkpoint_seq:
            self.window_facts = self.window_facts.after_reply()
        if self.calibrated and body.get("usage") is not None and not body.get("foreign_usage"):
            self._learn(event, msgspec.convert(body["usage"], Usage))

    def _learn(self, event: Event, usage: Usage) -> None:
        """Learns from a report that was made on the checkpoint in force.

        A reply that does not name the checkpoint of its request may have been requested before the compaction: the
        first report since then is ignored if it is nearer to the size before than to the estimate.
        """
        size, made_on = self.token_sums.estimator.tokens(self.units()), event.body.get("made_on")
        model = event.body.get("model") or self._reporting_model
        if model != self._reporting_model and self._reporting_model:
            self.calibration = self.calibration.as_ratio()
        self._reporting_model = model
        if made_on is None:
            if event.epoch != self.checkpoint_id:
                return
            made_here = self.checkpoint.parameters is not None  # not by another tool, whose sizes do not compare
            first, self._has_report = not self._has_report and made_here, True
            if (
                first
                and usage.total
                and _is_nearer(usage.total, self.checkpoint.tokens_before, self.calibration.tokens(size))
            ):
                return
        elif made_on != (self.checkpoint_id or ""):
            return
        self._has_report = True
        continues = len(self.messages) > 1 and self.messages[-2].role == "assistant"  # one reply, in several messages
        why = self.calibration.why_implausible(size, usage, same_reply=continues)
        self.usage_remark = f"a report of the provider is ignored: {why}" if why else ""
        self.calibration = self.calibration.learn(size, usage, same_reply=continues)
        self.reported_seq = self.reported_seq if why else event.seq

    def _set_prompt(self, units: int | None) -> None:
        """Counts another system prompt and other tools than those that the session was created with."""
        if units is not None:
            self.prompt_units = self.token_sums.overhead = units

    def _set_window_facts(self, facts: WindowFacts) -> None:
        """Takes new facts. A report of another model, or one that an overflow disproves, is no size any more."""
        before, self.window_facts = self.window_facts, facts
        if facts.model != before.model:
            self.calibration = self.calibration.as_ratio()
        elif facts.learned is not None and facts.learned != before.learned and self.tokens < facts.learned:
            self.usage_remark = f"the provider reported {self.tokens:,} tokens, and refused more than {facts.learned:,}"
            self.calibration = self.calibration.as_ratio()

    def _is_filler(self, message: Message) -> bool:
        """Whether a format required this message; where roles need not alternate, the assistant's words are its own."""
        return is_filler(message) and (self.alternating or message.role == "user")

    def _is_note(self, message: Message) -> bool:
        """Whether this appended message is a note; the message before it in an opening pair becomes one with it."""
        if not self.head and self.turns in ([], [len(self.messages) - 1]) and message.role == "assistant":
            pair = opening_pair([*self.messages, message])
            if pair and pair[-1] == len(self.messages):
                self.turns.clear()
                self.synthetic = sorted({*self.synthetic, pair[0]})
                return True
        if message.role == "assistant" and self.turns:
            return False  # a reply to the user may look like a note
        return is_note(message) and not is_system_message(message)

    def _close_pending_calls(self, message: Message, event_id: str) -> None:
        """Closes what the log left open before this message."""
        rules = self.rules
        for number, closing in enumerate(self._pairing.closings(message, rules)):
            self._pairing.accept(closing, rules)
            name = f"{event_id}{f'.{number}' if number else ''}{SYNTHETIC_ID_SUFFIX}"
            self._push(apply_edits(closing, self.checkpoint.edits.get(name, ())), name)

    def _push(
        self, message: Message, id: str, units: int | None = None, *, synthetic: bool = False, filler: bool = False
    ) -> None:
        index = len(self.messages)
        self.messages.append(message)
        self.ids.append(id)  # type: ignore[attr-defined]
        if index and (between := filler_between(self.messages[index - 1], message, self.rules)) is not None:
            self._inserted[between.role] += 1
        self.token_sums.add(message, units)
        if synthetic:
            self.synthetic.append(index)
        elif filler:
            self.fillers.append(index)
        elif is_system_message(message):
            self.systems.append(index)
        elif is_from_user(message):
            self.turns.append(index)

    # -- reading ------------------------------------------------------------------------------------

    @property
    def rules(self) -> FormatRules:
        """Rules of the context's wire format."""
        return self.rules_in(self.format)

    def rules_in(self, format: str) -> FormatRules:
        """Returns the rules of this context in another format; items have no roles that could alternate."""
        return rules_for(format, alternating=self.alternating and not rules_for(format).items)

    @property
    def links(self) -> Links:
        """What belongs together among the live messages; each message is read once."""
        if self._links is None:
            self._links = Links(self.messages)
        elif (known := self._links.count) < len(self.messages):
            self._links.extend(self.messages[known:])
        return self._links

    @property
    def unread_results(self) -> list[tuple[int, int]]:
        """Message and part of each tool result that no reply has followed: the model asked for it, and has not read it.

        Walks back to the newest reply.
        """
        found = []
        for index in range(len(self.messages) - 1, -1, -1):
            message = self.messages[index]
            if message.role == "assistant" and index not in self.fillers:
                break
            if message.role == "tool":
                parts = enumerate(message.parts)
                found += [(index, place) for place, part in parts if type(part) is ToolResult and _is_output(part)]
        return found

    @property
    def numbers(self) -> Sequence[int]:
        """Citation numbers of the messages; empty if they are counted. An added tool result has its call's number."""
        if self.given_numbers or not self.events:
            return self.given_numbers
        numbers, last = [], 0
        for id in self.ids:
            last = self.events[id].seq if id in self.events else last
            numbers.append(last)
        return numbers

    def token_sums_for(self, estimator: Estimator | None) -> TokenSums:
        """Returns the running sums of another estimator; each message is measured once."""
        if estimator is None or estimator is self.token_sums.estimator:
            return self.token_sums
        sums = self._other_sums.get(id(estimator))
        if sums is None:
            sums = self._other_sums[id(estimator)] = TokenSums(estimator, self.prompt_overhead)
            sums.measure_head([shown.message for shown in self.head])
        sums.catch_up(self.messages)
        return sums

    def units(self, sums: TokenSums | None = None) -> int:
        """Units of the whole context, with the messages that the wire format requires in between."""
        sums = sums or self.token_sums
        measure = sums.estimator.measure
        inserted = sum(count * measure(_FILLERS[role]) for role, count in self._inserted.items())
        return sums.units + inserted + (measure(OPENING) if self._needs_opening else 0)

    @property
    def _needs_opening(self) -> bool:
        if not self.rules.user_first:
            return False
        together = chain((shown.message for shown in self.head), self.messages)
        first = next((message for message in together if message.role != "system"), None)
        return bool(self.head or self.messages) and (first is None or not can_be_first(first))

    @property
    def tokens(self) -> int:
        """Size of the context: the provider's last reported usage plus an estimate of later messages."""
        return self.tokens_with(0)

    def tokens_with(self, units: int) -> int:
        """Size of the context with so many units more, or fewer if they are negative."""
        return self._tokens_of(self.units() + units)

    def tokens_from(
        self, cut: int, earlier: Iterable[int], head: Iterable[int], notes: int = 0, sums: TokenSums | None = None
    ) -> int:
        """Size of the live messages from an index on, with these earlier ones, these of the head, and units of notes.

        Constant work for each.
        """
        sums = sums or self.token_sums
        ends = sums.cumulative
        units = sums.overhead + notes + ends[-1] - ends[cut] + sum(sums.head[index] for index in head)
        return self._tokens_after(units + sum(ends[index + 1] - ends[index] for index in earlier), sums)

    def tokens_of_first(self, count: int) -> int:
        """Size of the prompt up to and with so many messages, those of the head included."""
        sums = self.token_sums
        live = max(0, count - len(sums.head))
        return self._tokens_of(sums.overhead + sum(sums.head[:count]) + sums.cumulative[live])

    def tokens_as_sent(self, messages: Iterable[Message]) -> int:
        """Size of these messages as a prompt of their own; those of this context are not measured again."""
        sums = self.token_sums
        ends, measure = sums.cumulative, sums.estimator.measure
        known = {id(shown.message): size for shown, size in zip(self.head, sums.head, strict=True)}
        known |= {id(message): ends[at + 1] - ends[at] for at, message in enumerate(self.messages)}
        units = sum(known[id(message)] if id(message) in known else measure(message) for message in messages)
        return self._tokens_after(sums.overhead + units)

    def tokens_edited(self, change: int) -> int:
        """Size of the next context if edits add so many units, or remove them."""
        return self._tokens_after(self.units() + change)

    def _tokens_after(self, units: int, sums: TokenSums | None = None) -> int:
        """Size of a next context, as it is estimated once it is stored: the last report was of this one."""
        return self._tokens_of(units, sums, self.calibration.reset_size())

    def _tokens_of(self, units: int, sums: TokenSums | None = None, calibration: Calibration | None = None) -> int:
        size, calibration = (sums or self.token_sums).estimator.tokens(units), calibration or self.calibration
        return calibration.tokens(size) if calibration.replies and sums in (None, self.token_sums) else size

    @property
    def overhead(self) -> int:
        """Tokens of what every request holds: system prompt, tools, and leading system messages."""
        sums = self.token_sums
        shown = sum(size for item, size in zip(self.head, sums.head, strict=True) if item.kind == "system")
        return self._estimate(sums.overhead + shown + sums.cumulative[self.leading_system_count])

    @property
    def note_tokens(self) -> int:
        """Estimate of the notes and summaries that are shown before and among the messages."""
        sums = self.token_sums
        shown = sum(size for item, size in zip(self.head, sums.head, strict=True) if item.kind == "note")
        live = sum(sums.cumulative[index + 1] - sums.cumulative[index] for index in self.synthetic)
        return self._estimate(shown + live)

    @property
    def appended_tokens(self) -> int | None:
        """Estimate of the messages appended since the last compaction; None before the first."""
        if self.checkpoint_id is None:
            return None
        cumulative = self.token_sums.cumulative
        return self._estimate(cumulative[-1] - cumulative[min(self.previously_seen, len(self.messages))])

    def _estimate(self, units: int) -> int:
        """Returns the tokens of a part of the context, by what reports have taught about the text."""
        size = self.token_sums.estimator.tokens(units)
        return round(self.calibration.ratio * size) if self.calibration.replies else size

    @property
    def has_recall(self) -> bool:
        """Whether the model can read archived messages: the tools of the prompt include `recall_read`."""
        return any(isinstance(part, str) and f'"{READ_TOOL}"' in part for part in self.prompt_overhead)

    @property
    def leading_system_count(self) -> int:
        """Number of leading system messages."""
        places = enumerate(self.systems)
        return next((count for count, index in places if count != index), len(self.systems))

    def systems_before(self, cut: int) -> list[int]:
        """Indices of the system messages before this cut that stay: of equal ones a leading one, else the newest."""
        leading = self.leading_system_count
        kept = list(range(min(leading, cut)))
        if cut <= leading or len(self.systems) == leading:
            return kept
        shown = [item.message for item in self.head if item.kind == "system"] + self.messages[:leading]
        texts = set(map(system_text, shown))
        for index in reversed(self.systems[leading:]):
            text = system_text(self.messages[index])
            if index < cut and text not in texts:
                kept.append(index)
            texts.add(text)
        return kept

    @property
    def split_turn(self) -> HeadMessage | None:
        """The user message of a turn whose first part is archived."""
        return next((shown for shown in self.head if shown.kind == "turn"), None)

    @property
    def turn_count(self) -> int:
        """Number of visible user messages; notes and fillers do not count."""
        return len(self.turns) + (self.split_turn is not None)

    @property
    def event_count(self) -> int:
        """Number of events that a window counts: neither notes nor system messages."""
        return self.events_from(0) + (self.split_turn is not None)

    def events_from(self, index: int) -> int:
        """Number of live messages from this index on that a window counts."""
        uncounted = (self.synthetic, self.systems, self.fillers)
        return len(self.messages) - index - sum(len(kind) - bisect_left(kind, index) for kind in uncounted)

    @property
    def pending_calls(self) -> tuple[ToolCall, ...]:
        """Tool calls without a result, as shown."""
        return tuple(self._pairing.pending.values())

    def closings(self, message: Message) -> list[Message]:
        """Returns the messages that close what is open and must be appended before this message."""
        return self._pairing.closings(message, self.rules)

    def turns_from(self, index: int) -> Iterator[int]:
        """Yields the indices of the live turns at or after this index with which a unit starts."""
        turns = islice(self.turns, bisect_left(self.turns, index), None)
        return filter(self.links.is_legal_cut, turns) if has_ends(self.format) else turns  # else each of them does

    def cut_before_turn(self, turn: int) -> int:
        """Returns the last legal cut at or before this turn: where calls have results alone, the turn itself."""
        return self.links.cut_at_or_before(turn) if has_ends(self.format) else turn

    def context_messages(self, count: int | None = None, format: str | None = None) -> list[Message]:
        """Returns the context, valid for its wire format: head, live messages, and messages the format requires.

        With an earlier `count` and `format`, returns the context of that time.
        """
        together = [item.message for item in self.head] + self.messages[:count]
        return normalize_for_wire(together, self.rules if format is None else self.rules_in(format))


def _is_output(result: ToolResult) -> bool:
    """Whether a tool gave this result: one that only closes an interrupted call holds nothing that was asked for."""
    return result.text != INTERRUPTED_TEXT


def _is_nearer(tokens: int, one: int, other: int) -> bool:
    return abs(tokens - one) < abs(tokens - other)
