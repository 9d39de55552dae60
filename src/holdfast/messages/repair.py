"""Makes broken histories valid for a wire format: drops or closes what belongs together as a whole, and reports it.

`trace_messages` finds what each repaired message was made from: ids and numbers belong to the messages as passed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from .codec import decode_all, decode_payloads, encode_all, format_name, require_message_list
from .edit import drop_parts, fold_edits, rename_calls
from .frame import OPENING, is_from_user
from .frameworks import dump_objects, restore_objects
from .links import Edges, ends_of, interrupted_result, only_reasoning, without_results
from .normalize import input_rules, join_results, normalize_for_wire, split_notes
from .parts import Message, Opaque, Part, ToolCall, ToolResult
from .tool_calls import item_id, without_item_id
from .validate import (
    FormatRules,
    adds_user_content,
    bound_parts,
    drop_rejected_parts,
    find_problems,
    rules_for,
)

if TYPE_CHECKING:
    from ..types import MessageLike


def repair(
    messages: Iterable[MessageLike],
    profile: str | None = None,
    *,
    alternating: bool = False,
    report: list[str] | None = None,
) -> list[Any]:
    """Returns the nearest messages that this format accepts, as dicts; equal ones if they are valid.

    None detects the format. With a framework's name as `profile` they are objects of that framework.
    `alternating=True` is for chat templates that refuse two messages of one role in a row. Adds to `report` a line
    for each change.
    """
    require_message_list(messages)
    given, originals = dump_objects(messages)
    decoded, name = decode_all(given, None if profile is None else format_name(profile))
    rules = rules_for(name, alternating=alternating)
    repaired = repair_messages(decoded, rules, report)
    return restore_objects(encode_all(repaired, rules.name), rules.name, originals)


_REMEDIES = {
    "alternation": "a short message was put between them, or a note joined",
    "call-place": "a user message was put before it",
    "duplicate-item": "it was dropped, or lost its id",
    "empty": "it was dropped",
    "first-role": "a user message was put first",
    "reasoning-alone": "it was dropped",
    "results-first": "they were put first",
    "results-order": "they were put in that order",
    "split-results": "they were joined",
    "summary-place": "it became text",
    "system-place": "it became the user's",
    "unanswered-reference": "it was dropped",
    "unsigned-reasoning": "it was dropped",
}
"""What is done about a problem of one message, by rule."""


def repair_messages(messages: Sequence[Message], rules: FormatRules, report: list[str] | None = None) -> list[Message]:
    """Returns the nearest valid history; the same messages if they are valid. `report` receives a line a change."""
    report = [] if report is None else report
    if not (problems := find_problems(messages, rules)):
        repaired = list(messages)
    else:
        report += [f"{one}: {_REMEDIES[one.rule]}" for one in problems if one.rule in _REMEDIES]
        repaired = _repair_links(messages, rules, report)
    normalized = normalize_for_wire(repaired, rules)
    if rules.binds_reasoning and not _is_unchanged(normalized, messages):
        normalized = normalize_for_wire(_without_reasoning(repaired, rules, report), rules)
    return normalized or [OPENING] if messages else []


def _repair_links(messages: Sequence[Message], rules: FormatRules, report: list[str]) -> list[Message]:
    """Completes or drops what belongs together, and drops rejected parts."""
    linked = _drop_dangling(messages, report)
    repaired = [kept for message in linked if (kept := drop_rejected_parts(message, rules)) is not None]
    while True:
        paired = _pair_up(repaired, rules, report)
        if paired == repaired:
            break
        repaired = paired
    repaired = _close_unfinished(repaired, report)
    if rules.single_result_message:
        repaired = _join_results(repaired)
    if rules.items:
        repaired = _unique_items(repaired)
    return repaired


def _drop_dangling(messages: Sequence[Message], report: list[str]) -> list[Message]:
    """Drops parts whose other end is missing, with the reasoning that led to them; their results follow later."""
    edges, out = Edges(), list[Message]()
    for index, message in enumerate(messages):
        dangling = edges.read(ends_of(message), message, index)
        report += [f"dropped {end.name}: the {end.target} that it belongs to is missing" for end in dangling]
        left = drop_parts(message, [end.part for end in dangling])
        if left.parts or not message.parts:
            out.append(left)
        else:
            while out and only_reasoning(out[-1]):
                out.pop()
    return out


def _close_unfinished(messages: list[Message], report: list[str]) -> list[Message]:
    """Closes what the provider never finished, before the user's words that left it behind."""
    edges = Edges()
    for index, message in enumerate(messages):
        edges.read(ends_of(message), message, index)
        if edges.open and is_from_user(message):
            edges.leave(index)
    closings: dict[int | None, list[Message]] = {}
    for opened, closing in edges.unfinished:
        closings.setdefault(opened.left_at, []).append(closing)
        report.append(f"closed {opened.end.name} with an error: it has no result")
    if not closings:
        return messages
    return [one for index, message in enumerate(messages) for one in (*closings.get(index, ()), message)]


def _is_unchanged(repaired: Sequence[Message], messages: Sequence[Message]) -> bool:
    return len(repaired) == len(messages) and all(a is b for a, b in zip(repaired, messages, strict=True))


def _without_reasoning(messages: list[Message], rules: FormatRules, report: list[str]) -> list[Message]:
    """Drops reasoning: signatures cover everything before them, so none verifies after a change."""
    bound = [bound_parts(message, rules) for message in messages]
    if count := sum(map(len, bound)):
        report.append(f"dropped {count:,} parts of reasoning: none verifies after a change")
    without = map(drop_parts, messages, bound)
    return [message for message in without if message.parts]


def _pair_up(messages: list[Message], rules: FormatRules, report: list[str]) -> list[Message]:
    answers: dict[str, deque[ToolResult]] = {}
    referred = _results_of_references(messages)
    holders = {id(result): message for message in messages for result in message.results}
    given = set(holders)
    for message in messages:
        for result in message.results:
            if id(result) not in referred:
                answers.setdefault(result.call_id, deque()).append(result)
    last_user = max((i for i, message in enumerate(messages) if adds_user_content(message, rules)), default=-1)
    out: list[Message] = []
    used: set[str] = set()
    index = 0
    while index < len(messages):
        message = messages[index]
        if message.role == "tool" or message.results:
            if referred and all(id(result) in referred for result in message.results):
                out.append(message)
            elif (others := without_results(message, _result_places(message))) is not None:
                out.append(others)
            index += 1
            continue
        batch, index = _batch(messages, index, rules)
        batch, results = _with_results(batch, answers, used, holders, report, moved_on=last_user >= index)
        own = _matching_results(results, messages, index, rules)
        held = {id(result) for message in own for result in message.results}
        moved = [result for result in results if id(result) not in held]
        report += [f"put the result of {one.call_id!r} right behind its call" for one in moved if id(one) in given]
        out += batch + own + [_alone(result, holders.get(id(result))) for result in moved]
        index += len(own)
    for call_id, unused in answers.items():
        why = "it has another one" if call_id in used else "there is no such call"
        report += [f"dropped a result of {call_id!r}: {why}" for _ in unused]
    return out


def _result_places(message: Message) -> list[int]:
    return [index for index, part in enumerate(message.parts) if type(part) is ToolResult]


def _alone(result: ToolResult, message: Message | None) -> Message:
    """Returns a message with this result alone, made from the one that holds it."""
    if message is None:
        return Message("tool", (result,))
    return fold_edits(drop_parts(message, [index for index, part in enumerate(message.parts) if part is not result]))


def _results_of_references(messages: list[Message]) -> set[int]:
    """Returns the identities of results whose calls only references stand for: they stay where they are."""
    edges, found = Edges(), set[int]()
    called = {call.id for message in messages for call in message.calls}
    for index, message in enumerate(messages):
        edges.read(ends_of(message), message, index)
        for result in message.results:
            if result.call_id not in called and edges.claim_reference() is not None:
                found.add(id(result))
    return found


def _batch(messages: list[Message], index: int, rules: FormatRules) -> tuple[list[Message], int]:
    """Returns a message, or the run of assistant messages that a format treats as one."""
    batch = [messages[index]]
    index += 1
    if rules.items or rules.merges_roles:
        while index < len(messages) and batch[-1].role == messages[index].role == "assistant":
            batch.append(messages[index])
            index += 1
    return batch, index


def _with_results(
    batch: list[Message],
    answers: dict[str, deque[ToolResult]],
    used: set[str],
    holders: dict[int, Message],
    report: list[str],
    *,
    moved_on: bool,
) -> tuple[list[Message], list[ToolResult]]:
    """Returns the batch and its results in call order; a reused call id is replaced."""
    new_ids: dict[int, str] = {}
    results: list[ToolResult] = []
    for position, call in enumerate(call for member in batch for call in member.calls):
        found = answers.get(call.id)
        result = found.popleft() if found else None
        if result is None and moved_on:
            result = interrupted_result(call)
            report.append(f"closed call {call.id!r} with an error: it has no result")
        fresh = _unused_id(call.id, used)
        used.add(fresh)
        if fresh != call.id:
            new_ids[position] = fresh
            report.append(f"renamed call {call.id!r} to {fresh!r}: an earlier call has its id")
            if result is not None:
                renamed = rename_calls(_alone(result, holders.get(id(result))), {0: fresh})
                result = renamed.results[0]
                holders[id(result)] = renamed
        if result is not None:
            results.append(result)
    return (_rename_calls(batch, new_ids) if new_ids else batch), results


def _unused_id(call_id: str, used: set[str]) -> str:
    fresh, number = call_id, 2
    while fresh in used:
        fresh, number = f"{call_id}-{number}", number + 1
    return fresh


def _rename_calls(batch: list[Message], new_ids: dict[int, str]) -> list[Message]:
    out, position = [], 0
    for message in batch:
        fresh: dict[int, str] = {}
        for index, part in enumerate(message.parts):
            if type(part) is ToolCall:
                if position in new_ids:
                    fresh[index] = new_ids[position]
                position += 1
        out.append(rename_calls(message, fresh) if fresh else message)
    return out


def _matching_results(
    results: list[ToolResult], messages: list[Message], index: int, rules: FormatRules
) -> list[Message]:
    """Returns the following messages that already hold exactly these results, or approvals: they stay unchanged.

    If some results are missing, only those already in call order.
    """
    own: list[Message] = []
    left = list(results)
    in_order = 0
    for message in islice(messages, index, None):
        held = message.results
        if not (held or message.role == "tool") or (rules.merges_roles and not _results_lead(message)):
            break
        positions = [position for result in held for position, other in enumerate(left) if other is result]
        if len(positions) != len(held):
            break
        in_order += in_order == len(own) and positions == list(range(len(held)))
        own.append(message)
        left = [result for position, result in enumerate(left) if position not in positions]
    return own[:in_order] if left or rules.single_result_message else own


def _results_lead(message: Message) -> bool:
    kinds = [type(part) is ToolResult for part in message.parts]
    return kinds == sorted(kinds, reverse=True)


def _join_results(messages: list[Message]) -> list[Message]:
    out: list[Message] = []
    for message in messages:
        if out and out[-1].role == message.role == "tool":
            out[-1] = join_results(out[-1], message)
        else:
            out.append(message)
    return out


def _unique_items(messages: list[Message]) -> list[Message]:
    """For a repeated item id, drops reasoning and equal opaque items, and strips the id from any other item."""
    out: list[Message] = []
    seen: dict[str, Message] = {}
    for message in messages:
        name = item_id(message)
        first = None if name is None else seen.get(name)
        if first is None:
            out.append(message)
            if name is not None:
                seen[name] = message
        elif not only_reasoning(message) and not (message.parts == first.parts and _is_opaque(message)):
            out.append(without_item_id(message))
    return out


def _is_opaque(message: Message) -> bool:
    return all(isinstance(part, Opaque) for part in message.parts)


def repair_input(
    messages: list[Message], format: str, report: list[str] | None = None, *, alternating: bool = False
) -> list[Message]:
    """Returns the messages as their wire format requires them. Notes stay apart."""
    rules = input_rules(format, alternating=alternating)
    return decode_payloads(encode_all(repair_messages(split_notes(messages), rules, report), format), format)


def trace_numbers(history: Iterable[Message], given: Sequence[Message], numbers: Sequence[int]) -> list[int]:
    """Returns a number for each message of a repaired history: that of the given message with the same parts.

    A message that repair inserted takes the number of the one before it.
    """
    traced, last = [], 0
    for indices in trace_messages(history, given):
        last = numbers[indices[0]] if indices else last
        traced.append(last)
    return traced


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
