"""`repair`: mends histories that arrive broken, deterministically: the same input, the same bytes.

Results move right behind the calls they answer, in call order. A result without a call is left out;
a call that was never answered, and that the conversation has moved on from, gets an answer that says
so. Untouched messages stay the very objects they were.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from ..messages import (
    OPENING,
    Message,
    Part,
    Profile,
    Reasoning,
    ToolCall,
    ToolResult,
    arrange,
    item_id,
    join_results,
    presentable,
)
from ..view import interrupted
from .check import find_problems, moves_on
from .cuts import only_reasoning


def repair(messages: Sequence[Message], profile: Profile) -> list[Message]:
    """The nearest valid history; the same messages where nothing was wrong."""
    mended = mend(messages, profile)
    arranged = arrange(mended, profile)
    if profile.signed_reasoning and not _same(arranged, messages):
        arranged = arrange(_without_reasoning(mended), profile)
    return arranged or [OPENING] if messages else []


def mend(messages: Sequence[Message], profile: Profile) -> list[Message]:
    """Whole pairs and nothing refused; what a format wants put in between is left to `arrange`."""
    if not find_problems(messages, profile):
        return list(messages)
    mended = [kept for message in messages if (kept := presentable(message, profile)) is not None]
    while True:
        paired = _pair_up(mended, profile)
        if paired == mended:
            break
        mended = paired
    if profile.one_answer:
        mended = _joined(mended)
    if profile.items:
        mended = _unique_items(mended)
    return mended


def _same(mended: Sequence[Message], messages: Sequence[Message]) -> bool:
    return len(mended) == len(messages) and all(a is b for a, b in zip(mended, messages, strict=True))


def _without_reasoning(messages: list[Message]) -> list[Message]:
    """Signatures are bound to what stood before: after a change none of them would verify."""
    out: list[Message] = []
    for message in messages:
        parts = tuple(part for part in message.parts if type(part) is not Reasoning)
        if parts:
            out.append(message if len(parts) == len(message.parts) else message.with_parts(parts))
    return out


def _pair_up(messages: list[Message], profile: Profile) -> list[Message]:
    answers: dict[str, deque[ToolResult]] = {}
    for message in messages:
        for result in message.results:
            answers.setdefault(result.call_id, deque()).append(result)
    last_spoken = max((i for i, message in enumerate(messages) if moves_on(message, profile)), default=-1)
    out: list[Message] = []
    used: set[str] = set()
    index = 0
    while index < len(messages):
        message = messages[index]
        if message.role == "tool" or message.results:
            if rest := tuple(part for part in message.parts if type(part) is not ToolResult):
                out.append(Message("user", rest))
            index += 1
            continue
        batch, index = _batch(messages, index, profile)
        batch, results = _answered(batch, answers, used, moved_on=last_spoken >= index)
        own = _holding(results, messages, index, profile)
        held = {id(result) for message in own for result in message.results}
        out += batch + own + [Message("tool", (result,)) for result in results if id(result) not in held]
        index += len(own)
    return out


def _batch(messages: list[Message], index: int, profile: Profile) -> tuple[list[Message], int]:
    """A message, or the whole run of the assistant's where a format treats it as one."""
    batch = [messages[index]]
    index += 1
    if profile.items or profile.merges_roles:
        while index < len(messages) and batch[-1].role == messages[index].role == "assistant":
            batch.append(messages[index])
            index += 1
    return batch, index


def _answered(
    batch: list[Message], answers: dict[str, deque[ToolResult]], used: set[str], *, moved_on: bool
) -> tuple[list[Message], list[ToolResult]]:
    """The batch and its results, in call order; a second use of an id gets one of its own."""
    names: dict[int, str] = {}
    results: list[ToolResult] = []
    for place, call in enumerate(call for member in batch for call in member.calls):
        found = answers.get(call.id)
        result = found.popleft() if found else interrupted(call) if moved_on else None
        fresh = _fresh(call.id, used)
        used.add(fresh)
        if fresh != call.id:
            names[place] = fresh
            if result is not None:
                result = ToolResult(fresh, result.content, result.is_error, result.name, result.kind)
        if result is not None:
            results.append(result)
    return (_renamed(batch, names) if names else batch), results


def _fresh(call_id: str, used: set[str]) -> str:
    fresh, number = call_id, 2
    while fresh in used:
        fresh, number = f"{call_id}-{number}", number + 1
    return fresh


def _renamed(batch: list[Message], names: dict[int, str]) -> list[Message]:
    out, place = [], 0
    for message in batch:
        parts: list[Part] = []
        for part in message.parts:
            if type(part) is ToolCall:
                if place in names:
                    part = ToolCall(names[place], part.name, part.arguments, part.kind, part.signature)
                place += 1
            parts.append(part)
        out.append(message if tuple(parts) == message.parts else message.with_parts(tuple(parts)))
    return out


def _holding(results: list[ToolResult], messages: list[Message], index: int, profile: Profile) -> list[Message]:
    """The messages from here on that hold just these results: what was right stays as it is.

    Where some are missing, only those that stand in call order already.
    """
    own: list[Message] = []
    left = list(results)
    in_order = 0
    for message in messages[index:]:
        held = message.results
        if not held or (profile.merges_roles and not _results_lead(message)):
            break
        places = [place for result in held for place, other in enumerate(left) if other is result]
        if len(places) != len(held):
            break
        in_order += in_order == len(own) and places == list(range(len(held)))
        own.append(message)
        left = [result for place, result in enumerate(left) if place not in places]
    return own[:in_order] if left or profile.one_answer else own


def _results_lead(message: Message) -> bool:
    kinds = [type(part) is ToolResult for part in message.parts]
    return kinds == sorted(kinds, reverse=True)


def _joined(messages: list[Message]) -> list[Message]:
    out: list[Message] = []
    for message in messages:
        if out and out[-1].role == message.role == "tool":
            out[-1] = join_results(out[-1], message)
        else:
            out.append(message)
    return out


def _unique_items(messages: list[Message]) -> list[Message]:
    """A second use of an item's id: a thought goes, anything else goes without the id."""
    out: list[Message] = []
    seen: set[str] = set()
    for message in messages:
        name = item_id(message)
        if name is None or name not in seen:
            out.append(message)
        elif not only_reasoning(message):
            out.append(message.with_parts(message.parts))
        if name is not None:
            seen.add(name)
    return out
