"""Validates `contents` of `generateContent`."""

from collections.abc import Iterator
from functools import cache
from typing import Any

_ROLES = ("user", "model", "function")
_DATA = (
    "text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode",
    "codeExecutionResult", "toolCall", "toolResponse",
)  # fmt: skip


def complaints(
    messages: list[dict[str, Any]], *, pending_ok: bool = True, need_thought_signature: bool = False
) -> list[str]:
    """Judge every content alone, then the turns around function calls."""
    if not messages:
        return ["* GenerateContentRequest.contents: contents is not specified"]
    found = [text for i, content in enumerate(messages) for text in _content(content, i, len(messages))]
    turns = [content if isinstance(content, dict) else {} for content in messages]
    if turns[0].get("role") == "model":
        found.append("Please ensure that multiturn requests begin with a user turn. (contents[0].role)")
    for i in range(len(turns)):
        found += _turn(turns, i, pending_ok)
    return found + (list(_signatures(turns)) if need_thought_signature else [])


def get(part: dict[str, Any], name: str) -> Any:
    """Return a field by its JSON name or by its proto name: the API reads both."""
    return part[name] if name in part else part.get(_snake(name))


@cache
def _snake(name: str) -> str:
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in name)


def _content(content: object, i: int, count: int) -> Iterator[str]:
    if not isinstance(content, dict):
        yield f"Invalid value at 'contents[{i}]' (type.googleapis.com/google.ai.generativelanguage.Content)"
        return
    role, parts = content.get("role"), content.get("parts")
    if role not in _ROLES and not (role is None and count == 1):
        yield f"Please use a valid role: user, model. (contents[{i}].role: {role!r})"
    if not isinstance(parts, list) or not parts:
        yield f"* GenerateContentRequest.contents[{i}].parts: contents.parts must not be empty."
        return
    for j, part in enumerate(parts):
        yield from _part(part, role, f"contents[{i}].parts[{j}]")


def _part(part: object, role: object, where: str) -> Iterator[str]:
    """Empty text passes: such a part may hold a thought signature, which must be sent back."""
    given = [name for name in _DATA if isinstance(part, dict) and get(part, name) is not None]
    if not isinstance(part, dict) or not given:
        missing = "required oneof field 'data' must have one initialized field"
        yield f"* GenerateContentRequest.{where}.data: {missing}"
        return
    if len(given) > 1:
        yield f"Invalid value at '{where}' (oneof): field 'data' is already set. Cannot set '{given[1]}'"
    if not isinstance(get(part, "text"), str | None):
        yield f"Invalid value at '{where}.text' (TYPE_STRING)"
    for name, snake, payload in (
        ("functionCall", "function_call", "args"),
        ("functionResponse", "function_response", "response"),
    ):
        body = get(part, name)
        if body is None:
            continue
        if not isinstance(body, dict) or not body.get("name"):
            yield f"* GenerateContentRequest.{where}.{snake}.name: Name cannot be empty."
        elif not isinstance(body.get(payload), dict) and (payload == "response" or body.get(payload) is not None):
            yield f"Invalid value at '{where}.{snake}.{payload}' (type.googleapis.com/google.protobuf.Struct)"
    if get(part, "functionCall") is not None and role != "model":
        yield f"Please ensure that function call parts have the role model. ({where})"
    if get(part, "functionResponse") is not None and role == "model":
        yield f"Please ensure that function response parts have the role user. ({where})"


def _bodies(content: dict[str, Any], name: str) -> list[dict[str, Any]]:
    parts = content.get("parts")
    bodies = [get(part, name) for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return [body for body in bodies if isinstance(body, dict)]


def _turn(turns: list[dict[str, Any]], i: int, pending_ok: bool) -> Iterator[str]:
    calls, responses = _bodies(turns[i], "functionCall"), _bodies(turns[i], "functionResponse")
    if calls and (i == 0 or turns[i - 1].get("role") == "model"):
        yield (
            "Please ensure that function call turn comes immediately after a user turn or after a function "
            f"response turn. (contents[{i}])"
        )
    if responses and not (i and _bodies(turns[i - 1], "functionCall")):
        yield (
            f"Please ensure that function response turn comes immediately after a function call turn. (contents[{i}])"
        )
    if calls:
        given = _bodies(turns[i + 1], "functionResponse") if i + 1 < len(turns) else []
        last = i + 1 == len(turns) or (i + 2 == len(turns) and given and not _says(turns[-1]))
        yield from _matched(calls, given, i, waiting=bool(pending_ok and last and len(given) < len(calls)))


def _says(content: dict[str, Any]) -> bool:
    return any(isinstance(part, dict) and get(part, "text") is not None for part in content["parts"])


def _matched(calls: list[dict[str, Any]], given: list[dict[str, Any]], i: int, waiting: bool) -> Iterator[str]:
    if len(calls) != len(given) and not waiting:
        yield (
            "Please ensure that the number of function response parts is equal to the number of function "
            f"call parts of the function call turn. (contents[{i}]: {len(calls)} calls, {len(given)} responses)"
        )
        return
    ids = all(body.get("id") for body in calls + given)
    asked = [(str(body.get("id")) if ids else "", str(body.get("name"))) for body in calls]
    answered = [(str(body.get("id")) if ids else "", str(body.get("name"))) for body in given]
    if ids:
        fits = len(set(answered)) == len(answered) and set(answered) <= set(asked)
    else:  # without ids only the order of the calls can be compared
        rest = iter(asked)
        fits = all(name in rest for name in answered)
    if not fits:
        yield (
            "Please ensure that the function response parts match the function call parts of the function "
            f"call turn. (contents[{i + 1}]: asked {[name for _, name in asked]}, "
            f"answered {[name for _, name in answered]})"
        )


def _signatures(turns: list[dict[str, Any]]) -> Iterator[str]:
    """Only the current turn is checked, and in each of its steps only the first of parallel calls."""
    asked = [i for i, turn in enumerate(turns) if turn.get("role") != "model" and not _bodies(turn, "functionResponse")]
    start = asked[-1] if asked else 0
    for i, turn in enumerate(turns[start:], start):
        parts = turn.get("parts")
        first = next(
            (
                (j, part)
                for j, part in enumerate(parts if isinstance(parts, list) else ())
                if isinstance(part, dict) and isinstance(get(part, "functionCall"), dict)
            ),
            None,
        )
        if first and not get(first[1], "thoughtSignature"):
            yield (
                "Function call is missing a thought_signature in functionCall parts. Additional data, "
                f"function call `{get(first[1], 'functionCall').get('name')}`, position {i}. "
                f"(contents[{i}].parts[{first[0]}])"
            )
