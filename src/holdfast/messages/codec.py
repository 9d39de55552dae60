"""Detection of the wire format of payloads, decoding into neutral messages, and encoding back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ..errors import InvalidInput, UnknownFormat
from . import ai_sdk, anthropic, gemini, openai_chat, openai_responses
from .frameworks import (
    CONVERSE,
    FRAMEWORKS,
    dump_object,
    framework_codec,
    framework_in,
    framework_of,
    has_converse_blocks,
)
from .parts import End, FindCall, Json, Message, Opaque, Text, ToolResult
from .patch import Edit, Path
from .payload import copy_json
from .sdk import unpack_reply
from .tool_calls import CallIdAssigner, CallLookup, lacks_call_id

if TYPE_CHECKING:
    from ..types import MessageLike


FORMATS = (openai_chat.name, openai_responses.name, anthropic.name, gemini.name, ai_sdk.name)
"""Names of the supported wire formats."""
COMMON = "common"
"""Plain role-and-text messages, which are the same in several formats."""
PLAIN = frozenset((openai_chat.name, openai_responses.name, anthropic.name, ai_sdk.name))
"""Formats in which a plain text message looks the same."""
ALL = frozenset((*FORMATS, *FRAMEWORKS))
_NONE: frozenset[str] = frozenset()
_CHAT, _RESPONSES, _ANTHROPIC, _GEMINI, _AI_SDK = (frozenset((name,)) for name in FORMATS)
_OPENAI = _CHAT | _RESPONSES
_FRAMEWORKS: dict[str | None, frozenset[str]] = {name: frozenset((name,)) for name in FRAMEWORKS}
_PLAIN_OR_CONVERSE = PLAIN | {CONVERSE}
_CHAT_FIELDS = frozenset(("tool_calls", "function_call", "refusal", "audio", "reasoning_content", "reasoning"))
_FORMATS_BY_PART: dict[str, frozenset[str]] = {
    **dict.fromkeys(("input_text", "output_text", "input_image", "input_file"), _RESPONSES),
    **dict.fromkeys(("image_url", "file"), _CHAT),
    **dict.fromkeys(("refusal", "input_audio"), _OPENAI),
    **dict.fromkeys(("tool_use", "tool_result", "thinking", "redacted_thinking", "image"), _ANTHROPIC),
    **dict.fromkeys(anthropic.OPAQUE, _ANTHROPIC),
    **dict.fromkeys(ai_sdk.PARTS, _AI_SDK),
    "text": _CHAT | _ANTHROPIC | _AI_SDK,
}
"""Formats that have this type of content part."""
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
    places: Callable[[Json], Iterable[tuple[Path, ...]]]
    """Returns where each decoded part lies in the payload; a part may lie in two places."""
    retext: Callable[[Any, str], Iterable[Edit]]
    """Returns edits of the value at a place of a text or a result: the text takes the place of its own."""
    empty: Mapping[str, Any] = MappingProxyType({})
    """What a field holds whose only part was dropped; others are dropped with it."""
    join: Callable[[Json, Json], Json] | None = None
    """Joins the results of one batch into one message, if the format requires it."""
    legal_id: Callable[[str], str] | None = None
    """Converts a foreign call id to one that this format accepts."""
    ends: Callable[[Json], Sequence[End]] | None = None
    """Returns the ends of edges in a payload, other than calls and their results."""
    closing: Callable[[Json, End], Json | None] | None = None
    """Returns a payload that closes what this end of a payload opened; None if it may stay open."""
    opaque: frozenset[str] = frozenset()
    """Kinds of parts that are kept and never interpreted."""


CODECS = {
    codec.name: codec
    for codec in (
        Codec(
            openai_chat.name,
            openai_chat.decode,
            openai_chat.encode,
            openai_chat.places,
            openai_chat.retext,
            openai_chat.EMPTY,
            legal_id=openai_chat.legal_id,
            opaque=openai_chat.OPAQUE,
        ),
        Codec(
            openai_responses.name,
            openai_responses.decode,
            openai_responses.encode,
            openai_responses.places,
            openai_responses.retext,
            legal_id=openai_responses.legal_id,
            ends=openai_responses.ends,
            closing=openai_responses.closing,
            opaque=openai_responses.OPAQUE,
        ),
        Codec(
            anthropic.name,
            anthropic.decode,
            anthropic.encode,
            anthropic.places,
            anthropic.retext,
            join=anthropic.join,
            legal_id=anthropic.legal_id,
            ends=anthropic.ends,
            closing=anthropic.closing,
            opaque=anthropic.OPAQUE,
        ),
        Codec(
            gemini.name,
            gemini.decode,
            gemini.encode,
            gemini.places,
            gemini.retext,
            join=gemini.join,
            ends=gemini.ends,
            opaque=gemini.OPAQUE,
        ),
        Codec(
            ai_sdk.name,
            ai_sdk.decode,
            ai_sdk.encode,
            ai_sdk.places,
            ai_sdk.retext,
            ai_sdk.EMPTY,
            legal_id=ai_sdk.legal_id,
            ends=ai_sdk.ends,
            opaque=ai_sdk.OPAQUE,
        ),
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

    def places(payload: Json) -> Iterator[tuple[Path, ...]]:
        return (tuple((name, *path) for path in paths) for paths in codec.places(payload[name]))

    blocks = frozenset[str]().union(*(CODECS[wire].opaque for wire in FORMATS))  # frameworks pass those on
    return Codec(
        name,
        decode,
        encode,
        places,
        codec.retext,
        codec.empty,
        join if codec.join else None,
        opaque=codec.opaque | blocks,
    )


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


def codec_for(format: str | None) -> Codec:
    """Returns the codec of a message's format; plain role-and-text messages are read as those of OpenAI Chat."""
    if format in CODECS:
        return CODECS[format]
    return codec_of("openai-chat" if format is None or format == COMMON else format_name(format))


def is_known(part: Opaque) -> bool:
    """Whether this part, which is kept as it came, is of a kind that the codec of its format expects."""
    return is_format(part.origin) and part.kind in codec_of(part.origin).opaque


def decode_all(
    messages: Iterable[MessageLike], format: str | None = None, *, borrow: bool = False
) -> tuple[list[Message], str]:
    """Decodes payloads or SDK objects into neutral messages; returns them with their format.

    Payloads are copied, neutral messages pass through. Plain text alone gives the format `common`. With
    `borrow=True` simple payloads are not copied: only for callers that drop them before returning.
    """
    require_message_list(messages)
    if (format is None or format == COMMON) and isinstance(messages, list) and (talk := _plain_talk(messages)):
        return talk, COMMON
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
            if (
                type(content) is str
                and content
                and len(item) == 2
                and (role == "user" or role == "assistant")
                and next(iter(item)) == "role"  # without a payload the order of keys would be lost
            ):
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


def _plain_talk(messages: list[Any]) -> list[Message]:
    """Decodes a conversation of two without tools, in half the time of the loop over all kinds; empty for others."""
    if set(map(type, messages)) != {dict} or set(map(len, messages)) != {2}:
        return []
    if set(map(next, map(iter, messages))) != {"role"}:  # without a payload the order of keys would be lost
        return []
    texts, roles = ([message.get(name) for message in messages] for name in ("content", "role"))
    if set(map(type, texts)) != {str} or "" in texts or set(map(type, roles)) != {str} or not {*roles} <= _SPEAKERS:
        return []
    return list(map(Message, roles, zip(map(Text, texts))))


_SPEAKERS = frozenset(("user", "assistant"))


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
    codec = codec_for(name)
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
    short = len(payload) == 2 and next(iter(payload)) == "role"
    if short and type(content) is str and content and payload["role"] in _TEXT_ROLES:
        return Message(payload["role"], (Text(content),))
    return _decode_common(payload)


def decode_payloads(payloads: list[Json], format: str) -> list[Message]:
    """Decodes what `encode_all` returned for this format."""
    return decode_all(payloads, None if format == COMMON else format)[0]


def encode_all(messages: Sequence[Message], format: str) -> list[Json]:
    """Encodes messages in this format: unchanged ones byte for byte, all others from their parts.

    Results from another format join those of their batch, if this format requires one message for them.
    """
    codec = codec_for(format)
    name, encode, join = codec.name, codec.encode, codec.join
    flat = name in PLAIN
    calls = CallLookup(messages, name, codec.legal_id)
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
        if message.edits and not message.parts:
            continue  # hidden
        if raw is not None and (message.format == name or _can_pass_through(message, name)):
            payloads = [copy_json(message.payload if message.edits else raw)]
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
    if format == ai_sdk.name and raw.get("role") == "system" and not isinstance(raw.get("content"), str):
        return False
    return format == openai_chat.name or (format in PLAIN and raw.get("role") != "developer")


def detect_format(payloads: Iterable[Json]) -> str:
    """Returns the format of these payloads; `common` if they are plain text and fit several."""
    return narrow_formats(enumerate(payloads), ALL)


def narrow_formats(payloads: Iterable[tuple[int, Json]], possible: frozenset[str]) -> str:
    """Returns the format of these payloads among those still possible; raises UnknownFormat if none fits."""
    for index, payload in payloads:
        fits = formats_of(payload)
        if fits is possible:
            continue
        if not fits and "content" in payload and "role" in payload and payload["role"] not in [*openai_chat.ROLES]:
            roles = ", ".join(openai_chat.ROLES)
            raise UnknownFormat(f"Message {index} has the role {payload['role']!r}: use one of {roles}.")
        if not fits and isinstance(content := payload.get("content", ""), bytes | int | float | None):
            cure = "decode them, content.decode()" if isinstance(content, bytes) else "use a text, or a list of parts"
            raise UnknownFormat(f"Message {index} has {_kind(content)} as its content: {cure}.")
        if not fits:
            raise UnknownFormat(
                f"Message {index} is in no known format (keys: {', '.join(map(str, payload)) or 'none'}): "
                f"pass format=, one of {', '.join(FORMATS)}."
            )
        if not possible & fits:
            raise UnknownFormat(
                f"Message {index} looks like {_either(fits)}, but others like {_either(possible)}: "
                f"pass messages of one format at a time."
            )
        possible = fits if fits <= possible else possible & fits
    return next(iter(possible)) if len(possible) == 1 else COMMON


def _kind(content: object) -> str:
    return "bytes" if isinstance(content, bytes) else "None" if content is None else f"the number {content}"


def _either(formats: frozenset[str]) -> str:
    return " or ".join(sorted(formats - FRAMEWORKS.keys() or formats))


def formats_of(payload: Json) -> frozenset[str]:
    """Returns all formats in which this payload could be a message."""
    role = payload.get("role")
    if payload.get("type") is not None:
        return _formats_of_item(payload)
    if role == "tool":
        if payload.get("content") == [] and "tool_call_id" not in payload:
            return _CHAT | _AI_SDK
        return _AI_SDK if ai_sdk.is_tool_content(payload.get("content")) else _CHAT
    if role == "assistant" and ("tool_calls" in payload or "toolCalls" in payload):
        return _CHAT if "tool_calls" in payload else _AI_SDK
    if "parts" in payload and "content" not in payload:
        return _GEMINI if role is None or str(role) in gemini.ROLES else _NONE
    if not isinstance(role, str) or role not in openai_chat.ROLES:
        return _RESPONSES if _is_reference(payload) else _FRAMEWORKS.get(framework_in(payload), _NONE)
    if role == "function" or not _CHAT_FIELDS.isdisjoint(payload):
        return _CHAT
    if "output_config" in payload:
        return _ANTHROPIC
    fits = _formats_of_content(payload.get("content"))
    return fits - _ANTHROPIC - _AI_SDK if role == "developer" else fits


def _is_reference(payload: Json) -> bool:
    """Whether this is a reference to a stored item; its type may be null."""
    return "id" in payload and payload.keys() <= {"id", "type", "agent"}


def _formats_of_item(payload: Json) -> frozenset[str]:
    kind = payload["type"]
    if kind == "message":
        return _ANTHROPIC if "stop_reason" in payload else _RESPONSES
    known = isinstance(kind, str) and (
        kind == "reasoning" or kind.endswith(("_call", "_output")) or kind in openai_responses.OPAQUE
    )
    return _RESPONSES if known else _NONE


def _formats_of_content(content: Any) -> frozenset[str]:
    if isinstance(content, str):
        return PLAIN
    if not isinstance(content, list):
        return _NONE
    if not content:
        return _PLAIN_OR_CONVERSE
    if has_converse_blocks(content):
        return _FRAMEWORKS[CONVERSE]
    fits = PLAIN
    for part in content:
        if isinstance(part, dict):
            kind = str(part.get("type"))
            has = _FORMATS_BY_PART.get(kind, PLAIN)
            if kind in ai_sdk.SHARED and ai_sdk.is_media(part):
                has = _AI_SDK
        else:
            has = _CHAT if isinstance(part, str) else _NONE
        if has is not fits:
            fits = has if has <= fits else fits & has
    return fits
