"""Plan and Skip: what a strategy returns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Self

import msgspec

from ..errors import InvalidInput, Outcome
from ..messages import (
    FormatRules,
    Json,
    Message,
    Opaque,
    bound_parts,
    change,
    drop_parts,
    fold_edits,
    framed_message,
    is_framed,
    is_from_user,
    is_interrupted,
    normalize_for_wire,
    quote_system,
    strip_frame,
    to_json,
)
from ..tokens import Estimator
from ..tokens.estimators import TokenSums
from .checkpoint import HeadKind
from .view import HeadMessage, View

_ORDER = {"system": 0, "note": 1, "pin": 2, "preamble": 3, "turn": 4}
_NOTES_LAST = _ORDER | {"note": 5}


class Skip(msgspec.Struct, frozen=True):
    """No plan: the outcome and the reason."""

    outcome: Outcome
    why: str = ""
    remarks: tuple[str, ...] = ()


class Plan(msgspec.Struct, frozen=True, dict=True):
    """The next context: a head, then the live messages of `base` from `cut` on, edited.

    A strategy starts from `request.plan`, the context as it is. Each method returns the plan after one more change,
    and counts messages as the plan's own `view` does. What stays keeps its order. System messages and pins always
    stay, and so does the newest user message, unless it is archived with its reply. Tool results that no reply has
    followed stay whole, with their calls.
    """

    base: View
    cut: int = 0
    """Live messages of the base before this index are archived, unless the head shows them."""
    head: tuple[HeadMessage, ...] = ()
    moved: frozenset[int] = frozenset()
    """Live messages of the base that were moved into the head."""
    edited: Mapping[int, Message] = {}
    """Live messages of the base with their edits; one left without parts is not shown."""
    changed: bool = False
    notes_last: bool = False
    """Notes follow the rest of the head instead of preceding it."""
    keeps_unread: bool = True
    """Whether results that no reply has followed stay: not where they do not even fit shortened."""
    answered: HeadMessage | None = None
    """The newest user message, where it is archived with its reply."""
    summary: str | None = None
    """Text that the summarizer wrote, passed back to it in the next round."""
    ledger: Callable[[], Json] | None = None
    """Returns the notes on all archived messages, for the next round; None keeps the earlier ones."""
    state: Json | None = None
    """State written by the summarizer, encoded by the summaries package."""
    memory: Json | None = None
    """Memory block, encoded by the summaries package."""
    target: int | None = None
    """Token limit of the result, where always-kept messages leave too little of the strategy's own target."""
    strategies: tuple[str, ...] = ()
    """Names of the strategies that made the plan, one for each stage."""
    estimator: Estimator | None = None
    """Counts the tokens that the result reports as saved; None is the session's own count."""
    fallback: str = ""
    """Strategy used because the summarizer failed."""
    remarks: tuple[str, ...] = ()
    """Remarks for the user on how the plan was made."""
    measured: dict[int, tuple[Message, int]] = {}
    """Units of edited messages by index in the base, shared by all plans that follow from one another."""

    @classmethod
    def of(cls, view: View) -> Self:
        """Returns the plan that leaves this context as it is."""
        return cls(view, head=tuple(view.head), summary=view.checkpoint.summary, measured={})

    # -- the next context ---------------------------------------------------------------------------

    @cached_property
    def view(self) -> View:
        """The next context as a view; only messages that are new or edited in it are measured."""
        if not self.changed:
            return self.base
        measure = self.base.token_sums.estimator.measure
        for index, message in self.edited.items():
            if (known := self.measured.get(index)) is None or known[0] is not message:
                self.measured[index] = message, measure(message) if message.parts else 0
        units = {index: self.measured[index][1] for index in self.edited}
        return self.base.planned(self.cut, self.head, self.edited, units)

    @property
    def rules(self) -> FormatRules:
        """Rules of the context's wire format."""
        return self.base.rules

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """The next context as it would be sent."""
        live = self.view.messages
        if any(not message.parts for message in self.edited.values()):
            emptied = {index - self.cut for index, message in self.edited.items() if not message.parts}
            live = [message for index, message in enumerate(live) if index not in emptied]
        return tuple(normalize_for_wire([*(shown.message for shown in self.head), *live], self.rules))

    @cached_property
    def tokens(self) -> int:
        """Size of the messages as they would be sent."""
        return self.view.tokens_as_sent(self.messages)

    @property
    def strategy(self) -> str:
        """Names of the strategies that made the plan, joined by +."""
        return "+".join(self.strategies)

    # -- compared with the base -----------------------------------------------------------------------

    @cached_property
    def _sources(self) -> set[str | None]:
        return {shown.source for shown in self.head}

    @cached_property
    def kept(self) -> frozenset[int]:
        """Live messages of the base that the head shows."""
        return frozenset(index for index in self.moved if self.base.ids[index] in self._sources)

    @cached_property
    def archived(self) -> tuple[int, ...]:
        """Live messages of the base that are no longer visible."""
        kept = self.kept
        gone = [index for index in range(self.cut) if index not in kept] if kept else list(range(self.cut))
        gone += [index for index in sorted(self.moved) if index >= self.cut and index not in kept]
        return tuple(gone)

    @cached_property
    def superseded(self) -> frozenset[int]:
        """Those of `archived` that are notes and summaries, replaced by newer ones."""
        return frozenset(self.base.synthetic).intersection(self.archived)

    @cached_property
    def dropped(self) -> tuple[HeadMessage, ...]:
        """Events in the base's head that are no longer visible."""
        return tuple(shown for shown in self.base.head if shown.source and shown.source not in self._sources)

    @property
    def archives(self) -> bool:
        """Whether anything is archived: system messages before the cut stay, and notes are only replaced."""
        return bool(self.dropped) or len(self.superseded) < len(self.archived)

    @property
    def interrupts_reasoning(self) -> bool:
        """Whether reasoning is removed from what is kept of a turn in which the model still calls tools."""
        if not (self.edited and self.base.links.is_unfinished):
            return False
        start = max(self.cut, self.base.turns[-1] if self.base.turns else 0)
        return any(
            len(bound_parts(message, self.rules)) < len(bound_parts(self.base.messages[index], self.rules))
            for index, message in self.edited.items()
            if index >= start
        )

    @property
    def pins(self) -> set[str]:
        """The base's pins that are still shown."""
        if not self.base.pins:
            return set()
        gone = {shown.source for shown in self.dropped}
        gone.update(self.base.ids[index] for index, message in self.edited.items() if not message.parts)
        return self.base.pins.difference(gone - self._sources)

    # -- what a cut keeps -----------------------------------------------------------------------------

    def kept_before(self, cut: int, *, newest: bool = True) -> list[int]:
        """Indices before this cut that are kept: system messages, notes, pins and, by default, the newest turn's."""
        view = self.view
        kept = set(view.systems_before(cut))
        kept.update(index for index in view.synthetic if index < cut)
        if view.pins:
            kept.update(index for index in range(cut) if view.ids[index] in view.pins)
        if newest and isinstance(turn := self.newest_turn(cut), int):
            kept.add(turn)
        return sorted(kept)

    def stays_in_head(self, shown: HeadMessage, cut: int) -> bool:
        """Whether this head message survives the cut: a split turn's only until the next turn, a pin until unpinned."""
        view = self.view
        if shown.kind == "pin" and shown.source in view.events and shown.source not in view.pins:
            return False
        return not self._is_past_turn(shown, cut) or shown.source in view.pins

    def _is_past_turn(self, shown: HeadMessage, cut: int) -> bool:
        """Whether this is the user message of a split turn that this cut archives."""
        return shown.kind == "turn" and bool(cut and self.view.turns) and cut >= self.view.turns[0]

    def newest_turn(self, cut: int) -> HeadMessage | int | None:
        """The newest user message if it lies before this cut: its live index, or its head message."""
        turns = self.view.turns
        if turns:
            return turns[-1] if cut > turns[-1] else None
        return self.view.split_turn

    def is_answered(self, cut: int) -> bool:
        """Whether this cut archives the final reply to the newest user message."""
        messages = self.view.messages
        if cut < len(messages) or (newest := self.newest_turn(cut)) is None:
            return False
        since = messages[newest + 1 :] if isinstance(newest, int) else messages
        last = next((message for message in reversed(since) if message.role != "system"), None)
        if last is None or last.role != "assistant" or is_interrupted(last):
            return False
        return not last.calls and bool(last.text.strip())

    @cached_property
    def last_cut(self) -> int:
        """The latest cut that archives no result which the model has not read yet: right before its call."""
        return self.view.links.cut_at_or_before(min(self.unread)[0]) if self.unread else len(self.view.messages)

    @cached_property
    def unread(self) -> frozenset[tuple[int, int]]:
        """Message and part of the results that no reply has followed."""
        return frozenset(self.view.unread_results if self.keeps_unread else ())

    @cached_property
    def unread_tokens(self) -> int:
        """Tokens of what stays after every cut: unread results, with their calls and what follows them."""
        sums = self.view.token_sums
        return sums.estimator.tokens(sums.cumulative[-1] - sums.cumulative[self.last_cut])

    def fixed_tokens(self, extra: int = 0) -> int:
        """Tokens of what stays whatever is archived, and `extra` units; without notes, which may be rewritten."""
        view, notes = self.view, 0
        notes += sum(size for shown, size in zip(view.head, view.token_sums.head, strict=True) if shown.kind == "note")
        ends = view.token_sums.cumulative
        notes += sum(ends[index + 1] - ends[index] for index in view.synthetic)
        return self.tokens_after_cut(len(view.messages), extra - notes)

    def tokens_after_cut(self, cut: int, extra: int = 0, sums: TokenSums | None = None) -> int:
        """Tokens of the context that this cut would leave, plus `extra` units of notes. Constant work for each cut."""
        cut = min(cut, self.last_cut)
        head = (index for index, shown in enumerate(self.view.head) if self.stays_in_head(shown, cut))
        return self.view.tokens_from(cut, self.kept_before(cut), head, extra, sums)

    # -- changes --------------------------------------------------------------------------------------

    def archive(
        self,
        before: int,
        keep: Collection[int | str | None] = (),
        *,
        synthetic_first: bool = False,
        notes_last: bool = False,
    ) -> Plan:
        """Archives the live messages before an index; what always stays moves into the head.

        A cut after unread results moves back to their calls.

        `keep` names others that stay: indices before the cut, and sources of head messages. `synthetic_first` also
        moves synthetic events after the cut into the head; `notes_last` places notes after the rest of the head.
        """
        view, keep = self.view, frozenset(keep)
        indices = [index for index in keep if isinstance(index, int)]
        self._require_messages([before - 1] if before > 0 else [], before)
        if any(not 0 <= index < before for index in indices):
            raise InvalidInput(
                f"A plan that archives what precedes message {before} cannot keep a later one before it."
            )
        if before > self.last_cut:
            before = self.last_cut
            keep, indices = (
                keep.difference(range(before, max(indices, default=0) + 1)),
                [i for i in indices if i < before],
            )
        later = self._synthetic_after(before) if synthetic_first else []
        if not (before or later):
            return self
        kinds: dict[int, HeadKind] = {index: "note" for index in view.synthetic if index < before}
        kinds |= {index: "pin" if view.ids[index] in view.pins else "preamble" for index in indices}
        systems, newest = set(view.systems), self.newest_turn(before)
        for index in self.kept_before(before):
            if index in systems:
                kinds[index] = "system"
            elif index == newest:
                kinds[index] = "turn"
            else:
                kinds.setdefault(index, "pin")
        kinds |= dict.fromkeys(later, "note")
        plan = self._change(start=before)
        head = [
            self._as_kept(shown, before, keep)
            for shown in plan.head
            if shown.source in keep or self.stays_in_head(shown, before)
        ]
        order = _NOTES_LAST if notes_last or self.notes_last else _ORDER
        for shown in sorted((plan._head_message(*item) for item in sorted(kinds.items())), key=_rank(order)):
            head.insert(_place(head, shown, order), shown)
        plan = plan._change({index: dict.fromkeys(range(len(plan._message(index).parts))) for index in later})
        cut = self.cut + before
        return msgspec.structs.replace(
            plan,
            cut=cut,
            head=tuple(head),
            moved=self.moved.union(self.cut + index for index in kinds),
            edited={index: message for index, message in plan.edited.items() if index >= cut},
            notes_last=notes_last or self.notes_last,
        )

    def edit(self, texts: Mapping[int, Mapping[int, str | None]], *, unread: bool = False) -> Plan:
        """Gives parts of live messages another text, or drops those given as None: by message and part.

        Messages that a later `archive` moves into the head are shown edited. Unread results stay whole, unless
        `unread`.
        """
        self._require_messages(texts)
        if not unread and any((index, part) in self.unread for index, parts in texts.items() for part in parts):
            whole = self.unread
            kept = {
                index: {p: text for p, text in parts.items() if (index, p) not in whole}
                for index, parts in texts.items()
            }
            texts = {index: parts for index, parts in kept.items() if parts}
        return self._change(texts) if texts else self

    def rewrite_notes(self, shorten: Callable[[Message], Message]) -> Plan:
        """Shows the notes of the head in another form: each keeps its place and the event that it shows."""
        plan = self._change()
        head = (
            HeadMessage(shown.kind, shorten(shown.message), shown.source) if shown.kind == "note" else shown
            for shown in plan.head
        )
        return msgspec.structs.replace(plan, head=tuple(head))

    def show(self, notes: Iterable[Message], summary: str | None = None) -> Plan:
        """Replaces the notes in the head; the new ones take the place of the old.

        `summary` is the text of the summarizer among them.
        """
        plan = self._change()
        head = [shown for shown in plan.head if shown.kind != "note"]
        new = [HeadMessage("note", note) for note in notes]
        if self.answered is not None and not new:  # nothing else of its turn would be left
            head.insert(_place(head, self.answered, _ORDER), self.answered)
        old = next((place for place, shown in enumerate(plan.head) if shown.kind == "note"), None)
        if self.notes_last:
            old = len(head)
        elif old is None:
            old = _place(head, HeadMessage("note", Message("user", ())), _ORDER)
        return msgspec.structs.replace(
            plan, head=(*head[:old], *new, *head[old:]), summary=summary, answered=self.answered if new else None
        )

    def drop(self, sources: Collection[str | None], note: Message | None = None) -> Plan:
        """Drops head messages, given by the ids of their events; a note takes the place of the first."""
        if note is None and self._sources.isdisjoint(sources):
            return self
        plan = self._change()
        head = [shown for shown in plan.head if shown.source not in sources]
        if note is not None:
            new = HeadMessage("note", note)
            first = next((at for at, shown in enumerate(plan.head) if shown.source in sources), None)
            head.insert(_place(head, new, _ORDER) if first is None else first, new)
        return msgspec.structs.replace(plan, head=tuple(head))

    def archive_answered(self) -> Plan:
        """Archives the newest user message with its reply: alone after notes it would look like an open request."""
        turn = next((shown for shown in self.head if shown.kind == "turn"), None)
        if turn is None:
            return self
        pinned = (HeadMessage("pin", turn.message, turn.source),) if turn.source in self.base.pins else ()
        place = self.head.index(turn)
        return msgspec.structs.replace(
            self._change(), head=(*self.head[:place], *pinned, *self.head[place + 1 :]), answered=turn
        )

    def remarked(self, *remarks: str) -> Plan:
        """Adds remarks."""
        return msgspec.structs.replace(self, remarks=(*self.remarks, *remarks))

    def made_by(
        self,
        strategy: str,
        remarks: Iterable[str] = (),
        *,
        estimator: Estimator | None = None,
        after: Plan | None = None,
    ) -> Plan:
        """Adds the name of a strategy and its remarks; with `after`, in place of those added since that plan."""
        before = after or self
        return msgspec.structs.replace(
            self,
            strategies=(*before.strategies, strategy),
            remarks=(*before.remarks, *remarks),
            estimator=self.estimator or estimator,
        )

    def _require_messages(self, indices: Iterable[int], cut: int = 0) -> None:
        count = len(self.base.messages) - self.cut
        if cut < 0 or not all(0 <= index < count for index in indices):
            raise InvalidInput(f"The plan refers to messages that do not exist: there are {count}.")

    def _change(self, texts: Mapping[int, Mapping[int, str | None]] = {}, start: int = 0) -> Plan:
        """Returns the plan with these texts. The first change drops reasoning: its signature covers all before it.

        What lies before `start` is about to be archived.
        """
        changes, head = dict(texts), self.head
        if not self.changed and self.rules.binds_reasoning:
            head = tuple(_without_reasoning(shown, self.rules) for shown in head)
            for index, message in enumerate(islice(self.base.messages, start, None), start):
                if bound := bound_parts(message, self.rules):
                    changes[index] = {**changes.get(index, {}), **dict.fromkeys(bound)}
        if self.changed and not changes:
            return self
        edited = dict(self.edited)
        for index, parts in changes.items():
            edited[self.cut + index] = change(self._message(index), parts)
        return msgspec.structs.replace(self, head=head, edited=edited, changed=True)

    def _message(self, index: int) -> Message:
        """Returns a live message as it is shown."""
        return self.edited.get(self.cut + index) or self.base.messages[self.cut + index]

    def _synthetic_after(self, cut: int) -> list[int]:
        """Returns the synthetic events of a session after a cut; one with a tool call or result stays in its place."""
        view = self.view
        later = (index for index in view.synthetic if index >= cut and view.events)
        found = ((index, view.messages[index]) for index in later)
        return [index for index, message in found if message.parts and not (message.calls or message.results)]

    def _as_kept(self, shown: HeadMessage, cut: int, keep: Collection[int | str | None]) -> HeadMessage:
        """Returns a head message as what it is after this cut: a pinned turn that is past is only a pin."""
        if shown.source in keep:
            return HeadMessage("preamble", shown.message, shown.source)
        return HeadMessage("pin", shown.message, shown.source) if self._is_past_turn(shown, cut) else shown

    def _head_message(self, index: int, kind: HeadKind) -> HeadMessage:
        """Returns a live message for the head; a pin or system message is quoted where its role is not allowed."""
        message, source = self._message(index), self.base.ids[self.cut + index]
        if (bound := bound_parts(message, self.rules)) or message.edits:
            message = fold_edits(drop_parts(message, bound))
        if kind == "system" and message.role == "system" and self.rules.restricts_system:
            message = quote_system(message)
        if kind == "pin" and not is_from_user(message):
            quoted = strip_frame(message) if is_framed(message) else message.text
            quoted = quoted or "\n".join(result.text for result in message.results)
            quoted = quoted or "\n".join(f"{call.name}({call.arguments_json})" for call in message.calls)
            quoted = quoted or "\n".join(to_json(part.data) for part in message.parts if isinstance(part, Opaque))
            message = framed_message(f"Pinned, from earlier ({message.role}):\n{quoted}")
        return HeadMessage(kind, message, source)


def _rank(order: Mapping[str, int]) -> Callable[[HeadMessage], int]:
    """Returns the order in the head: a quoted system message follows the notes, a provider's own summary must lead."""
    return lambda shown: order["pin" if shown.kind == "system" and shown.message.role == "user" else shown.kind]


def _place(head: Sequence[HeadMessage], shown: HeadMessage, order: Mapping[str, int]) -> int:
    """Returns where a new message goes in the head, whose own order stays: behind the last that it must follow."""
    rank = _rank(order)
    place = len(head)
    while place and rank(head[place - 1]) > rank(shown):
        place -= 1
    return place


def _without_reasoning(shown: HeadMessage, rules: FormatRules) -> HeadMessage:
    bound = bound_parts(shown.message, rules)
    return HeadMessage(shown.kind, fold_edits(drop_parts(shown.message, bound)), shown.source) if bound else shown
