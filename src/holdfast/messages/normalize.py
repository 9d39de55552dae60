"""The order that a wire format requires: inserts, joins and converts messages before they are sent.

`split_notes` separates again what was joined, here or by a program that writes the messages down.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from .codec import codec_for, codec_of, is_format
from .edit import as_user, change, drop_parts, fold_edits, replace_payload
from .frame import ACKNOWLEDGED, FRAME_START, OPENING, framed_beginning, is_framed, is_from_user, quote_system
from .links import can_precede_system, unanswered_reference
from .parts import Json, Message, Opaque, Reasoning, Text, ToolResult
from .patch import Replace, patch
from .payload import text_block
from .tool_calls import GENERATED_ID_PREFIX
from .validate import (
    FormatRules,
    can_be_first,
    can_follow_reasoning,
    filler_between,
    find_problems,
    is_vendor_summary,
    rules_for,
)

_BLANK_LINE = "\n\n"


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
        if rules.items and message.role == "user" and unanswered_reference(out, len(out)) and is_from_user(message):
            out.pop()
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
        if rules.calls_follow_user and out and (filler := filler_between(out[-1], message, rules)) is not None:
            out.append(filler)
        out.append(message)
    if out and rules.user_first and not started:
        out.append(OPENING)
    return _alternate(out, rules) if rules.alternates else out


def _alternate(messages: Iterable[Message], rules: FormatRules) -> list[Message]:
    """Returns messages whose roles alternate, after one system message.

    A note is joined with the user's words after it: a program that reads the list back tells them apart. Any other two
    get a short message between them, so that each request still extends the one before.
    """
    out: list[Message] = []
    ends_in_note = False
    for message in messages:
        before = out[-1] if out else None
        if before is None:
            out.append(message)
            ends_in_note = is_framed(message)
            continue
        after_note = ends_in_note and message.role == "user" and not rules.keeps_notes_apart
        joins = after_note or before.role == message.role == "system"
        if joins and (joined := join_texts(before, message)) is not None:
            out[-1] = joined
        else:
            message = quote_system(message) if message.role == "system" else message
            filler = ACKNOWLEDGED if after_note else filler_between(before, message, rules)
            out += [message] if filler is None else [filler, message]
        ends_in_note = message.role == "user" and is_framed(message)
    return out


def join_texts(first: Message, second: Message) -> Message | None:
    """Joins a text and the message after it with a blank line, in the second's payload; None if it has another form."""
    if len(first.parts) != 1 or type(text := first.parts[0]) is not Text:
        return None
    payload = second.payload
    if payload is None:
        only = second.parts[0] if len(second.parts) == 1 else None
        return Message(second.role, (Text(text.text + _BLANK_LINE + only.text),)) if type(only) is Text else None
    match payload.get("content"):
        case str() as content:
            joined: Json = payload | {"content": text.text + _BLANK_LINE + content}
        case list() as content:
            joined = payload | {"content": [text_block("text", text.text), *content]}
        case _:
            return None
    return codec_for(second.format).decode(joined)


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


def input_rules(format: str, *, alternating: bool = False) -> FormatRules:
    """Returns the rules that a given list must meet, in which notes stand apart."""
    rules = rules_for(format, alternating=alternating)
    return msgspec.structs.replace(rules, keeps_notes_apart=True) if alternating else rules


def valid_input(messages: list[Message], format: str, *, alternating: bool = False) -> list[Message] | None:
    """Returns the given messages with their notes apart; None if their wire format requires a repair."""
    separate = split_notes(messages)
    return None if find_problems(separate, input_rules(format, alternating=alternating)) else separate


def split_notes(messages: list[Message]) -> list[Message]:
    """Separates notes from what a program joined to them, if only a blank; the same list if there is nothing to do."""
    marked = [one for one in messages for part in one.parts if type(part) is Text and FRAME_START in part.text]
    if all(map(is_framed, marked)):
        return messages
    return [piece for message in messages for piece in _split_note(message)]


def _split_note(message: Message) -> list[Message]:
    """Returns the parts before a note, the note, and what follows it as a part or in the same text."""
    for at, part in enumerate(message.parts):
        if type(part) is Text and (framed := framed_beginning(part.text)):
            rest = part.text[len(framed) :]
            rest = rest[len(_BLANK_LINE) :] if rest.startswith(_BLANK_LINE) else rest.lstrip()
            before = drop_parts(message, range(at, len(message.parts)))
            after = change(message, dict.fromkeys(range(at)) | {at: rest or None})
            following = _split_note(fold_edits(after)) if after.parts else []
            return [*([fold_edits(before)] if at else []), Message(message.role, (Text(framed),)), *following]
    return [message]
