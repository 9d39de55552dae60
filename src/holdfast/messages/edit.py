"""Changes of kept messages: a part dropped, its text replaced or its call renamed, in the parts and in the payload."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress, count, islice
from typing import Any

from ..errors import InvalidInput
from .codec import codec_for
from .frameworks import framework_in
from .parts import Json, Message, Part, Text, ToolCall, ToolResult
from .patch import HIDDEN, Drop, Edit, Path, Replace, is_removed, merge, value_at

_ID_FIELDS = frozenset(("id", "call_id", "tool_call_id", "tool_use_id", "toolCallId", "toolUseId", "parent_id"))
_NEUTRAL = "parts"
_HIDDEN = (HIDDEN,)


def change(message: Message, changes: Mapping[int, str | None]) -> Message:
    """Returns the message with other texts for these parts, without those given as None; all its fields stay.

    Only texts and tool results have a text. A message left without parts is not shown.
    """
    if not changes:
        return message
    parts: list[Part] = []
    for index, part in enumerate(message.parts):
        if index not in changes:
            parts.append(part)
        elif (text := changes[index]) is not None:
            parts.append(_with_text(part, text))
    edits = merge(message.edits, _edits(message, changes)) if parts else _HIDDEN
    changed = Message(message.role, tuple(parts), message.format, message.raw, edits)
    return _read_again(message, changed) if any(map(_shows_no_text, message.parts)) else changed


def _shows_no_text(part: Part) -> bool:
    """Whether this is a result of a kind that has no text: what an edit leaves of it, only its codec tells."""
    return type(part) is ToolResult and bool(part.content) and all(type(item) is not Text for item in part.content)


def drop_parts(message: Message, indices: Iterable[int]) -> Message:
    """Returns the message without these parts."""
    return change(message, dict.fromkeys(indices))


def rename_calls(message: Message, names: Mapping[int, str]) -> Message:
    """Returns the message with other call ids for these parts, as if it had come with them."""
    message = fold_edits(message)
    parts = tuple(_with_id(part, names.get(index)) for index, part in enumerate(message.parts))
    if message.raw is None:
        return Message(message.role, parts, message.format)
    places = _places(message)
    found = (
        Replace(path, name)
        for index, name in names.items()
        for place in places[index]
        for path in _id_paths(value_at(message.raw, place), id_of(message.parts[index]), place)
    )
    return fold_edits(Message(message.role, parts, message.format, message.raw, tuple(found)))


def apply_edits(message: Message, edits: Sequence[Edit]) -> Message:
    """Returns the message with stored edits, which name places of its payload."""
    if not edits:
        return message
    edited = Message(message.role, (), message.format, message.raw, merge(message.edits, edits))
    return edited if HIDDEN in edits else _read_again(message, edited)


def _read_again(message: Message, edited: Message) -> Message:
    """Returns the edited message with the parts that its edits leave; calls and results keep the ids they had."""
    left = [not is_removed(paths[0], edited.edits) for paths in _places(message)]
    known = list(compress(message.parts, left))
    if message.raw is None:
        texts = {edit.path: edit.value for edit in edited.edits if isinstance(edit, Replace)}
        places = compress(_places(message), left)
        fresh: Iterable[Part] = (
            _with_text(part, text) if (text := texts.get(paths[0])) else part
            for part, paths in zip(known, places, strict=True)
        )
    else:
        fresh = codec_for(message.format).decode(edited.payload or {}).parts
    parts = (_with_id(part, id_of(one)) for part, one in zip(fresh, known, strict=False))
    return Message(message.role, tuple(parts), message.format, message.raw, edited.edits)


def replace_payload(message: Message, payload: Json) -> Message:
    """Returns the message with another payload of the same form; its calls and results keep their ids."""
    fresh = codec_for(message.format).decode(payload).parts
    parts = (_with_id(part, id_of(known)) for part, known in zip(fresh, message.parts, strict=False))
    return Message(message.role, tuple(parts), message.format, payload)


def fold_edits(message: Message) -> Message:
    """Returns the message as if it had come with its edits; a hidden one stays what it is."""
    if not message.edits or not message.parts:
        return message
    return Message(message.role, message.parts, message.format, message.payload)


def as_user(message: Message) -> Message:
    """Returns a message as the user's."""
    payload = message.payload
    if payload is None or framework_in(payload):
        return Message("user", message.parts, message.format)
    return Message("user", message.parts, message.format, payload | {"role": "user"})


def _places(message: Message) -> list[tuple[Path, ...]]:
    """Where the parts lie in the payload; of a message without one, in its plain or its neutral form."""
    if message.raw is not None:
        known = codec_for(message.format).places(message.raw)
        if not message.edits:
            return list(known)
    elif _is_plain(message):
        known = [(("content",),)]
    else:
        known = (((_NEUTRAL, index),) for index in count())
    if message.edits:
        known = (paths for paths in known if not is_removed(paths[0], message.edits))
    return list(islice(known, len(message.parts)))


def _is_plain(message: Message) -> bool:
    neutral = any(edit.path[0] == _NEUTRAL for edit in message.edits)
    return len(message.parts) == 1 and type(message.parts[0]) is Text and not neutral


def _edits(message: Message, changes: Mapping[int, str | None]) -> Iterator[Edit]:
    raw, places, gone = message.raw, _places(message), list[Path]()
    for index in sorted(changes) if len(changes) > 1 else changes:
        text = changes[index]
        if text is None:
            gone += places[index]
        elif raw is None:
            yield Replace(places[index][0], text)
        else:
            for path in places[index]:
                for edit in codec_for(message.format).retext(value_at(raw, path), text):
                    yield Replace(path + edit.path, edit.value) if isinstance(edit, Replace) else Drop(path + edit.path)
    if gone:
        yield from map(Drop, gone) if raw is None else _drops(message, gone)


def _drops(message: Message, gone: Sequence[Path]) -> Iterator[Edit]:
    """Yields the edits that drop these places; a list that loses all that it holds is emptied, or goes with them."""
    first, *more = gone
    one_of_a_list = isinstance(first[-1], int) and not more and not message.edits  # most edits are of this kind
    if one_of_a_list and len(value_at(message.raw, first[:-1])) > 1:
        yield Drop(first)
        return
    earlier = (edit.path for edit in message.edits if isinstance(edit, Drop))
    dropped = dict.fromkeys((*gone, *earlier))
    lists = {path[:-1] for path in gone if isinstance(path[-1], int)}
    while lists:
        container = max(lists, key=len)
        lists.remove(container)
        inside = [path for path in dropped if path[:-1] == container]
        if len(inside) == len(value_at(message.raw, container)):
            is_entry = len(container) > 1 and isinstance(container[-2], int)
            whole = container[:-1] if is_entry else container
            dropped = {path: None for path in dropped if path not in inside} | {whole: None}
            lists.update([whole[:-1]] if is_entry else ())
    empty = codec_for(message.format).empty
    for path in dropped:
        yield Replace(path, empty[str(path[-1])]) if path[-1] in empty else Drop(path)


def _with_text(part: Part, text: str) -> Part:
    if not text:
        raise InvalidInput("A text cannot become empty: some formats reject that. Give words, or drop the part.")
    match part:
        case ToolResult():
            return ToolResult(part.call_id, (Text(text),), part.is_error, part.name, part.kind)
        case Text():
            return Text(text, part.signature)
    raise InvalidInput(f"A {type(part).__name__} has no text to replace: only texts and tool results have one.")


def id_of(part: Part) -> str | None:
    """Returns the call id of a call or a result."""
    return part.id if isinstance(part, ToolCall) else part.call_id if isinstance(part, ToolResult) else None


def _with_id(part: Part, call_id: str | None) -> Part:
    if call_id is None or call_id == id_of(part):
        return part
    if isinstance(part, ToolCall):
        return ToolCall(call_id, part.name, part.arguments, part.kind, part.signature)
    assert isinstance(part, ToolResult)
    return ToolResult(call_id, part.content, part.is_error, part.name, part.kind)


def _id_paths(value: Any, known: str | None, path: Path) -> Iterator[Path]:
    """Yields where a call's id stands, at most one object deeper."""
    for name, item in value.items() if isinstance(value, dict) else ():
        if name in _ID_FIELDS and item == known:
            yield (*path, name)
        elif isinstance(item, dict) and not _ID_FIELDS & value.keys():
            yield from _id_paths(item, known, (*path, name))
