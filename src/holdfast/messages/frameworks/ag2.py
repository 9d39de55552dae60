"""ag2 events that a provider is sent: `ModelRequest`, `ModelResponse`, `ToolResultsEvent`, and provider-native items.

A dump is the event's own dictionary with the name of its class. Events by which observers follow a call, a result or
its cost repeat what those have: they are not messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, Literal

from ..json_text import to_json
from ..parts import Json, Media, Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult
from ..patch import Drop, Edit, Path, Replace
from ..payload import (
    ResultParts,
    as_dict,
    as_list,
    as_text,
    drop_none,
    mime_of,
    placeholder_text,
    retext_content,
)
from . import FrameworkCodec, split_results

name = "ag2"
_CLASS, _REPLAY, _TEXTS = "__event__", "__replay__", "texts"
_INPUTS, _TYPES, _TOOLS = (f"ag2.events.{module}." for module in ("input_events", "types", "tool_events"))
_KINDS: dict[str, Literal["image", "audio", "video", "file"]] = {
    "image": "image",
    "audio": "audio",
    "video": "video",
    "document": "file",
    "binary": "file",
}
_PLAIN = (str, int, float, bool)
_OBSERVED = frozenset(("ToolCallsEvent", "ToolCallEvent", "ToolResultEvent", "ToolErrorEvent", "ToolNotFoundEvent"))


def is_message(event: Any) -> bool:
    """Whether this event is sent to a provider, and not a copy of a part of one or telemetry."""
    kind = type(event)
    lasting = not kind.__transient__ and kind.__conversational__
    return lasting and kind.__name__ not in _OBSERVED and not hasattr(kind, "agent")


def dump(item: Any) -> list[Json]:
    if not is_message(item):
        raise TypeError("it is not sent to a model")
    kind = type(item)
    fields = {_CLASS: _class_name(kind), **_fields(item)}
    if _TEXTS in as_dict(as_dict(fields.get("message")).get("metadata")):
        fields["message"] = _with_texts_apart(fields["message"])
    replay = getattr(kind, "__replay_role__", None)
    return [fields if replay is None else {**fields, _REPLAY: replay}]


def _with_texts_apart(message: Json) -> Json:
    """Returns a dumped reply with its texts in a list: `ModelMessage` has one field for all, and metadata for each."""
    about = dict(message["metadata"])
    texts = as_list(about.pop(_TEXTS))
    return message | {"content": texts, "metadata": about} if "\n".join(texts) == message["content"] else message


def _with_texts_joined(message: Json) -> Json | None:
    texts = message["content"]
    about = as_dict(message.get("metadata")) | ({_TEXTS: texts} if len(texts) > 1 else {})
    return message | {"content": "\n".join(texts), "metadata": about} if texts else None


def _fields(event: Any) -> Json:
    """Returns what `to_dict` returns, in a third of the time: most values are plain."""
    return {key: _value(value) for key, value in vars(event).items() if key[0] != "_"}


def _value(value: Any) -> Any:
    kind = type(value)
    if value is None or kind in _PLAIN:
        return value
    if kind is list:
        return [_value(item) for item in value]
    if kind is dict:
        return {key: _value(item) for key, item in value.items()}
    if hasattr(kind, "_event_fields_"):
        return {"__event__": _class_name(kind), **_fields(value)}
    from ag2.events._serialization import serialize_value

    return serialize_value(value)


def _class_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def load(dumped: Json) -> Any:
    module, _, kind = dumped[_CLASS].rpartition(".")
    message = as_dict(dumped.get("message"))
    if isinstance(message.get("content"), list):
        dumped = dumped | {"message": _with_texts_joined(message)}
    return getattr(import_module(module), kind).from_dict(dumped)


def decode(dumped: Json) -> tuple[Role, Sequence[Part]]:
    match dumped:
        case {"__replay__": _}:
            return "assistant", [Reasoning(as_text(dumped.get("content")), origin=name)]
        case {"results": list(results)}:
            return "tool", [_result(result) for result in results]
        case {"parts": list(inputs)}:
            return "user", [_input(given) for given in inputs]
        case {"message": message, "tool_calls": calls}:
            return "assistant", [*_texts(as_dict(message)), *_files(dumped), *_calls(calls)]
        case {"summary": str(summary), "event_count": _}:
            return "user", [Text(summary)]
    return "assistant", [Opaque(dumped[_CLASS].rpartition(".")[2], dumped, name)]


def _texts(message: Json) -> list[Text]:
    """Returns the texts of a reply."""
    content = message.get("content")
    return [Text(as_text(text)) for text in (content if isinstance(content, list) else [content] if content else [])]


def _calls(calls: Any) -> Iterator[ToolCall]:
    for call in as_list(as_dict(calls).get("calls")):
        yield ToolCall(as_text(call.get("id")), as_text(call.get("name")), as_text(call.get("arguments")))


def _files(dumped: Json) -> Iterator[Media]:
    for file in as_list(dumped.get("files")):
        data = as_dict(as_dict(file).get("data"))
        about = as_dict(data.get("metadata"))
        yield Media(
            "file", about.get("media_type"), as_dict(data.get("data")).get("__bytes__"), name=about.get("filename")
        )


def _result(result: Json) -> ToolResult:
    inputs = as_list(as_dict(as_dict(result.get("result")).get("data")).get("parts"))
    content: ResultParts = tuple(part for given in inputs if isinstance(part := _input(given), Text | Media | Opaque))
    return ToolResult(as_text(result.get("parent_id")), content, "error" in result, result.get("name"))


def _input(given: Json) -> Part:
    kind = _KINDS.get(as_text(as_dict(given.get("kind")).get("value")), "file")
    match given:
        case {"content": str(text)}:
            return Text(text)
        case {"data": {"__bytes__": str(data)}, "media_type": mime}:
            return Media(kind, mime, data, name=as_dict(given.get("vendor_metadata")).get("filename"))
        case {"url": str(url)}:
            return Media(kind, url=url)
        case {"file_id": str(file_id)}:
            return Media("file", file_id=file_id, name=given.get("filename"))
        case {"data": data} if given[_CLASS].endswith(".DataInput"):
            return Text(to_json(data))
    return Opaque(given[_CLASS].rpartition(".")[2], given, name)


def places(dumped: Json) -> Iterator[tuple[Path, ...]]:
    """Yields where each part lies."""
    match dumped:
        case {"__replay__": _}:
            yield ((),)
        case {"results": list(entries)}:
            yield from _entries(("results",), entries)
        case {"parts": list(entries)}:
            yield from _entries(("parts",), entries)
        case {"message": message, "tool_calls": calls}:
            if isinstance(content := as_dict(message).get("content"), list):
                yield from _entries(("message", "content"), content)
            elif content:
                yield (("message", "content"),)
            yield from _entries(("files",), as_list(dumped.get("files")))
            yield from _entries(("tool_calls", "calls"), as_list(as_dict(calls).get("calls")))
        case {"summary": str(), "event_count": _}:
            yield (("summary",),)
        case _:
            yield ((),)


def _entries(path: Path, entries: Sequence[Any]) -> Iterator[tuple[Path, ...]]:
    return (((*path, index),) for index in range(len(entries)))


def retext(value: Any, text: str) -> Iterator[Edit]:
    """Yields edits of a text, an input or a result; data becomes a text, which is sent without quotes."""
    block = {_CLASS: f"{_INPUTS}TextInput"}
    match value:
        case str():
            yield Replace((), text)
        case {"result": {"data": {"parts": inputs}}}:
            yield from retext_content(inputs, text, ("result", "data", "parts"), block=block, field="content")
            if "error" in value:
                yield Replace(("error", "message"), text)
        case {"content": str()}:
            yield Replace(("content",), text)
        case _:
            yield from (Replace((_CLASS,), block[_CLASS]), Replace(("content",), text), Drop(("data",)))


def encode(message: Message) -> Sequence[Json]:
    """Returns dumps for a message that has none: one for all results, one for the rest."""
    results, role, rest = split_results(message)
    dumps: list[Json] = []
    if results:
        dumps.append(_event(f"{_TOOLS}ToolResultsEvent", results=[_encode_result(result) for result in results]))
    if role == "assistant":
        dumps += _encode_response(rest)
    elif role is not None:
        inputs = [shown for part in rest if (shown := _encode_input(part)) is not None]
        dumps += [_event(f"{_INPUTS}ModelRequest", parts=inputs)] if inputs or not rest else []
    return dumps


def _event(kind: str, /, **fields: Any) -> Json:
    return {_CLASS: kind, **fields}


def _encode_response(parts: Sequence[Part]) -> list[Json]:
    texts = [part.text if isinstance(part, Text) else placeholder_text(part) for part in parts if not _has_field(part)]
    texts = [text for text in texts if text]
    calls = [
        _event(f"{_TOOLS}ToolCallEvent", id=part.id, name=part.name, arguments=part.arguments_text)
        for part in parts
        if isinstance(part, ToolCall)
    ]
    files = [_encode_file(part) for part in parts if isinstance(part, Media) and part.data]
    own = [part.data for part in parts if isinstance(part, Opaque) and part.origin == name]
    if not (texts or calls or files) and parts:
        return own
    content = texts if len(texts) > 1 else "".join(texts)
    message = _event(f"{_TYPES}ModelMessage", content=content, metadata={}) if texts else None
    made = _event(f"{_TOOLS}ToolCallsEvent", calls=calls)
    return [*own, _event(f"{_TYPES}ModelResponse", message=message, tool_calls=made, files=files)]


def _has_field(part: Part) -> bool:
    """Whether a response has a field of its own for this part, or the part is an event."""
    if isinstance(part, Opaque):
        return part.origin == name
    return isinstance(part, ToolCall | Reasoning) or (isinstance(part, Media) and bool(part.data))


def _encode_file(media: Media) -> Json:
    about = drop_none({"media_type": media.mime, "filename": media.name})
    return {"__dataclass__": f"{_TYPES}BinaryResult", "data": {"data": {"__bytes__": media.data}, "metadata": about}}


def _encode_result(result: ToolResult) -> Json:
    inputs = [shown for part in result.content if (shown := _encode_input(part)) is not None]
    about: Json = {"parent_id": result.call_id, "name": result.name}
    data = {"parts": inputs, "final": False, "metadata": {}}
    about["result"] = {"__dataclass__": f"{_TOOLS}ToolResult", "data": data}
    if result.is_error:
        failure = {"__exception__": "Exception", "message": result.text}
        return _event(f"{_TOOLS}ToolErrorEvent", **about, error=failure)
    return _event(f"{_TOOLS}ToolResultEvent", **about)


def _encode_input(part: Part) -> Json | None:
    match part:
        case Text():
            return _event(f"{_INPUTS}TextInput", content=part.text)
        case Media() if part.data:
            about = {"filename": part.name} if part.name else {}
            data = {"data": {"__bytes__": part.data}, "media_type": mime_of(part), "kind": _kind(part)}
            return _event(f"{_INPUTS}BinaryInput", **data, vendor_metadata=about)
        case Media() if part.url:
            return _event(f"{_INPUTS}UrlInput", url=part.url, kind=_kind(part))
        case Media() if part.file_id:
            return _event(f"{_INPUTS}FileIdInput", file_id=part.file_id, filename=part.name)
        case Opaque(origin="ag2"):
            return part.data
        case ToolCall() | Reasoning():
            return None
    return _event(f"{_INPUTS}TextInput", content=text) if (text := placeholder_text(part)) else None


def _kind(media: Media) -> Json:
    value = "document" if media.kind == "file" else media.kind
    return {"__enum__": f"{_INPUTS}BinaryType", "value": value}


def usage(dumped: Json) -> Any:
    counts = as_dict(as_dict(dumped.get("usage")).get("data"))
    if not counts.get("prompt_tokens"):
        return None
    whole = {field: int(value) for field, value in counts.items() if value is not None}
    if dumped.get("provider") != "anthropic":
        return {field: whole.get(field, 0) for field in ("prompt_tokens", "completion_tokens")}
    renamed = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}
    return {renamed.get(field, field): value for field, value in whole.items()}


codec = FrameworkCodec(name, dump, load, decode, encode, places, retext, {"content": []}, usage)
