"""Makes messages valid for a wire format: `repair` for broken histories, `normalize_for_wire` before sending.

`trace_messages` finds what each repaired message was made from: ids and numbers belong to the messages as passed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from .codec import COMMON, codec_of, decode_all, encode_all, format_name, is_format, require_message_list
from .cuts import only_reasoning
from .edit import as_user, drop_parts, rename_calls, replace_payload
from .frame import CONTINUE, OPENING, split_notes
from .frameworks import dump_objects, restore_objects
from .pairing import interrupted_result
from .parts import Json, Message, Opaque, Part, Reasoning, ToolCall, ToolResult
from .patch import Replace, patch
from .payload import text_block
from .tool_calls import GENERATED_ID_PREFIX, item_id, without_item_id
from .validate import (
    FormatRules,
    adds_user_content,
    bound_parts,
    can_be_first,
    can_follow_reasoning,
    can_precede_system,
    drop_rejected_parts,
    find_problems,
    is_vendor_summary,
    needs_user_between,
    rules_for,
)

if TYPE_CHECKING:
    from ..types import MessageLike


def join_results(first: Message, second: Message) -> Message:
    """Joins two messages of results; payloads of the same format are joined unchanged."""
    parts = first.parts + second.parts
    join = codec_of(first.format).join if first.format is not None and is_format(first.format) else None
    one, other = first.payload, second.payload
    if join is None or one is None or other is None or first.format != second.format:
        return Message("tool", parts)
    return Message("tool", parts, first.format, join(one, other))


def normalize_for_wire(messages: Iterable[Message], rules: FormatRules) -> list[Message]:
    """Returns the messages in the order the format requires, with the user messages it requires inserted.

    Up to each assistant message the output does not depend on later messages, so that the prompt cache
    stays valid. (Exception: a system message that is not followed by a reply.)
    """
    if not (rules.user_first or rules.reasoning_must_lead):
        return list(messages)
    out: list[Message] = []
    started = False
    for message in _drop_trailing_reasoning(messages) if rules.reasoning_must_lead else messages:
        before = out[-1] if out else None
        if rules.restricts_system:
            if before is not None and before.role == "system" and message.role != "assistant":
                out[-1] = as_user(before)
            if message.role == "system" and not (before is not None and can_precede_system(before)):
                message = as_user(message)
        if before is not None and is_vendor_summary(message):
            message = _summary_as_text(message)
        if rules.single_result_message and message.role == "tool" and started:
            _append_results(out, message)
            continue
        if rules.merges_roles and message.role == "tool" and before is not None and _ends_without_result(before):
            out[-1] = _results_first(before, message)
            continue
        if rules.user_first and not started and message.role != "system":
            started = True
            if not can_be_first(message):
                out.append(OPENING)
        if out and needs_user_between(message, out[-1], rules):
            out.append(CONTINUE)
        out.append(message)
    if out and rules.user_first and not started:
        out.append(OPENING)
    return out


def _drop_trailing_reasoning(messages: Iterable[Message]) -> Iterator[Message]:
    """Drops reasoning that no assistant content follows."""
    held: list[Message] = []
    for message in messages:
        if held and not can_follow_reasoning(message):
            yield from _without_trailing_reasoning(held)
            held = []
        if message.parts and type(message.parts[-1]) is Reasoning:
            held.append(message)
        else:
            yield from held
            yield message
            held = []
    yield from _without_trailing_reasoning(held)


def _without_trailing_reasoning(held: list[Message]) -> Iterator[Message]:
    """Yields the messages without the reasoning at their end."""
    for message in held:
        end = len(message.parts)
        while end and type(message.parts[end - 1]) is Reasoning:
            end -= 1
        if end:
            yield drop_parts(message, range(end, len(message.parts)))


def _append_results(out: list[Message], message: Message) -> None:
    """Joins results of one batch into one message, in the order of the calls."""
    if out and out[-1].role == "tool":
        message = join_results(out.pop(), message)
    positions = {call.id: position for position, call in enumerate(out[-1].calls if out else ())}
    order = [positions.get(result.call_id, len(positions)) for result in message.results]
    if order != sorted(order) and any(result.call_id.startswith(GENERATED_ID_PREFIX) for result in message.results):
        parts = sorted(message.parts, key=lambda part: positions.get(getattr(part, "call_id", ""), len(positions)))
        message = Message("tool", tuple(parts))
    out.append(message)


def _ends_without_result(message: Message) -> bool:
    """Whether a message of results ends in another part."""
    return message.role == "tool" and type(message.parts[-1]) is not ToolResult


def _results_first(first: Message, second: Message) -> Message:
    """Joins two messages of results where results must lead; their format's own join does so in the payload."""
    joined = join_results(first, second)
    parts = sorted(joined.parts, key=lambda part: type(part) is not ToolResult)
    return Message("tool", tuple(parts), joined.format, joined.raw)


def _summary_as_text(message: Message) -> Message:
    """Converts a signed summary block to text: it may only come first."""
    edits = [
        Replace(("content", index), text_block("text", str(part.data.get("content") or "(A summary stood here.)")))
        for index, part in enumerate(message.parts)
        if isinstance(part, Opaque) and part.kind == "compaction" and part.data.get("signature")
    ]
    return replace_payload(message, patch(message.payload, edits)) if edits else message


def repair(messages: Iterable[MessageLike], profile: str) -> list[Any]:
    """Returns the nearest messages that this format accepts, as dicts; equal ones if they are valid.

    With a framework's name as `profile` they are objects of that framework.
    """
    rules = rules_for(format_name(profile))
    require_message_list(messages)
    given, originals = dump_objects(messages)
    decoded, _ = decode_all(given, rules.name)
    return restore_objects(encode_all(repair_messages(decoded, rules), rules.name), rules.name, originals)


def repair_messages(messages: Sequence[Message], rules: FormatRules) -> list[Message]:
    """Returns the nearest valid history; the same messages if they are valid."""
    repaired = repair_pairs(messages, rules)
    normalized = normalize_for_wire(repaired, rules)
    if rules.binds_reasoning and not _is_unchanged(normalized, messages):
        normalized = normalize_for_wire(_without_reasoning(repaired, rules), rules)
    return normalized or [OPENING] if messages else []


def repair_pairs(messages: Sequence[Message], rules: FormatRules) -> list[Message]:
    """Completes tool-call pairs and drops rejected parts; `normalize_for_wire` inserts required messages."""
    if not find_problems(messages, rules):
        return list(messages)
    repaired = [kept for message in messages if (kept := drop_rejected_parts(message, rules)) is not None]
    while True:
        paired = _pair_up(repaired, rules)
        if paired == repaired:
            break
        repaired = paired
    if rules.single_result_message:
        repaired = _join_results(repaired)
    if rules.items:
        repaired = _unique_items(repaired)
    return repaired


def _is_unchanged(repaired: Sequence[Message], messages: Sequence[Message]) -> bool:
    return len(repaired) == len(messages) and all(a is b for a, b in zip(repaired, messages, strict=True))


def _without_reasoning(messages: list[Message], rules: FormatRules) -> list[Message]:
    """Drops reasoning: signatures cover everything before them, so none verifies after a change."""
    without = (drop_parts(message, bound_parts(message, rules)) for message in messages)
    return [message for message in without if message.parts]


def _pair_up(messages: list[Message], rules: FormatRules) -> list[Message]:
    answers: dict[str, deque[ToolResult]] = {}
    for message in messages:
        for result in message.results:
            answers.setdefault(result.call_id, deque()).append(result)
    last_user = max((i for i, message in enumerate(messages) if adds_user_content(message, rules)), default=-1)
    out: list[Message] = []
    used: set[str] = set()
    index = 0
    while index < len(messages):
        message = messages[index]
        if message.role == "tool" or message.results:
            if others := tuple(part for part in message.parts if type(part) is not ToolResult):
                out.append(Message("user", others))
            index += 1
            continue
        batch, index = _batch(messages, index, rules)
        batch, results = _with_results(batch, answers, used, moved_on=last_user >= index)
        own = _matching_results(results, messages, index, rules)
        held = {id(result) for message in own for result in message.results}
        out += batch + own + [Message("tool", (result,)) for result in results if id(result) not in held]
        index += len(own)
    return out


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
    batch: list[Message], answers: dict[str, deque[ToolResult]], used: set[str], *, moved_on: bool
) -> tuple[list[Message], list[ToolResult]]:
    """Returns the batch and its results in call order; a reused call id is replaced."""
    new_ids: dict[int, str] = {}
    results: list[ToolResult] = []
    for position, call in enumerate(call for member in batch for call in member.calls):
        found = answers.get(call.id)
        result = found.popleft() if found else interrupted_result(call) if moved_on else None
        fresh = _unused_id(call.id, used)
        used.add(fresh)
        if fresh != call.id:
            new_ids[position] = fresh
            if result is not None:
                result = ToolResult(fresh, result.content, result.is_error, result.name, result.kind)
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
    """Returns the following messages that already hold exactly these results, so that they stay unchanged.

    If some results are missing, only those already in call order.
    """
    own: list[Message] = []
    left = list(results)
    in_order = 0
    for message in islice(messages, index, None):
        held = message.results
        if not held or (rules.merges_roles and not _results_lead(message)):
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
