"""The way in and out of each wire format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from ..errors import InvalidInput, UnknownFormat
from . import anthropic, gemini, openai_chat, openai_responses
from .detection import ALL, COMMON, FORMATS, PLAIN, narrow
from .earlier import EarlierCalls
from .numbering import Numbering, is_unnamed
from .parts import CallOf, Json, Message, Text
from .payload import copy_json
from .sdk import unpack

_ALIASES = {
    "openai": "openai-chat",
    "chat": "openai-chat",
    "responses": "openai-responses",
    "claude": "anthropic",
}
_TEXT_ROLES = frozenset(("user", "assistant"))


class Codec(NamedTuple):
    """One wire format: a payload in, a message out, and back."""

    name: str
    decode: Callable[[Json], Message]
    encode: Callable[[Message, CallOf], list[Json]]
    """Payloads for a message that has none of this format; none where nothing of it can be shown."""
    join: Callable[[Json, Json], Json] | None = None
    """Puts results of one batch into one message, where the format wants that."""
    legal_id: Callable[[str], str] | None = None
    """Makes an id from elsewhere one that this format takes."""


CODECS = {
    codec.name: codec
    for codec in (
        Codec(openai_chat.name, openai_chat.decode, openai_chat.encode, None, openai_chat.legal_id),
        Codec(openai_responses.name, openai_responses.decode, openai_responses.encode, None, openai_responses.legal_id),
        Codec(anthropic.name, anthropic.decode, anthropic.encode, anthropic.join, anthropic.legal_id),
        Codec(gemini.name, gemini.decode, gemini.encode, gemini.join),
    )
}


def format_name(given: str) -> str:
    """The proper name of a format, from any of the names people use for it."""
    name = _ALIASES.get(given, given)
    if name not in CODECS:
        raise UnknownFormat(f"{given!r} is not a message format: use one of {', '.join(FORMATS)}.")
    return name


def _codec(format: str) -> Codec:
    return CODECS["openai-chat" if format == COMMON else format_name(format)]


def decode_all(
    messages: Iterable[Any], format: str | None = None, *, borrow: bool = False
) -> tuple[list[Message], str]:
    """Neutral messages from payloads or SDK objects, each copied on the way in; and their format.

    Neutral messages pass through. `common` is the format of plain text that says no more. Whoever lets
    go of them before its caller goes on may `borrow` payloads that are simple enough instead.
    """
    must_be_messages(messages)
    decoded: list[Message | None] = []
    add = decoded.append
    rest: list[tuple[int, Json]] = []
    neutral: set[int] = set()
    possible, plain, chat = ALL, False, False
    quick = borrow and (format is None or _ALIASES.get(format, format) == openai_chat.name)
    decode_simple = openai_chat.decode_simple
    for item in messages:
        if type(item) is dict:
            content = item.get("content")
            role = item.get("role")
            if type(content) is str and content and len(item) == 2 and (role == "user" or role == "assistant"):
                add(Message(role, (Text(content),)))
                plain = True
            elif quick and (message := decode_simple(item, role, content)) is not None:
                if not chat:
                    rest.append((len(decoded), item))  # the first tells the format as well as all of them
                    chat = True
                add(message)
            else:
                rest.append((len(decoded), copy_json(item)))
                add(None)
        elif type(item) is Message:
            if format is None and item.format in CODECS:
                possible = _agreed(possible, item.format, len(decoded))
            neutral.add(len(decoded))
            add(item)
        else:
            for payload in unpack(item):
                rest.append((len(decoded), _payload(payload, len(decoded))))
                add(None)
    name = narrow(rest, possible & PLAIN if plain else possible) if format is None else format_name(format)
    if name == "gemini" and plain:
        raise InvalidInput("These messages have `content`; Gemini's have `parts`: name their real format.")
    _decode(rest, decoded, name, neutral)
    return cast("list[Message]", decoded), name


def must_be_messages(given: Any) -> None:
    """One message, a text or nothing at all is not a list of messages."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise InvalidInput(f"Messages must be a list of messages, not {type(given).__name__}.")


def _agreed(possible: frozenset[str], format: str, index: int) -> frozenset[str]:
    if format not in possible:
        raise UnknownFormat(f"Message {index} came in {format}, those before it did not: name the format to use.")
    return frozenset((format,))


def _payload(item: Any, index: int) -> Json:
    if isinstance(item, Mapping):
        copied: Json = copy_json(item)
        return copied
    raise InvalidInput(
        f"Message {index} is a {type(item).__name__}: hand in dicts, the SDKs' own objects, or holdfast Messages."
    )


def _decode(rest: list[tuple[int, Json]], decoded: list[Message | None], name: str, neutral: set[int]) -> None:
    """Fill in what is more than plain text, and where calls lack ids, ids in all that was read."""
    codec = _codec(name)
    decode = _decode_common if name == COMMON else codec.decode
    unnamed = False
    for index, payload in rest:
        try:
            decoded[index] = message = decode(payload)
            unnamed = unnamed or is_unnamed(message)
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as problem:
            why = f"unknown or missing {problem}" if isinstance(problem, KeyError) else str(problem)
            raise InvalidInput(
                f"Message {index} is not a valid {codec.name} message ({why}): "
                f"check its role and content, or name another format."
            ) from problem
    if unnamed:
        number = Numbering()
        for index, message in enumerate(cast("list[Message]", decoded)):
            if message.raw is not None and index not in neutral:
                decoded[index] = number(message, index)


def _decode_common(payload: Json) -> Message:
    message = openai_chat.decode(payload)
    return Message(message.role, message.parts, COMMON, message.raw)


def decode_one(payload: Json, format: str | None) -> Message:
    """One stored payload, in the format it was stored in; plain text needs none."""
    if format in CODECS:
        return CODECS[format].decode(payload)
    content = payload.get("content")
    if type(content) is str and content and len(payload) == 2 and payload.get("role") in _TEXT_ROLES:
        return Message(payload["role"], (Text(content),))
    return _decode_common(payload)


def encode_all(messages: Sequence[Message], format: str) -> list[Json]:
    """Payloads in this format: untouched messages as they came, all others rendered from their parts.

    Results that came from elsewhere join those of their batch, where a format wants them in one message.
    """
    name, _, encode, join, legal_id = _codec(format)
    flat = name in PLAIN
    calls = EarlierCalls(messages, name, legal_id)
    out: list[Json] = []
    add = out.append
    batch, joins = -2, False  # the newest message with results, and whether others may join it
    for place, message in enumerate(messages):
        raw, role = message.raw, message.role
        if raw is None and flat and role in _TEXT_ROLES:
            parts = message.parts
            if len(parts) == 1 and type(only := parts[0]) is Text and only.text:
                add({"role": role, "content": only.text})
                continue
        if raw is not None and (message.format == name or _passes(message, name)):
            payloads = [copy_json(raw)]
        else:
            calls.until = place
            payloads = encode(calls.with_legal_ids(message), calls)
        if join is not None and role == "tool" and payloads:
            joins = message.format != name or (joins and batch == place - 1)
            if joins and batch == place - 1:
                out[-1] = join(out[-1], payloads.pop(0))
            batch = place
        out += payloads
    return out


def _passes(message: Message, format: str) -> bool:
    """May the payload of plain text that fits several formats go out in this one just as it came?"""
    raw = message.raw
    if message.format != COMMON or raw is None:
        return False
    if format == "openai-responses":
        return isinstance(raw.get("content"), str) or not raw.get("content")
    return format == "openai-chat" or (format == "anthropic" and raw.get("role") != "developer")


def join_results(first: Message, second: Message) -> Message:
    """One message with the results of both; payloads of one format are put together as they are."""
    parts = first.parts + second.parts
    join = CODECS[first.format].join if first.format in CODECS else None
    if join is None or first.raw is None or second.raw is None or first.format != second.format:
        return Message("tool", parts)
    return Message("tool", parts, first.format, join(first.raw, second.raw))
