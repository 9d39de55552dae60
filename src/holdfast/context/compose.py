"""Applying a plan to a request: the resulting head, edits and kept messages."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..messages import (
    FormatRules,
    Message,
    framed_message,
    is_bound,
    is_framed,
    normalize_for_wire,
    quote_system,
    strip_frame,
)
from .checkpoint import Edit, apply_edits, merge_edits
from .plan import Plan, Request
from .view import HeadMessage, View

_ORDER = {"system": 0, "note": 1, "pin": 2, "preamble": 3, "turn": 4}
_NOTES_LAST = _ORDER | {"note": 5}


class PlannedContext(msgspec.Struct, frozen=True):
    """The context that a plan would leave."""

    head: tuple[HeadMessage, ...]
    live: tuple[Message, ...]
    """Kept messages, edited; one left without parts is not shown."""
    edits: dict[int, tuple[Edit, ...]]
    """New edits by index in the request's live messages."""
    archived: tuple[int, ...]
    """Indices of the live messages that are no longer visible."""
    superseded: frozenset[int]
    """Those of `archived` that are notes and summaries, replaced by newer ones."""
    dropped: tuple[HeadMessage, ...]
    """Events in the old head but not in the new one."""
    messages: tuple[Message, ...]
    """The whole context as it would be sent."""

    @property
    def archives(self) -> bool:
        """Whether anything is archived: system messages before the cut stay, and notes are only replaced."""
        return bool(self.dropped) or not self.superseded.issuperset(self.archived)


def apply_plan(request: Request, plan: Plan) -> PlannedContext:
    """Returns the context that this plan would leave; changes nothing."""
    view, rules = request.view, request.rules
    kept = {index: "note" for index in view.synthetic if index < plan.cut}
    kept |= {index: "pin" if view.ids[index] in view.pins else "preamble" for index in plan.preamble}
    systems = set(view.systems)
    for index in request.kept_before(plan.cut, newest=not plan.archives_newest):
        if index in systems:
            kept[index] = "system"
        elif index == request.newest_turn(plan.cut) and not plan.archives_newest:
            kept[index] = "turn"
        else:
            kept.setdefault(index, "pin")
    moved = _moved_first(request, plan)
    kept |= dict.fromkeys(moved, "note")
    if plan.notes is not None:
        kept = {index: kind for index, kind in kept.items() if kind != "note"}

    changed = plan.cut > 0 or plan.notes is not None or bool(plan.edits)
    drops_reasoning = rules.binds_reasoning and changed
    old = [_with_new_kind(shown, request, plan) for shown in view.head if _stays_in_head(shown, request, plan)]
    new = [_head_message(request, plan, index, kind) for index, kind in sorted(kept.items())]
    if plan.notes is not None:
        new += [HeadMessage("note", message) for message in plan.notes]
    order = _NOTES_LAST if plan.notes_last else _ORDER
    head = sorted(old + new, key=lambda shown: order["pin" if _is_quoted_system(shown) else shown.kind])
    if drops_reasoning:
        head = [_without_reasoning(shown, rules) for shown in head]

    edits = {index: tuple(changes) for index, changes in plan.edits.items() if index >= plan.cut}
    if drops_reasoning:
        for index in range(plan.cut, len(view.messages)):
            reasoning = _reasoning_edits(view.messages[index], rules)
            if reasoning:
                edits[index] = tuple(sorted({*edits.get(index, ()), *reasoning}, key=lambda edit: edit.part))
    for index in moved:
        edits[index] = tuple(map(Edit, range(len(view.messages[index].parts))))
    live = view.messages[plan.cut :]
    for index, changes in edits.items():
        live[index - plan.cut] = apply_edits(view.messages[index], changes)
    emptied = {index - plan.cut for index in edits if not live[index - plan.cut].parts}
    visible_live = [message for index, message in enumerate(live) if index not in emptied]
    visible, synthetic = {shown.source for shown in head}, set(view.synthetic)
    gone = [index for index in (*range(plan.cut), *moved) if index not in kept] if kept or moved else range(plan.cut)
    return PlannedContext(
        head=tuple(head),
        live=tuple(live),
        edits=edits,
        archived=tuple(gone),
        superseded=frozenset(index for index in gone if index in synthetic),
        dropped=tuple(shown for shown in view.head if shown.source and shown.source not in visible),
        messages=tuple(normalize_for_wire([*(shown.message for shown in head), *visible_live], rules)),
    )


def _moved_first(request: Request, plan: Plan) -> list[int]:
    """Returns the synthetic events after the cut that leave their place; one with a tool call or result stays."""
    view = request.view
    if not plan.synthetic_first or not view.events:
        return []
    later = (index for index in view.synthetic if index >= plan.cut and view.messages[index].parts)
    return [index for index in later if not (view.messages[index].calls or view.messages[index].results)]


def request_after(request: Request, plan: Plan) -> Request:
    """Returns the request as it would be after this plan, for the next stage of a pipeline."""
    planned, before = apply_plan(request, plan), request.view
    view = View(
        before.token_sums.estimator, format=before.format, prompt_overhead=before.prompt_overhead, lane=before.lane
    )
    carry = before.checkpoint.carry
    carry = msgspec.structs.replace(carry, before_boundary=carry.before_boundary + plan.cut)
    view.checkpoint, view.pins = msgspec.structs.replace(before.checkpoint, carry=carry), before.pins
    view.calibration = before.calibration
    view.load_planned(planned.head, planned.live, before, plan.cut)
    return request.with_view(view)


def merge_plans(first: Plan, second: Plan, request: Request) -> Plan:
    """Returns one plan equivalent to the first and then the second."""
    edits = dict(first.edits)
    made = apply_plan(request, first).edits if second.edits else {}
    for later_index, changes in second.edits.items():
        index = later_index + first.cut
        edits[index] = merge_edits(made.get(index, ()), changes)
    return Plan(
        cut=first.cut + second.cut,
        notes=first.notes if second.notes is None else second.notes,
        notes_last=first.notes_last if second.notes is None else second.notes_last,
        archives_newest=first.archives_newest or second.archives_newest,
        synthetic_first=first.synthetic_first or second.synthetic_first,
        preamble=(*first.preamble, *(index + first.cut for index in second.preamble)),
        dropped_from_head=first.dropped_from_head | second.dropped_from_head,
        kept_in_head=first.kept_in_head | second.kept_in_head,
        edits=edits,
        summary=second.summary or first.summary,
        target=second.target or first.target,
        strategy=f"{first.strategy}+{second.strategy}",
        estimator=first.estimator or second.estimator,
        fallback=second.fallback or first.fallback,
        remarks=(*first.remarks, *second.remarks),
        ledger=first.ledger if second.ledger is None else second.ledger,
        state=first.state if second.state is None else second.state,
        memory=first.memory if second.memory is None else second.memory,
    )


def _stays_in_head(shown: HeadMessage, request: Request, plan: Plan) -> bool:
    """Whether a message of the old head stays under this plan."""
    if shown.source in plan.dropped_from_head or shown.source in plan.kept_in_head:
        return shown.source in plan.kept_in_head
    if shown.kind == "turn" and plan.archives_newest:
        return shown.source in request.view.pins
    return request.stays_in_head(shown, plan.cut) and (shown.kind != "note" or plan.notes is None)


def _with_new_kind(shown: HeadMessage, request: Request, plan: Plan) -> HeadMessage:
    """Returns the head message as what it now is: a pinned turn that is past is only a pin."""
    if shown.source in plan.kept_in_head:
        return HeadMessage("preamble", shown.message, shown.source)
    past = shown.kind == "turn" and (plan.archives_newest or request.is_past_turn(shown, plan.cut))
    return HeadMessage("pin", shown.message, shown.source) if past else shown


def _head_message(request: Request, plan: Plan, index: int, kind: str) -> HeadMessage:
    """Returns a head message for one live event; a pin or system message is quoted where its role is not allowed."""
    message, source = request.view.messages[index], request.view.ids[index]
    if kind == "turn":
        message = apply_edits(message, plan.edits.get(index, ()))
    if kind == "system" and message.role == "system" and request.rules.restricts_system:
        message = quote_system(message)
    if kind == "pin" and message.role != "user":
        quoted = strip_frame(message) if is_framed(message) else message.text
        quoted = quoted or "\n".join(result.text for result in message.results)
        quoted = quoted or "\n".join(f"{call.name}({call.arguments_json})" for call in message.calls)
        message = framed_message(f"Pinned, from earlier ({message.role}):\n{quoted}")
    return HeadMessage(kind, message, source)  # type: ignore[arg-type]


def _is_quoted_system(shown: HeadMessage) -> bool:
    """Whether this is a system message as a user message: it follows the notes, a provider's own summary must lead."""
    return shown.kind == "system" and shown.message.role == "user"


def _reasoning_edits(message: Message, rules: FormatRules) -> Sequence[Edit]:
    return [Edit(index) for index, part in enumerate(message.parts) if is_bound(part, rules)]


def _without_reasoning(shown: HeadMessage, rules: FormatRules) -> HeadMessage:
    """Drops reasoning: its signature covers everything before it, so none verifies after a new head."""
    if not (edits := _reasoning_edits(shown.message, rules)):
        return shown
    return HeadMessage(shown.kind, apply_edits(shown.message, edits), shown.source)
