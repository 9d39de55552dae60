"""Which wire format is this, and the way in and out of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, cast

from ..errors import InvalidInput, UnknownFormat
from . import anthropic, gemini, openai_chat, openai_responses
from .numbering import Numbering
from .parts import Json, Message, Text
from .payload import copy_json
from .sdk import unpack

CODECS: dict[str, ModuleType] = {module.name: module for module in (openai_chat, openai_responses, anthropic, gemini)}
FORMATS = tuple(CODECS)
COMMON = "common"
"""Plain role-and-text messages that OpenAI Chat and Anthropic write alike."""

_ALIASES = {
    "openai": "openai-chat",
    "chat": "openai-chat",
    "responses": "openai-responses",
    "claude": "anthropic",
}
_SHARED = frozenset(("openai-chat", "anthropic"))
_ITEM_ENDINGS = ("_call", "_output", "_call_output")
_RESPONSES_PARTS = frozenset(("input_text", "output_text", "input_image", "input_file"))
_CHAT_PARTS = frozenset(("image_url", "input_audio", "file"))
_ANTHROPIC_BLOCKS = anthropic.OPAQUE_BLOCKS | {
    "tool_use",
    "tool_result",
    "thinking",
    "redacted_thinking",
    "image",
}


def format_name(given: str) -> str:
    """The proper name of a format, from any of the names people use for it."""
    name = _ALIASES.get(given, given)
    if name not in CODECS:
        raise UnknownFormat(f"{given!r} is not a message format: use one of {', '.join(FORMATS)}.")
    return name


def detect(payloads: Iterable[Json]) -> str:
    """The one format that fits all of these payloads; `common` if plain text fits several."""
    return _narrow(enumerate(payloads), frozenset(FORMATS))


def _narrow(payloads: Iterable[tuple[int, Json]], possible: frozenset[str]) -> str:
    for index, payload in payloads:
        fits = _fits(payload)
        if not fits:
            raise UnknownFormat(
                f"Message {index} is in no format known here (keys: {', '.join(map(str, payload)) or 'none'}): "
                f"name it with format=, one of {', '.join(FORMATS)}."
            )
        if not possible & fits:
            raise UnknownFormat(
                f"Message {index} looks like {' or '.join(sorted(fits))}, but others like "
                f"{' or '.join(sorted(possible))}: hand in one format at a time."
            )
        possible &= fits
    return next(iter(possible)) if len(possible) == 1 else COMMON


_PLAIN = frozenset(("openai-chat", "anthropic", "openai-responses"))
_TEXT_ROLES = frozenset(("user", "assistant"))


def _fits(payload: Json) -> frozenset[str]:
    role, content = payload.get("role"), payload.get("content")
    if "parts" in payload and "content" not in payload:
        return frozenset(("gemini",)) if role in (None, "user", "model", "function", "system") else frozenset()
    kind = payload.get("type")
    if isinstance(kind, str):
        known = (
            kind in ("message", "reasoning") or kind in openai_responses.OPAQUE_ITEMS or kind.endswith(_ITEM_ENDINGS)
        )
        return frozenset(("openai-responses",)) if known else frozenset()
    if role in ("tool", "function") or "tool_calls" in payload or "function_call" in payload:
        return frozenset(("openai-chat",)) if role in openai_chat.ROLES else frozenset()
    if role not in openai_chat.ROLES:
        return frozenset()
    kinds = {part.get("type") for part in content if isinstance(part, dict)} if isinstance(content, list) else set()
    if kinds & _RESPONSES_PARTS:
        return frozenset(("openai-responses",))
    if kinds & _CHAT_PARTS:
        return frozenset(("openai-chat",))
    if kinds & _ANTHROPIC_BLOCKS:
        return frozenset(("anthropic",))
    if role in ("system", "developer"):
        return frozenset(("openai-chat", "openai-responses"))
    if not isinstance(content, str | list) and content is not None:
        return frozenset()
    return _PLAIN if isinstance(content, str) else _SHARED


def decode_all(messages: Iterable[Any], format: str | None = None) -> tuple[list[Message], str]:
    """Neutral messages from payloads or SDK objects, each copied on the way in; and their format.

    Neutral messages pass through. `common` is the format of plain text that says no more.
    """
    decoded: list[Message | None] = []
    add = decoded.append
    rest: list[tuple[int, Json]] = []
    possible = frozenset(FORMATS)
    for item in _each(messages):
        if type(item) is dict:
            content = item.get("content")
            if type(content) is str and content and len(item) == 2 and (role := item.get("role")) in _TEXT_ROLES:
                add(Message(role, (Text(content),)))
                possible = _PLAIN
                continue
        elif type(item) is Message:
            if item.format in CODECS:
                possible &= {item.format}
            add(item)
            continue
        rest.append((len(decoded), item if type(item) is dict else _payload(item, len(decoded))))
        add(None)
    name = _narrow(rest, possible) if format is None else format_name(format)
    if name == "gemini" and possible is _PLAIN:
        raise InvalidInput("These messages have `content`; Gemini's have `parts`: name their real format.")
    _decode(rest, decoded, name)
    return cast("list[Message]", decoded), name


def _each(messages: Iterable[Any]) -> Iterator[Any]:
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Iterable):
        raise InvalidInput(f"Messages must be a list of messages, not {type(messages).__name__}.")
    for item in messages:
        if type(item) is dict or type(item) is Message:
            yield item
        else:
            yield from unpack(item)


def _payload(item: Any, index: int) -> Json:
    if isinstance(item, Mapping):
        return dict(item)
    raise InvalidInput(
        f"Message {index} is a {type(item).__name__}: hand in dicts, the SDKs' own objects, or holdfast Messages."
    )


def _decode(rest: list[tuple[int, Json]], decoded: list[Message | None], name: str) -> None:
    """Fill in what is more than plain text."""
    codec = CODECS["openai-chat" if name == COMMON else name]
    decode, number = codec.decode, Numbering()
    for index, payload in rest:
        try:
            message = decode(copy_json(payload))
        except (KeyError, TypeError, AttributeError, ValueError) as problem:
            raise InvalidInput(
                f"Message {index} is not a valid {codec.name} message ({_why(problem)}): "
                f"check its role and content, or name another format."
            ) from problem
        if name == COMMON:
            message = Message(message.role, message.parts, COMMON, message.raw)
        decoded[index] = number(message, index)


def _why(problem: Exception) -> str:
    return f"unknown or missing {problem}" if isinstance(problem, KeyError) else str(problem)


def encode_all(messages: Sequence[Message], format: str) -> list[Json]:
    """Payloads in this format: untouched messages as they came, all others rendered from their parts."""
    codec = CODECS["openai-chat" if format == COMMON else format_name(format)]
    out: list[Json] = []
    run: list[Message] = []
    after_raw_result = False

    def flush() -> None:
        nonlocal after_raw_result
        if not run:
            return
        rendered = codec.encode(run)
        if after_raw_result and run[0].role == "tool" and hasattr(codec, "join") and rendered:
            out[-1] = codec.join(out[-1], rendered.pop(0))
        out.extend(rendered)
        run.clear()
        after_raw_result = False

    for message in messages:
        if message.raw is None or not _passes(message, codec.name):
            run.append(message)
            continue
        flush()
        out.append(copy_json(message.raw))
        after_raw_result = message.role == "tool"
    flush()
    return out


def _passes(message: Message, format: str) -> bool:
    """May the payload go out in this format just as it came?"""
    if message.format == format:
        return True
    if message.format != COMMON or message.raw is None:
        return False
    return format in _SHARED or (format == "openai-responses" and isinstance(message.raw.get("content"), str))


def decode_one(payload: Json, format: str | None) -> Message:
    """One stored payload, in the format it was stored in; plain text needs none."""
    if format in CODECS:
        message: Message = CODECS[format].decode(payload)
        return message
    content = payload.get("content")
    if isinstance(content, str) and content and payload.keys() == {"role", "content"}:
        return Message(payload["role"], (Text(content),))
    decoded: Message = openai_chat.decode(payload)
    return Message(decoded.role, decoded.parts, COMMON, payload)


def join_results(first: Message, second: Message) -> Message:
    """One message with the results of both; payloads of one format are put together as they are."""
    parts = first.parts + second.parts
    codec = CODECS.get(first.format or "")
    if first.raw is None or second.raw is None or first.format != second.format or not hasattr(codec, "join"):
        return Message("tool", parts)
    return Message("tool", parts, first.format, codec.join(first.raw, second.raw))  # type: ignore[union-attr]
