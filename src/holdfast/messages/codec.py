"""Decoding of provider payloads into neutral messages, and encoding back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ..errors import InvalidInput, UnknownFormat
from . import anthropic, gemini, openai_chat, openai_responses
from .call_ids import CallIdAssigner, CallLookup, lacks_call_id
from .detection import ALL, COMMON, FORMATS, PLAIN, narrow_formats
from .frameworks import CONVERSE, FRAMEWORKS, dump_object, framework_codec, framework_in, framework_of
from .parts import FindCall, Json, Message, Text, ToolResult
from .payload import copy_json
from .sdk import unpack_reply

if TYPE_CHECKING:
    from ..types import MessageLike


_ALIASES = {
    "openai": "openai-chat",
    "chat": "openai-chat",
    "responses": "openai-responses",
    "claude": "anthropic",
}
_TEXT_ROLES = frozenset(("user", "assistant"))
_TEXT_FORMATS = PLAIN | FRAMEWORKS.keys()
"""Formats in which a plain text message may be passed as a dict of role and content."""


class Codec(NamedTuple):
    """Decoder and encoder of one wire format."""

    name: str
    decode: Callable[[Json], Message]
    encode: Callable[[Message, FindCall], list[Json]]
    """Returns payloads for a message without a payload of this format; empty if nothing of it can be shown."""
    join: Callable[[Json, Json], Json] | None = None
    """Joins the results of one batch into one message, if the format requires it."""
    legal_id: Callable[[str], str] | None = None
    """Converts a foreign call id to one that this format accepts."""


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
    """Returns the canonical name of a format, given the name or an alias."""
    name = _ALIASES.get(given, given)
    if not is_format(name):
        raise UnknownFormat(f"{given!r} is not a message format: use one of {', '.join(FORMATS)}.")
    return name


def is_format(name: str | None) -> bool:
    """Whether this is a wire format, or the format of a framework's objects."""
    return name in CODECS or name in FRAMEWORKS


def codec_of(name: str) -> Codec:
    """Returns the codec of a format; that of a framework is imported when it is first needed."""
    if name not in CODECS:
        CODECS[name] = _framework_codec(name)
    return CODECS[name]


def _framework_codec(name: str) -> Codec:
    codec = framework_codec(name)

    def decode(payload: Json) -> Message:
        if name == CONVERSE and name not in payload:
            (payload,) = dump_object(payload, name)
        role, parts = codec.decode(payload[name])
        return Message(role, tuple(parts), name, payload)

    def encode(message: Message, find: FindCall) -> list[Json]:
        return [{name: dump} for dump in codec.encode(_with_result_names(message, find))]

    def join(payload: Json, more: Json) -> Json:
        return {name: codec.join(payload[name], more[name])} if codec.join else payload

    return Codec(name, decode, encode, join if codec.join else None)


def _with_result_names(message: Message, find: FindCall) -> Message:
    """Returns the message with the name of its call on each result: not every wire format has it."""
    if all(result.name for result in message.results):
        return message
    parts = tuple(
        ToolResult(part.call_id, part.content, part.is_error, call.name, part.kind)
        if isinstance(part, ToolResult) and not part.name and (call := find(part.call_id)) is not None
        else part
        for part in message.parts
    )
    return message.with_parts(parts)


def _codec(format: str) -> Codec:
    return codec_of("openai-chat" if format == COMMON else format_name(format))


def decode_all(
    messages: Iterable[MessageLike], format: str | None = None, *, borrow: bool = False
) -> tuple[list[Message], str]:
    """Decodes payloads or SDK objects into neutral messages; returns them with their format.

    Payloads are copied, neutral messages pass through. Plain text alone gives the format `common`. With
    `borrow=True` simple payloads are not copied: only for callers that drop them before returning.
    """
    require_message_list(messages)
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
                    rest.append((len(decoded), item))  # the first one is enough to detect the format
                    chat = True
                add(message)
            elif role is not None:
                rest.append((len(decoded), copy_json(item)))
                add(None)
            else:
                for payload in unpack_reply(item):
                    rest.append((len(decoded), _payload(payload, len(decoded))))
                    add(None)
        elif type(item) is Message:
            if format is None and item.format is not None and is_format(item.format):
                possible = _require_format(possible, item.format, len(decoded))
            neutral.add(len(decoded))
            add(item)
        else:
            own = framework_of(item)
            for payload in unpack_reply(item) if own is None else dump_object(item, own):
                rest.append((len(decoded), _payload(payload, len(decoded)) if own is None else payload))
                add(None)
    name = (
        narrow_formats(rest, possible & _TEXT_FORMATS if plain else possible) if format is None else format_name(format)
    )
    if name == "gemini" and plain:
        raise InvalidInput("These messages have `content`, but Gemini messages have `parts`: pass their real format.")
    _decode(rest, decoded, name, neutral)
    return cast("list[Message]", decoded), name


def require_message_list(given: Any) -> None:
    """Raises InvalidInput unless given a list (or other iterable) of messages."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise InvalidInput(f"Messages must be a list of messages, not {type(given).__name__}.")


def _require_format(possible: frozenset[str], format: str, index: int) -> frozenset[str]:
    if format not in possible:
        raise UnknownFormat(f"Message {index} is in format {format}, the messages before it are not: pass format=.")
    return frozenset((format,))


def _payload(item: Any, index: int) -> Json:
    if isinstance(item, Mapping):
        copied: Json = copy_json(item)
        return copied
    raise InvalidInput(f"Message {index} is a {type(item).__name__}: pass dicts, SDK objects, or holdfast Messages.")


def _decode(rest: list[tuple[int, Json]], decoded: list[Message | None], name: str, neutral: set[int]) -> None:
    """Decodes the payloads that are more than plain text; generates ids if some calls have none."""
    codec = _codec(name)
    decode = _decode_common if name == COMMON else codec.decode
    lacks_ids = False
    for index, payload in rest:
        own = framework_in(payload)
        try:
            decoded[index] = message = decode(payload) if own in (None, name) else codec_of(own).decode(payload)
            lacks_ids = lacks_ids or lacks_call_id(message)
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as problem:
            if isinstance(problem, KeyError) and problem.args == (payload.get("role"),):
                why = f"unknown role {problem}"
            else:
                why = f"unknown or missing {problem}" if isinstance(problem, KeyError) else str(problem)
            raise InvalidInput(
                f"Message {index} is not a valid {codec.name} message ({why}): "
                f"check its role and content, or pass another format."
            ) from problem
    if lacks_ids:
        number = CallIdAssigner()
        for index, message in enumerate(cast("list[Message]", decoded)):
            if message.raw is not None and index not in neutral:
                decoded[index] = number(message, index)


def _decode_common(payload: Json) -> Message:
    message = openai_chat.decode(payload)
    return Message(message.role, message.parts, COMMON, message.raw)


def decode_one(payload: Json, format: str | None) -> Message:
    """Decodes one stored payload in its stored format; plain text needs no format."""
    if format is not None and is_format(format):
        return codec_of(format).decode(payload)
    content = payload.get("content")
    if type(content) is str and content and len(payload) == 2 and payload.get("role") in _TEXT_ROLES:
        return Message(payload["role"], (Text(content),))
    return _decode_common(payload)


def encode_all(messages: Sequence[Message], format: str) -> list[Json]:
    """Encodes messages in this format: unchanged ones byte for byte, all others from their parts.

    Results from another format join those of their batch, if this format requires one message for them.
    """
    name, _, encode, join, legal_id = _codec(format)
    flat = name in PLAIN
    calls = CallLookup(messages, name, legal_id)
    out: list[Json] = []
    add = out.append
    batch, joins = -2, False  # position of the newest results message, and whether others may join it
    for position, message in enumerate(messages):
        raw, role = message.raw, message.role
        if raw is None and flat and role in _TEXT_ROLES:
            parts = message.parts
            if len(parts) == 1 and type(only := parts[0]) is Text and only.text:
                add({"role": role, "content": only.text})
                continue
        if raw is not None and (message.format == name or _can_pass_through(message, name)):
            payloads = [copy_json(raw)]
        else:
            calls.until = position
            payloads = encode(calls.with_legal_ids(message), calls)
        if join is not None and role == "tool" and payloads:
            joins = message.format != name or (joins and batch == position - 1)
            if joins and batch == position - 1:
                out[-1] = join(out[-1], payloads.pop(0))
            batch = position
        out += payloads
    return out


def _can_pass_through(message: Message, format: str) -> bool:
    """Whether a plain-text payload of the common format is valid in this one unchanged."""
    raw = message.raw
    if message.format != COMMON or raw is None:
        return False
    if format == "openai-responses":
        return isinstance(raw.get("content"), str) or not raw.get("content")
    return format == "openai-chat" or (format == "anthropic" and raw.get("role") != "developer")
