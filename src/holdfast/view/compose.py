"""What a context would be under a plan: the one place where head, edits and kept messages meet."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..messages import Message, Reasoning, arrange, framed
from .edits import Edit, combined, edited
from .fold import Shown, View
from .request import Plan, Request

_ORDER = {"system": 0, "note": 1, "pin": 2, "preamble": 3, "turn": 4}
_NOTES_LAST = _ORDER | {"note": 5}


class Composition(msgspec.Struct, frozen=True):
    """A context as a plan would leave it."""

    head: tuple[Shown, ...]
    live: tuple[Message, ...]
    """The kept messages, edited; one that an edit left without parts is not shown."""
    edits: dict[int, tuple[Edit, ...]]
    """New edits by place in the request's live messages."""
    archived: tuple[int, ...]
    """Places of the live messages that are no longer visible."""
    superseded: frozenset[int]
    """Those of them that are notes and summaries, which newer ones replace."""
    dropped: tuple[Shown, ...]
    """Events that the old head showed and the new one does not."""
    shown: tuple[Message, ...]
    """All of it, as it would be sent."""


def compose(request: Request, plan: Plan) -> Composition:
    view, profile = request.view, request.profile
    staying = {index: "note" for index in view.synthetic if index < plan.cut}
    staying |= dict.fromkeys(plan.preamble, "preamble")
    for index in request.staying(plan.cut):
        if index < view.leading:
            staying[index] = "system"
        elif index == request.newest_turn(plan.cut):
            staying[index] = "turn"
        else:
            staying.setdefault(index, "pin")
    if plan.notes is not None:
        staying = {index: kind for index, kind in staying.items() if kind != "note"}

    moved = plan.cut > 0 or plan.notes is not None or bool(plan.edits)
    signed = profile.signed_reasoning and moved
    old = [_kept_on(shown, plan) for shown in view.head if _still(shown, request, plan)]
    new = [_refer(request, index, kind) for index, kind in sorted(staying.items())]
    if plan.notes is not None:
        new += [Shown("note", message) for message in plan.notes]
    order = _NOTES_LAST if plan.notes_last else _ORDER
    head = sorted(old + new, key=lambda shown: order[shown.kind])
    if signed:
        head = [_unsigned(shown) for shown in head]

    edits = {index: tuple(changes) for index, changes in plan.edits.items() if index >= plan.cut}
    if signed:
        for index in range(plan.cut, len(view.messages)):
            thoughts = _thoughts(view.messages[index])
            if thoughts:
                edits[index] = tuple(sorted({*edits.get(index, ()), *thoughts}, key=lambda edit: edit.part))
    live = view.messages[plan.cut :]
    for index, changes in edits.items():
        live[index - plan.cut] = edited(view.messages[index], changes)
    emptied = {index - plan.cut for index in edits if not live[index - plan.cut].parts}
    spoken = [message for place, message in enumerate(live) if place not in emptied]
    visible = {shown.source for shown in head}
    gone = [index for index in range(plan.cut) if index not in staying] if staying else range(plan.cut)
    return Composition(
        head=tuple(head),
        live=tuple(live),
        edits=edits,
        archived=tuple(gone),
        superseded=frozenset(index for index in view.synthetic if index < plan.cut and index not in staying),
        dropped=tuple(shown for shown in view.head if shown.source and shown.source not in visible),
        shown=tuple(arrange([*(shown.message for shown in head), *spoken], profile)),
    )


def follow(request: Request, plan: Plan) -> Request:
    """The request that would stand after this plan, for the next stage to decide about."""
    composed, before = compose(request, plan), request.view
    view = View(before.gauge.estimator, format=before.format, beside=before.beside, lane=before.lane)
    carry = msgspec.structs.replace(before.checkpoint.carry, passed=before.checkpoint.carry.passed + plan.cut)
    view.checkpoint, view.pins = msgspec.structs.replace(before.checkpoint, carry=carry), before.pins
    view.calibration = before.calibration
    view.take(composed.head, composed.live, before, plan.cut)
    return request.over(view)


def merge(first: Plan, second: Plan, request: Request) -> Plan:
    """One plan that does what the first and then the second would."""
    edits = dict(first.edits)
    for place, changes in second.edits.items():
        index = place + first.cut
        edits[index] = combined(compose(request, first).edits.get(index, ()), changes)
    return Plan(
        cut=first.cut + second.cut,
        notes=first.notes if second.notes is None else second.notes,
        notes_last=first.notes_last if second.notes is None else second.notes_last,
        preamble=(*first.preamble, *(place + first.cut for place in second.preamble)),
        forgotten=first.forgotten | second.forgotten,
        kept_on=first.kept_on | second.kept_on,
        edits=edits,
        summary=second.summary or first.summary,
        aim=second.aim or first.aim,
        by=f"{first.by}+{second.by}",
        fallback=second.fallback or first.fallback,
        remarks=(*first.remarks, *second.remarks),
        ledger=first.ledger if second.ledger is None else second.ledger,
        state=first.state if second.state is None else second.state,
        memory=first.memory if second.memory is None else second.memory,
    )


def _still(shown: Shown, request: Request, plan: Plan) -> bool:
    """Does something in the old head stay under this plan?"""
    if shown.source in plan.forgotten or shown.source in plan.kept_on:
        return shown.source in plan.kept_on
    return request.still_first(shown, plan.cut) and (shown.kind != "note" or plan.notes is None)


def _kept_on(shown: Shown, plan: Plan) -> Shown:
    return Shown("preamble", shown.message, shown.source) if shown.source in plan.kept_on else shown


def _refer(request: Request, index: int, kind: str) -> Shown:
    """Show one earlier event; a pinned one that cannot stand alone is quoted."""
    message, source = request.view.messages[index], request.view.ids[index]
    if kind == "pin" and message.role != "user":
        said = message.text or "\n".join(result.text for result in message.results)
        said = said or "\n".join(f"{call.name}({call.json})" for call in message.calls)
        message = framed(f"Pinned, from earlier ({message.role}):\n{said}")
    return Shown(kind, message, source)  # type: ignore[arg-type]


def _thoughts(message: Message) -> Sequence[Edit]:
    return [Edit(place) for place, part in enumerate(message.parts) if type(part) is Reasoning]


def _unsigned(shown: Shown) -> Shown:
    """Signatures are bound to all that stood before; behind a new head none would verify."""
    if not (thoughts := _thoughts(shown.message)):
        return shown
    return Shown(shown.kind, edited(shown.message, thoughts), shown.source)
