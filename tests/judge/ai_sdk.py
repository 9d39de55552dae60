"""Validates `messages` of the AI SDK: its schemas of versions 4 to 7, and that every call has its result next.

The SDK itself only wants a result before the next user message; the providers behind it want it right after the call.
"""

from collections.abc import Iterator
from typing import Any

_DATA = {"data", "url", "image", "fileId", "providerReference"}
_PARTS: dict[str, dict[str, set[str]]] = {
    "user": {"text": {"text"}, "image": {"image"}, "file": {"data"}},
    "assistant": {
        "text": {"text"},
        "file": {"data"},
        "reasoning": {"text"},
        "redacted-reasoning": {"data"},
        "reasoning-file": {"data"},
        "source": {"sourceType"},
        "custom": {"kind"},
        "tool-call": {"toolCallId", "toolName"},
        "tool-result": {"toolCallId", "toolName"},
        "tool-approval-request": {"approvalId", "toolCallId"},
    },
    "tool": {
        "tool-result": {"toolCallId", "toolName"},
        "tool-approval-response": {"approvalId", "approved"},
    },
}
_OUTPUTS = {"text": str, "error-text": str, "json": object, "error-json": object, "content": list}
_ITEMS = {
    "text", "media", "file-data", "file-url", "file-id", "file-reference", "image-data", "image-url", "image-file-id",
    "image-file-reference", "custom",
}  # fmt: skip
Json = dict[str, Any]


def complaints(messages: list[Json], *, pending_ok: bool = True) -> list[str]:
    if not messages:
        return ["Invalid prompt: messages must not be empty"]
    found = [text for i, message in enumerate(messages) for text in _message(message, f"messages[{i}]")]
    return found + list(_answers(messages, pending_ok)) + list(_references(messages))


def _message(message: object, where: str) -> Iterator[str]:
    if not isinstance(message, dict):
        yield f"Invalid prompt: The messages do not match the ModelMessage[] schema. ({where})"
        return
    role, content = message.get("role"), message.get("content")
    if role not in ("system", *_PARTS):
        yield f"Invalid prompt: invalid message role: '{role}'. ({where}.role)"
    elif role == "system" or isinstance(content, str):
        if not isinstance(content, str) or role == "tool":
            yield f"Invalid prompt: invalid content of a {role} message. ({where}.content)"
    elif not isinstance(content, list) or not content:
        yield f"Invalid prompt: a {role} message without content. ({where}.content)"
    else:
        for j, part in enumerate(content):
            yield from _part(part, str(role), f"{where}.content[{j}]")


def _part(part: object, role: str, where: str) -> Iterator[str]:
    if not isinstance(part, dict) or part.get("type") not in _PARTS[role]:
        yield f"Invalid prompt: no part of a {role} message. ({where})"
        return
    kind = str(part["type"])
    for field in sorted(_PARTS[role][kind] - part.keys()):
        yield f"Required ({where}.{field})"
    for field in ("text", "toolCallId", "toolName", "approvalId"):
        if field in part and not isinstance(part[field], str):
            yield f"Expected string ({where}.{field})"
    if kind == "file" and not isinstance(part.get("mediaType", part.get("mimeType")), str):
        yield f"Required ({where}.mediaType)"
    if kind == "tool-call" and not {"input", "args"} & part.keys():
        yield f"Required ({where}.input)"
    if kind == "tool-result":
        yield from _result(part, where)


def _result(part: Json, where: str) -> Iterator[str]:
    if "result" in part:
        return
    output = part.get("output")
    kind = output.get("type") if isinstance(output, dict) else None
    if kind == "execution-denied":
        return
    if kind not in _OUTPUTS or not isinstance(output, dict) or not isinstance(output.get("value", ()), _OUTPUTS[kind]):
        yield f"Invalid discriminator value ({where}.output)"
    elif kind == "content":
        for k, item in enumerate(output["value"]):
            if not isinstance(item, dict) or item.get("type") not in _ITEMS:
                yield f"Invalid input ({where}.output.value[{k}])"
            elif item["type"] not in ("text", "custom") and not _DATA & item.keys():
                yield f"Required ({where}.output.value[{k}])"


def _parts(message: object, role: str, kind: str) -> list[Json]:
    if not isinstance(message, dict) or message.get("role") != role or not isinstance(message.get("content"), list):
        return []
    return [part for part in message["content"] if isinstance(part, dict) and part.get("type") == kind]


def _answers(messages: list[Json], pending_ok: bool) -> Iterator[str]:
    """A turn of calls stays open until the first message that is no tool message."""
    open_calls: set[str] = set()
    answered: set[str] = set()
    for i, message in enumerate(messages):
        if isinstance(message, dict) and message.get("role") == "tool":
            for part in _parts(message, "tool", "tool-result"):
                name = str(part.get("toolCallId"))
                if name not in open_calls:
                    why = "is answered twice" if name in answered else "is no call of the message before"
                    yield f"tool result for {name}, which {why} (messages[{i}])"
                open_calls.discard(name)
                answered.add(name)
            continue
        yield from _unanswered(open_calls, i)
        results = {part.get("toolCallId") for part in _parts(message, "assistant", "tool-result")}
        calls = [
            str(part.get("toolCallId"))
            for part in _parts(message, "assistant", "tool-call")
            if not part.get("providerExecuted") and part.get("toolCallId") not in results
        ]
        if len(calls) != len(set(calls)):
            yield f"the same tool call id twice (messages[{i}])"
        open_calls, answered = set(calls), set()
    if not pending_ok:
        yield from _unanswered(open_calls, len(messages))


def _references(messages: list[Json]) -> Iterator[str]:
    """An approval needs its request (`InvalidToolApprovalError`), a provider's result the call that it is of."""
    requested: set[str] = set()
    provided: set[str] = set()
    for i, message in enumerate(messages):
        requested.update(str(part.get("approvalId")) for part in _parts(message, "assistant", "tool-approval-request"))
        results = [str(part.get("toolCallId")) for part in _parts(message, "assistant", "tool-result")]
        for part in _parts(message, "assistant", "tool-call"):
            if part.get("providerExecuted") or part.get("toolCallId") in results:
                provided.add(str(part.get("toolCallId")))
        for name in results:
            if name not in provided:
                yield f"a provider's result of {name}, which it was not called for (messages[{i}])"
        for part in _parts(message, "tool", "tool-approval-response"):
            if part.get("approvalId") not in requested:
                yield f"Tool approval response references unknown approvalId: {part.get('approvalId')} (messages[{i}])"


def _unanswered(calls: set[str], i: int) -> Iterator[str]:
    if calls:
        yield f"Tool results are missing for tool calls {', '.join(sorted(calls))}. (messages[{i}])"
