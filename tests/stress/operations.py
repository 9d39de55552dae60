"""The operations of a session as plain data: chosen at random, carried out by any service, and repeated."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from holdfast import KeepLedger, Outcome, PruneToolResults, SessionService, SlidingWindow
from holdfast.errors import Conflict, InvalidInput
from holdfast.triggers import always
from stress.log_model import COMPACTION, MESSAGE, Plain, lane_base, lanes_of, last_mark, word, words_in

FORMAT = "openai-chat"
ESTIMATOR = "chars/4"
FILLER = "The water in the harbour is deep and the cranes are slow. " * 3
PROMPT_WORD = word("prompt", 0)
PROMPT, METADATA = f"You keep {PROMPT_WORD}.", {"title": f"The harbour of {PROMPT_WORD}"}
WEIGHTS = {
    "say": 4,
    "batch": 3,
    "call": 2,
    "answer": 2,
    "retry": 2,
    "remember": 1,
    "window": 3,
    "ledger": 2,
    "prune": 2,
    "pin": 2,
    "unpin": 1,
    "undo": 2,
    "undo_to": 1,
    "restore": 2,
    "fork": 1,
    "redact": 2,
    "redact_text": 1,
    "title": 1,
}
"""Operations by name, and how often each is chosen."""
LANES = (None, None, None, "sub", "other")
APPENDS = frozenset({"say", "batch", "call", "answer"})
ONCE = APPENDS | {"pin", "unpin", "restore", "remember", "fork", "redact"}
"""Operations that have an effect once, however often they are repeated."""
COMPACTIONS = frozenset({"window", "ledger", "prune"})
DONE, UNCHANGED, CANCELLED = "done", "unchanged", "cancelled"


class Call(msgspec.Struct, frozen=True, omit_defaults=True):
    """One operation with all of its arguments."""

    kind: str
    session: str
    id: str
    lane: str | None = None
    messages: list[Plain] = []
    event: str | None = None
    size: int = 1
    mode: Literal["skip", "rebase"] = "skip"
    after: int | None = None
    text: str = ""

    @property
    def ids(self) -> list[str]:
        """Ids of the messages that this operation appends."""
        if self.kind in ("restore", "remember"):
            return [self.id]
        return [self.id if index == 0 else f"{self.id}.{index}" for index in range(len(self.messages))]

    @property
    def words(self) -> dict[str, list[str]]:
        """Words of the messages that this operation appends, by event id."""
        if self.kind == "remember":
            return {self.id: words_in(self.text)}
        return {id: words_in(message) for id, message in zip(self.ids, self.messages, strict=False)}


class Done(msgspec.Struct, frozen=True):
    """What a service answered: `unchanged` says that nothing was written by this call."""

    outcome: str
    seqs: dict[str, int] = {}
    """Acknowledged messages by id."""
    why: str = ""


def plan_call(kind: str, numbers: Sequence[int], session: str, log: Sequence[Plain], label: str) -> Call | None:
    """Returns the operation that these numbers choose in this log; None if there is nothing to do it to."""
    lane, pick, size = LANES[numbers[0] % len(LANES)], numbers[1], numbers[2]
    messages = [event for event in log if event["kind"] == MESSAGE]
    chosen = messages[pick % len(messages)] if messages else None
    after = None if size % 3 else max(0, len(log) - size)
    mode: Literal["skip", "rebase"] = "rebase" if size % 2 else "skip"
    match kind:
        case "say" | "batch" | "call" | "answer":
            made = _messages(kind, size, label, [event for event in messages if event.get("lane") == lane])
            return Call(kind, session, label, lane, made) if made else None
        case "window" | "ledger" | "prune" | "title":
            return Call(kind, session, label, lane, size=size, mode=mode)
        case "remember":
            return Call(kind, session, label, lane, text=f"The port of call is {word(label, 0)}.")
        case "undo":
            return Call(kind, session, label, lane, after=after)
        case "undo_to":
            earlier = [e["id"] for e in log if e["kind"] == COMPACTION and e.get("lane") == lane]
            return Call(kind, session, label, lane, event=earlier[pick % len(earlier)]) if earlier else None
        case "fork":
            root = [event["id"] for event in log if event.get("lane") is None]
            return Call(kind, session, label, event=root[pick % len(root)] if root and size % 2 else None)
        case "redact_text" if pick % 10 == 0:
            return Call(kind, session, label, text=PROMPT_WORD)
        case "redact_text" if chosen is not None:
            found = words_in(chosen["body"]["message"])
            return Call(kind, session, label, text=found[0], event=chosen["id"]) if found else None
        case "restore" | "redact" if chosen is not None:
            return Call(kind, session, label, chosen.get("lane"), event=chosen["id"])
        case "pin" | "unpin" if chosen is not None:
            return Call(kind, session, label, chosen.get("lane"), event=chosen["id"], after=after)
    return None


def _messages(kind: str, size: int, label: str, lane: Sequence[Plain]) -> list[Plain]:
    own = (word(label, number) for number in range(10))
    if kind == "say":
        return [_text("assistant" if size % 2 else "user", next(own))]
    if kind == "answer":
        return [_result(call, next(own)) for call in _open_calls(lane)[: size or 1]]
    calls = [f"{label}-c{number}" for number in range(1 + size % 2)]
    call = {"role": "assistant", "content": None, "tool_calls": [_call(id, next(own)) for id in calls]}
    if kind == "call":
        return [call]
    turn = [_text("user", next(own)), _text("assistant", next(own))]
    return [turn[0], call, *(_result(id, next(own)) for id in calls), turn[1]] if size % 3 == 0 else turn


def _text(role: str, own: str) -> Plain:
    text = f"Go to /srv/{own}.py and mind it." if role == "user" else f"I went to {own}."
    return {"role": role, "content": f"{text} {FILLER}"}


def _call(id: str, own: str) -> Plain:
    arguments = json.dumps({"command": f"make {own}"})
    return {"id": id, "type": "function", "function": {"name": "bash", "arguments": arguments}}


def _result(call: str, own: str) -> Plain:
    return {"role": "tool", "tool_call_id": call, "content": f"ERROR denied: API_TOKEN={own}\n{FILLER}"}


def _open_calls(lane: Sequence[Plain]) -> list[str]:
    pending: list[str] = []
    for event in lane:
        message = event["body"]["message"]
        if message["role"] == "tool":
            pending = [call for call in pending if call != message["tool_call_id"]]
        else:
            pending = [call["id"] for call in message.get("tool_calls") or ()]
    return pending


async def perform(service: SessionService, call: Call) -> Done:
    """Carries out the operation; a conflict or a refusal is an answer, any other error is not."""
    try:
        return await _perform(service, call)
    except (Conflict, InvalidInput) as error:
        return Done(UNCHANGED, why=f"{type(error).__name__}: {error}")


async def _perform(service: SessionService, call: Call) -> Done:
    session, lane = call.session, call.lane
    match call.kind:
        case "say" | "batch" | "call" | "answer":
            events = await service.append(session, call.messages, lane, call.id)
            return Done(DONE, {event.id: event.seq for event in events})
        case "window" | "ledger" | "prune":
            strategy: Any = SlidingWindow(2 + call.size)
            if call.kind != "window":
                strategy = KeepLedger(300) if call.kind == "ledger" else PruneToolResults(call.size * 30, 0)
            result = await service.compact(session, always, strategy, call.mode, lane=lane)
            return Done(DONE if result.outcome is Outcome.COMPACTED else UNCHANGED, why=str(result.outcome))
        case "pin" | "unpin":
            await service.pin(session, call.event or "", pinned=call.kind == "pin", id=call.id, after=call.after)
        case "undo" | "undo_to":
            await service.undo(session, lane=lane, to=call.event, after=call.after)
        case "restore":
            event = await service.restore(session, call.event or "", lane, id=call.id)
            return Done(DONE, {event.id: event.seq})
        case "remember":
            event = await service.remember(session, call.text, lane=lane, id=call.id)
            return Done(DONE, {event.id: event.seq})
        case "fork":
            await service.fork(session, call.event, id=call.id)
        case "redact":
            await service.redact(session, call.event or "")
        case "redact_text":
            await service.redact_text(session, call.text)
        case "title":
            return Done(DONE, why=await service.title(session, lane=lane))
        case _:
            raise AssertionError(call)
    return Done(DONE)


def must_conflict(call: Call, log: Sequence[Plain]) -> bool:
    """Whether another writer has started or marked the lane since the version that the caller saw."""
    if call.after is None:
        return False
    started = call.lane in lanes_of(log) and lane_base(log, call.lane) > call.after
    return started or last_mark(log, call.lane) > call.after
