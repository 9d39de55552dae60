"""Validates `input` of `POST /v1/responses`."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

_OUTPUT_OF = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "computer_call": "computer_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
}
_CALL_OF = {output: call for call, output in _OUTPUT_OF.items()}
_SERVED = {  # run by the API or by an MCP server: complete in themselves
    "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call",
    "tool_search_call", "mcp_call", "mcp_list_tools", "mcp_approval_request", "program", "compaction",
    "agent_message", "multi_agent_call", "multi_agent_call_output",
}  # fmt: skip
_OTHER = {
    "mcp_approval_response", "tool_search_output", "program_output", "additional_tools", "item_reference",
    "compaction_trigger", "configuration_update",
}  # fmt: skip
_ALONE = {"function_call_output"}
"""Outputs that may name a tool instead of a call."""
_ROLES = ("user", "assistant", "system", "developer")
_PARTS = {"assistant": {"output_text", "refusal"}}
_INPUT_PARTS = {"input_text", "input_image", "input_file", "input_audio"}
_PREFIX = {"message": "msg", "reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc"}
_TEXT_OF = {"function_call": "arguments", "custom_tool_call": "input"}
_LONGEST_ID = 64


def complaints(messages: list[dict[str, Any]], *, pending_ok: bool = True) -> list[str]:
    """Judge every item alone, then calls against outputs and reasoning against the item after it."""
    if not messages:
        return ["One of 'input' or 'previous_response_id' or 'prompt' must be provided. (input)"]
    found = [text for i, item in enumerate(messages) for text in _item(item, f"input[{i}]")]
    items = [item if isinstance(item, dict) else {} for item in messages]
    found += _twice(items)
    found += _pairs(items, pending_ok)
    found += _programs(items)
    found += _approvals(items)
    found += _reasoning(items)
    for i, item in enumerate(items[:-1]):
        if _kind(item) == "compaction_trigger":
            found.append(f"Invalid 'input[{i}]': 'compaction_trigger' must be the final input item.")
    return found


def bound_reasoning(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> list[str]:
    """Return a complaint for each item kept with its `id` but without the reasoning it came from.

    The API knows the pair by its ids, so only the earlier history shows what belonged together; an item
    whose `id` was stripped is a new item to the API and is bound to nothing.
    """
    cause = {
        item["id"]: thought["id"]
        for thought, item in pairwise(before)
        if _kind(thought) == "reasoning" and thought.get("id") and item.get("id")
    }
    found = []
    for i, item in enumerate(after):
        wanted = cause.get(item.get("id"))
        if wanted and (i == 0 or after[i - 1].get("id") != wanted):
            found.append(
                f"Item '{item['id']}' of type '{_kind(item)}' was provided without its required 'reasoning' "
                f"item: '{wanted}'. (input[{i}])"
            )
    return found


def _kind(item: dict[str, Any]) -> str:
    if kind := item.get("type"):
        return str(kind)
    return "message" if "role" in item else "item_reference"


def _typed(where: str, expected: str, value: object) -> str:
    return f"Invalid type for '{where}': expected {expected}, but got {type(value).__name__} instead."


def _item(item: object, where: str) -> Iterator[str]:
    if not isinstance(item, dict):
        yield _typed(where, "an object", item)
        return
    kind = _kind(item)
    if kind not in {"message", "reasoning"} | _OUTPUT_OF.keys() | _CALL_OF.keys() | _SERVED | _OTHER:
        yield f"Invalid value: '{kind}'. ({where}.type)"
        return
    for key in ("id", "call_id"):
        if len(str(item.get(key) or "")) > _LONGEST_ID:
            yield f"Invalid '{where}.{key}': string too long. Expected a maximum length of {_LONGEST_ID}."
    if item.get("id") and not str(item["id"]).startswith(_PREFIX.get(kind, "")):
        yield f"Invalid '{where}.id': '{item['id']}'. Expected an ID that begins with '{_PREFIX[kind]}'."
    if kind == "message":
        yield from _message(item, where)
    elif kind == "reasoning" and not isinstance(item.get("summary"), list):
        yield f"Missing required parameter: '{where}.summary'."
    elif kind in _OUTPUT_OF or kind in _CALL_OF:
        yield from _call(item, kind, where)


def _message(item: dict[str, Any], where: str) -> Iterator[str]:
    role, content = str(item.get("role")), item.get("content")
    if role not in _ROLES:
        known = ", ".join(f"'{name}'" for name in _ROLES)
        yield f"Invalid value: '{role}'. Supported values are: {known}. ({where}.role)"
    elif isinstance(content, list):
        if not content:
            yield f"Invalid '{where}.content': empty array. Expected an array with minimum length 1."
        yield from _parts(content, _PARTS.get(role, _INPUT_PARTS), f"{where}.content")
    elif not isinstance(content, str):
        yield _typed(f"{where}.content", "one of an array of objects or string", content)


def _parts(parts: list[Any], known: set[str], where: str) -> Iterator[str]:
    for j, part in enumerate(parts):
        kind = str(part.get("type")) if isinstance(part, dict) else ""
        if kind not in known:
            names = ", ".join(f"'{name}'" for name in sorted(known))
            yield f"Invalid value: '{kind}'. Supported values are: {names}. ({where}[{j}])"
        elif kind in ("input_text", "output_text") and not isinstance(part.get("text"), str):
            yield f"Missing required parameter: '{where}[{j}].text'."


def _call(item: dict[str, Any], kind: str, where: str) -> Iterator[str]:
    if not _call_id(item) and kind not in _ALONE:
        yield f"Missing required parameter: '{where}.call_id'."
    if text := _TEXT_OF.get(kind):
        if not item.get("name"):
            yield f"Missing required parameter: '{where}.name'."
        if not isinstance(item.get(text), str):
            yield _typed(f"{where}.{text}", "a string", item.get(text))
    if kind in ("function_call_output", "custom_tool_call_output"):
        output = item.get("output")
        if isinstance(output, list):
            yield from _parts(output, _INPUT_PARTS, f"{where}.output")
        elif not isinstance(output, str):
            yield _typed(f"{where}.output", "one of an array of objects or string", output)


def _call_id(item: dict[str, Any]) -> str:
    own = item.get("id") if _kind(item) == "local_shell_call_output" else None
    return str(item.get("call_id") or own or "")


def _words(call: str) -> str:
    return call.replace("_", " ")


def _twice(items: list[dict[str, Any]]) -> Iterator[str]:
    ids: set[str] = set()
    calls: set[str] = set()
    outputs: set[str] = set()
    for i, item in enumerate(items):
        name, kind = str(item.get("id") or ""), _kind(item)
        if name and name in ids:
            yield f"Duplicate item found with id {name}. Remove duplicate items from your input. (input[{i}])"
        ids.add(name)
        group = calls if kind in _OUTPUT_OF else outputs if kind in _CALL_OF else None
        if group is None or not (call := _call_id(item)):
            continue
        if call in group and group is outputs:
            yield f"Duplicate {kind} for call_id {call}. (input[{i}])"
        elif call in group:
            yield f"Duplicate 'call_id': {call}. (input[{i}])"
        group.add(call)


def _pairs(items: list[dict[str, Any]], pending_ok: bool) -> Iterator[str]:
    """A call needs an output of its kind somewhere after it; a reference may replace either."""
    referred = any(_kind(item) == "item_reference" for item in items)
    outputs: dict[str, list[int]] = {}
    for i, item in enumerate(items):
        if _kind(item) in _CALL_OF:
            outputs.setdefault(_call_id(item), []).append(i)
    called: dict[str, str] = {}
    for i, item in enumerate(items):
        kind, name = _kind(item), _call_id(item)
        if kind in _OUTPUT_OF:
            called[name] = kind
            answered = any(n > i and _answers(items[n], kind) for n in outputs.get(name, ()))
            if not answered and not referred and not (pending_ok and _waiting(items[i + 1 :])):
                yield f"No tool output found for {_words(kind)} {name}. (input[{i}])"
        elif (
            kind in _CALL_OF
            and (name or kind not in _ALONE)
            and not referred
            and not _answers(item, called.get(name, ""))
        ):
            yield f"No tool call found for {_words(_CALL_OF[kind])} output with call_id {name}. (input[{i}])"


def _programs(items: list[dict[str, Any]]) -> Iterator[str]:
    """A program comes before its calls and its output, and ends before the user speaks again."""
    referred = any(_kind(item) == "item_reference" for item in items)
    started: set[str] = set()
    running: dict[str, int] = {}
    for i, item in enumerate(items):
        kind, name = _kind(item), str(item.get("call_id"))
        caller = item.get("caller") or {}
        if caller.get("type") == "program" and caller.get("caller_id") not in started and not referred:
            yield f"No program found for {_words(kind)} with caller_id {caller.get('caller_id')}. (input[{i}])"
        if kind == "program":
            started.add(name)
            running[name] = i
        elif kind == "program_output":
            running.pop(name, None)
            if name not in started and not referred:
                yield f"No program found for program output with call_id {name}. (input[{i}])"
    spoken = max((i for i, item in enumerate(items) if item.get("role") == "user"), default=-1)
    for name, i in running.items():
        if i < spoken:
            yield f"No program output found for program {name}. (input[{i}])"


def _approvals(items: list[dict[str, Any]]) -> Iterator[str]:
    """An approval, and the call that was approved, name a request before them."""
    asked: set[str] = set()
    for i, item in enumerate(items):
        if _kind(item) in ("mcp_approval_request", "item_reference"):
            asked.add(str(item.get("id")))
        elif (name := item.get("approval_request_id")) and name not in asked:
            yield f"No approval request found for {_words(_kind(item))} with id {name}. (input[{i}])"


def _answers(item: dict[str, Any], call: str) -> bool:
    """A local shell call is also answered by a function's output: Codex does so."""
    kind = _kind(item)
    return kind == _OUTPUT_OF.get(call) or (call == "local_shell_call" and kind == "function_call_output")


def _waiting(later: list[dict[str, Any]]) -> bool:
    """True while nothing follows but the rest of the model's turn and then outputs for it."""
    answers = [n for n, item in enumerate(later) if _kind(item) in _CALL_OF]
    start = answers[0] if answers else len(later)
    return len(answers) == len(later) - start and all(_from_model(item) for item in later[:start])


def _from_model(item: dict[str, Any]) -> bool:
    kind = _kind(item)
    if kind == "message":
        return item.get("role") == "assistant"
    return kind in _OUTPUT_OF or kind in _SERVED or kind in ("reasoning", "item_reference")


def _reasoning(items: list[dict[str, Any]]) -> Iterator[str]:
    """Checked by id: reasoning sent without one (encrypted, nothing stored) has no pair."""
    for i, item in enumerate(items):
        if _kind(item) != "reasoning" or not item.get("id"):
            continue
        following = next((other for other in items[i + 1 :] if _kind(other) != "reasoning"), None)
        if following is None or not _from_model(following):
            yield (
                f"Item '{item['id']}' of type 'reasoning' was provided without its required following item. "
                f"(input[{i}])"
            )
