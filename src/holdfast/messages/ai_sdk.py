"""Messages of the AI SDK (Vercel's `ai`): `CoreMessage` of version 4, `ModelMessage` of later ones.

The parts of both are the same but for calls (`args`, later `input`) and results (`result`, later `output`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import Any

from .json_text import from_json, to_json
from .parts import (
    RAW_ARGUMENTS,
    End,
    FindCall,
    Json,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from .patch import Drop, Edit, Path, Replace
from .payload import (
    ResultParts,
    as_dict,
    as_list,
    as_text,
    drop_none,
    make_legal_id,
    mime_of,
    placeholder_text,
    read_data_url,
    result_texts,
    retext_content,
    text_block,
)

name = "ai-sdk"
ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
PARTS = frozenset(
    (
        "custom",
        "reasoning",
        "reasoning-file",
        "redacted-reasoning",
        "source",
        "tool-approval-request",
        "tool-approval-response",
        "tool-call",
        "tool-result",
    )
)
"""Content parts that no other format has."""
SHARED = frozenset(("image", "file"))
"""Content parts that another format has by the same name."""
OPAQUE = frozenset(
    (
        "custom",
        "file",
        "file-id",
        "file-reference",
        "image",
        "image-file-id",
        "image-file-reference",
        "source",
        "tool-approval-request",
        "tool-approval-response",
        "tool-call",
        "tool-result",
    )
)
"""Parts that are kept and never interpreted: media held by a provider, approvals, and calls run by a provider."""
VERSION_4 = "args"
"""Kind of the calls of version 4, whose results are `result` and not `output`."""
_APPROVAL = "tool-approval-response"
_MEDIA = frozenset(
    (
        *("image", "image-data", "image-url", "image-file-id"),
        *("file", "file-data", "file-url", "file-id", "media", "reasoning-file"),
    )
)
_FILE_IDS = ("file-", "file_")
"""Prefixes by which the SDK's providers tell the id of a file from its data; neither is base64."""
_DENIED = "Tool execution denied."
"""Text that the SDK sends for a denial without a reason."""


def decode(raw: Json) -> Message:
    role = ROLES[raw["role"]]
    content = raw.get("content")
    given = [text_block("text", content)] if isinstance(content, str) and content else as_list(content)
    return Message(role, tuple(_parts(given + _calls(raw), role)), name, raw)


def _calls(raw: Json) -> list[Json]:
    """Returns the calls in a field of their own, without those that the content has as well."""
    calls = as_list(raw.get("toolCalls"))
    known = _call_ids(raw.get("content")) if calls else ()
    return [{"type": "tool-call", **call} for call in calls if call.get("toolCallId") not in known]


def _call_ids(content: Any) -> Set[Any]:
    return {part.get("toolCallId") for part in as_list(content)} - {None}


def _parts(given: list[Json], role: Role) -> list[Part]:
    answered = _answered(given) if role == "assistant" else frozenset[Any]()
    return [_part(part, role, answered) for part in given]


def _answered(given: list[Json]) -> Set[Any]:
    """Returns the calls with a result in the same message."""
    return {part.get("toolCallId") for part in given if part["type"] == "tool-result"}


def _is_provided(call: Json, answered: Set[Any]) -> bool:
    """Whether the provider ran this call: then it needs no tool message."""
    return bool(call.get("providerExecuted")) or call.get("toolCallId") in answered


def _part(part: Json, role: Role, answered: Set[Any]) -> Part:
    match part["type"]:
        case "text":
            return Text(as_text(part.get("text")))
        case "reasoning":
            return _reasoning(part)
        case "redacted-reasoning":
            return Reasoning("", None, _sealed("redactedData", part.get("data")), origin=name)
        case "tool-call" if not _is_provided(part, answered):
            return _call(part)
        case "tool-result" if role == "tool":
            return _result(part)
        case kind:
            return _media(part) or Opaque(as_text(kind), part, name)


def _reasoning(part: Json) -> Reasoning:
    """Decodes reasoning; what verifies it, signature or encrypted content, is in the options of its provider."""
    options = as_dict(part.get("providerOptions"))
    items = (as_dict(option).get("itemId") for option in options.values())
    item = next((item for item in items if isinstance(item, str)), None)
    sealed = to_json(options) if options else _sealed("signature", part.get("signature"))
    return Reasoning(as_text(part.get("text")), None, sealed, item, name)


def _sealed(key: str, value: Any) -> str | None:
    """Returns what version 4 has in a field of its own as later ones have it; only Anthropic's models need it."""
    return to_json({"anthropic": {key: value}}) if value else None


def _call(part: Json) -> ToolCall:
    given = part["input"] if "input" in part else part.get("args")
    arguments = given if isinstance(given, dict) else {RAW_ARGUMENTS: as_text(given)} if given else {}
    kind = VERSION_4 if "args" in part else "function"
    return ToolCall(as_text(part.get("toolCallId")), as_text(part.get("toolName")), arguments, kind)


def _result(part: Json) -> ToolResult:
    output = part.get("output")
    if isinstance(output, dict):
        content, failed = _output(output)
        kind = "function"
    else:
        content, failed = _version_4_content(part), bool(part.get("isError"))
        kind = VERSION_4
    return ToolResult(as_text(part.get("toolCallId")), content, failed, as_text(part.get("toolName")), kind)


def _output(output: Json) -> tuple[ResultParts, bool]:
    """Decodes an output; returns its content and whether the call failed. A value that is no text counts as JSON."""
    value = output.get("value")
    match output.get("type"):
        case "text" | "error-text" as kind:
            return _text(as_text(value)), kind == "error-text"
        case "json" | "error-json" as kind:
            return _text(to_json(value)), kind == "error-json"
        case "execution-denied":
            return _text(as_text(output.get("reason")) or _DENIED), True
        case "content":
            return tuple(map(_item, as_list(value))), False
        case kind:
            return (Opaque(as_text(kind) or "output", output, name),), False


def _version_4_content(part: Json) -> ResultParts:
    if items := as_list(part.get("experimental_content")):
        return tuple(map(_item, items))
    return _text(as_text(part.get("result", part.get("output"))))


def _text(text: str) -> ResultParts:
    return (Text(text),) if text else ()


def _item(item: Json) -> Text | Media | Opaque:
    """Decodes an item of a result's content."""
    if item["type"] == "text":
        return Text(as_text(item.get("text")))
    return _media(item) or Opaque(as_text(item["type"]), item, name)


def _media(part: Json) -> Media | None:
    """Decodes data, a URL or a file id, as they are or in an object that names which; None for any other place."""
    if part["type"] not in _MEDIA:
        return None
    field = next((field for field in ("image", "data", "url", "fileId") if field in part), "")
    where = part.get(field)
    if isinstance(where, dict) and where.get("type") in ("data", "url"):
        where = where.get(where["type"])
    if not isinstance(where, str):
        return None
    mime, title = part.get("mediaType") or part.get("mimeType"), part.get("filename")
    family = "image" if part["type"].startswith("image") else as_text(mime).partition("/")[0]
    kind: Any = family if family in ("image", "audio", "video") else "file"
    if field == "fileId" or where.startswith(_FILE_IDS):
        return Media(kind, mime, file_id=where, name=title)
    own_mime, data = read_data_url(where)
    if data is None and "://" in where:
        return Media(kind, mime, url=where, name=title)
    return Media(kind, mime or own_mime, data or where, name=title)


PROVIDER_TOOL, APPROVAL = "tool run by the provider", "approval request"
"""Kinds of edges other than between calls and their results: the result may come in a later message."""


def ends(raw: Json) -> list[End]:
    """Returns the ends of edges of approvals, and of calls that a provider runs."""
    found: list[End] = []
    given, assistant = as_list(raw.get("content")), raw.get("role") == "assistant"
    answered = _answered(given) if assistant else frozenset[Any]()
    for index, part in enumerate(given):
        kind, call_id, approval = part.get("type"), part.get("toolCallId"), part.get("approvalId")
        if kind == "tool-approval-request" and isinstance(approval, str):
            found.append(End(index, APPROVAL, approval, "opens", f"{kind} {approval!r}"))
        elif kind == _APPROVAL and isinstance(approval, str):
            found.append(End(index, APPROVAL, approval, "closes", f"{kind} {approval!r}"))
        elif assistant and isinstance(call_id, str) and kind == "tool-call" and _is_provided(part, answered):
            found.append(End(index, PROVIDER_TOOL, call_id, "opens", f"{kind} {call_id!r}"))
        elif assistant and isinstance(call_id, str) and kind == "tool-result":
            found.append(End(index, PROVIDER_TOOL, call_id, "closes", f"{kind} of {call_id!r}"))
    return found


EMPTY: Json = {"content": ""}
"""Fields that stay without their only part."""


def places(raw: Json) -> Iterator[tuple[Path, ...]]:
    """Yields where each part lies; a call may be in the content and in a field of its own."""
    content, calls = raw.get("content"), as_list(raw.get("toolCalls"))
    if isinstance(content, str) and content:
        yield (("content",),)
    for index, part in enumerate(as_list(content)):
        call_id = part.get("toolCallId") if part["type"] == "tool-call" else None
        again = (("toolCalls", at) for at, call in enumerate(calls) if call_id and call.get("toolCallId") == call_id)
        yield (("content", index), *again)
    known = _call_ids(content)
    yield from ((("toolCalls", at),) for at, call in enumerate(calls) if call.get("toolCallId") not in known)


def retext(part: Any, text: str) -> Iterable[Edit]:
    """Returns edits of a text or a result; an error stays one."""
    if isinstance(part, str):
        return [Replace((), text)]
    if part["type"] != "tool-result":
        return [Replace(("text",), text)]
    if not isinstance(output := part.get("output"), dict):
        field = "result" if "result" in part or "output" not in part else "output"
        return [Replace((field,), text), *([Drop(("experimental_content",))] if "experimental_content" in part else [])]
    match output.get("type"):
        case "text" | "error-text":
            return [Replace(("output", "value"), text)]
        case "error-json":
            return [Replace(("output", "type"), "error-text"), Replace(("output", "value"), text)]
        case "execution-denied":
            return [Replace(("output", "reason"), text)]
        case "content":
            return retext_content(output.get("value"), text, ("output", "value"), block={"type": "text"})
        case _:
            return [Replace(("output", "type"), "text"), Replace(("output", "value"), text)]


def is_media(part: Json) -> bool:
    """Whether this image or file is one of this format, by the field that holds it."""
    return "image" in part or "data" in part


def is_tool_content(content: Any) -> bool:
    """Whether this is the content of a tool message; that of other formats is text."""
    return isinstance(content, list) and any(as_dict(part).get("type") in PARTS for part in content)


def encode(message: Message, call_of: FindCall) -> list[Json]:
    """Encodes a message that has no payload of this format: results first, in a message of their own."""
    if message.role == "system":
        return _encode_system(message)
    answers = [answer for part in message.parts if (answer := _answer(part, call_of)) is not None]
    out: list[Json] = [{"role": "tool", "content": answers}] if answers else []
    role: Role = "user" if message.role == "tool" else message.role
    shown = [block for part in message.parts if (block := _render(part, role)) is not None]
    if shown or not message.parts:
        lone = len(shown) == 1 and shown[0]["type"] == "text"
        out.append({"role": role, "content": (lone and shown[0]["text"]) or shown or ""})
    return out


def _encode_system(message: Message) -> list[Json]:
    """Encodes each text as a message: the content of a system message is one string."""
    shown = (part.text if isinstance(part, Text) else placeholder_text(part) for part in message.parts)
    return [{"role": "system", "content": text} for text in list(filter(None, shown)) or [""]]


def _answer(part: Part, call_of: FindCall) -> Json | None:
    """Encodes what a tool message holds."""
    if isinstance(part, Opaque) and part.origin == name and part.kind == _APPROVAL:
        return part.data
    return _encode_result(part, call_of(part.call_id)) if isinstance(part, ToolResult) else None


def _encode_result(result: ToolResult, call: ToolCall | None) -> Json:
    own = {
        "type": "tool-result",
        "toolCallId": result.call_id,
        "toolName": result.name or (call.name if call else "tool"),
    }
    if VERSION_4 in (result.kind, call.kind if call else None):
        return own | _version_4_result(result)
    texts = result_texts(result)
    if result.is_error:
        return own | {"output": {"type": "error-text", "value": "\n".join(texts)}}
    if all(isinstance(part, Text) for part in result.content) and len(texts) < 2:
        return own | {"output": {"type": "text", "value": "".join(texts)}}
    items = [shown for part in result.content if (shown := _render_item(part)) is not None]
    return own | {"output": {"type": "content", "value": items}}


def _version_4_result(result: ToolResult) -> Json:
    body: Json = {"result": "\n".join(result_texts(result))}
    if any(isinstance(part, Media) for part in result.content) or len(result.content) > 1:
        body["experimental_content"] = [
            {"type": "image", "data": part.data, "mimeType": mime_of(part)}
            if isinstance(part, Media) and part.kind == "image" and part.data
            else text_block("text", part.text if isinstance(part, Text) else placeholder_text(part))
            for part in result.content
        ]
    return body | {"isError": True} if result.is_error else body


def _render_item(part: Text | Media | Opaque) -> Json | None:
    match part:
        case Text():
            return text_block("text", part.text)
        case Opaque(origin="ai-sdk"):
            return part.data
        case Media(data=str()):  # the one type of data that every version from 5 on reads
            return {"type": "media", "data": part.data, "mediaType": mime_of(part)}
        case Media(url=str()):
            return {"type": "image-url" if part.kind == "image" else "file-url", "url": part.url}
        case Media(file_id=str()):
            return {"type": "image-file-id" if part.kind == "image" else "file-id", "fileId": part.file_id}
    return text_block("text", text) if (text := placeholder_text(part)) else None


def _render(part: Part, role: Role) -> Json | None:
    """Encodes a part of a user or assistant message; the assistant's images are files."""
    match part:
        case Text():
            return text_block("text", part.text)
        case ToolCall():
            field = "args" if part.kind == VERSION_4 else "input"
            return {"type": "tool-call", "toolCallId": part.id, "toolName": part.name, field: part.arguments_dict}
        case Reasoning(origin="ai-sdk"):
            block: Json = {"type": "reasoning", "text": part.text}
            return block | {"providerOptions": from_json(part.encrypted)} if part.encrypted else block
        case Opaque(origin="ai-sdk"):
            return None if part.kind == _APPROVAL else part.data
        case Media() if where := part.data or part.url or part.file_id:
            if part.kind == "image" and role == "user" and not part.name:
                return drop_none({"type": "image", "image": where, "mediaType": part.mime})
            return drop_none({"type": "file", "data": where, "mediaType": mime_of(part), "filename": part.name})
    return text_block("text", text) if (text := placeholder_text(part)) else None


def legal_id(call_id: str) -> str:
    """Returns an id that every provider accepts: which one gets it is not known."""
    return make_legal_id(call_id, 40, strict=True)
