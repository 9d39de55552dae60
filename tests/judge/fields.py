"""Known fields of each provider, to reject unknown ones on request.

Only the kinds that pass through a compactor are listed; other kinds are not checked.
"""

from collections.abc import Iterator
from typing import Any

from judge.gemini import get

_ANTHROPIC = {
    "message": "role content clear_at output_config cache_control",
    "text": "type text cache_control citations",
    "image": "type source cache_control transformations",
    "document": "type source cache_control citations context title",
    "thinking": "type thinking signature",
    "redacted_thinking": "type data",
    "tool_use": "type id name input cache_control caller toolset_name",
    "tool_result": "type tool_use_id content is_error cache_control toolset_name",
    "compaction": "type content encrypted_content signature tool_changes cache_control",
}
_CHAT = {
    "system": "role content name",
    "developer": "role content name",
    "user": "role content name",
    "assistant": "role content name refusal audio tool_calls function_call annotations",
    "tool": "role content tool_call_id",
    "function": "role content name",
}
_RESPONSES = {
    "message": "type role content id status phase",
    "reasoning": "type id summary content encrypted_content status",
    "function_call": "type id call_id name arguments status caller namespace async",
    "function_call_output": "type id call_id output status caller name namespace",
    "custom_tool_call": "type id call_id name input status caller namespace async",
    "custom_tool_call_output": "type id call_id output status caller",
    "compaction": "type id encrypted_content",
}
_GEMINI = {
    "content": "role parts",
    "part": "text thought thoughtSignature inlineData fileData functionCall functionResponse executableCode "
    "codeExecutionResult toolCall toolResponse videoMetadata mediaResolution partMetadata audioTranscription "
    "mediaProcessing speechMetadata",
    "functionCall": "id name args partialArgs willContinue",
    "functionResponse": "id name response parts scheduling willContinue",
}
_AI_SDK = {
    "message": "role content providerOptions experimental_providerMetadata id toolCalls",
    "text": "type text",
    "image": "type image mediaType mimeType",
    "file": "type data mediaType mimeType filename",
    "reasoning": "type text signature",
    "redacted-reasoning": "type data",
    "tool-call": "type toolCallId toolName args input providerExecuted",
    "tool-result": "type toolCallId toolName result experimental_content isError output",
}


def unknown(messages: list[dict[str, Any]], profile: str) -> list[str]:
    """Return a complaint for each field the provider does not know."""
    walk = {"anthropic": _anthropic, "gemini": _gemini, "openai-chat": _chat, "openai-responses": _responses}
    walk["ai-sdk"] = _ai_sdk
    return list(walk[profile](messages))


def _dicts(values: object) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the dicts; other values are rejected for their shape elsewhere."""
    for i, value in enumerate(values if isinstance(values, list) else ()):
        if isinstance(value, dict):
            yield i, value


def _strange(value: dict[str, Any], known: dict[str, str], kind: str) -> list[str]:
    return [key for key in value if key not in known[kind].split()] if kind in known else []


def _anthropic(messages: list[dict[str, Any]]) -> Iterator[str]:
    for i, message in _dicts(messages):
        for key in _strange(message, _ANTHROPIC, "message"):
            yield f"messages.{i}.{key}: Extra inputs are not permitted"
        yield from _blocks(message.get("content"), f"messages.{i}.content")


def _blocks(content: object, where: str) -> Iterator[str]:
    for j, block in _dicts(content):
        kind = str(block.get("type"))
        for key in _strange(block, _ANTHROPIC, kind):
            yield f"{where}.{j}.{kind}.{key}: Extra inputs are not permitted"
        if kind == "tool_result":
            yield from _blocks(block.get("content"), f"{where}.{j}.tool_result.content")


def _chat(messages: list[dict[str, Any]]) -> Iterator[str]:
    for i, message in _dicts(messages):
        for key in _strange(message, _CHAT, str(message.get("role"))):
            yield f"Unknown parameter: 'messages[{i}].{key}'."


def _responses(messages: list[dict[str, Any]]) -> Iterator[str]:
    for i, item in _dicts(messages):
        for key in _strange(item, _RESPONSES, str(item.get("type", "message"))):
            yield f"Unknown parameter: 'input[{i}].{key}'."


def _ai_sdk(messages: list[dict[str, Any]]) -> Iterator[str]:
    for i, message in _dicts(messages):
        for key in _strange(message, _AI_SDK, "message"):
            yield f"Unrecognized key: '{key}' (messages[{i}])"
        for j, part in _dicts(message.get("content")):
            for key in _strange(part, _AI_SDK, str(part.get("type"))):
                if key not in ("providerOptions", "experimental_providerMetadata"):
                    yield f"Unrecognized key: '{key}' (messages[{i}].content[{j}])"


def _gemini(messages: list[dict[str, Any]]) -> Iterator[str]:
    for i, content in _dicts(messages):
        yield from _names(content, "content", f"contents[{i}]")
        for j, part in _dicts(content.get("parts")):
            yield from _names(part, "part", f"contents[{i}].parts[{j}]")
            for kind in ("functionCall", "functionResponse"):
                if isinstance(body := get(part, kind), dict):
                    yield from _names(body, kind, f"contents[{i}].parts[{j}].{kind}")


def _names(value: dict[str, Any], kind: str, where: str) -> Iterator[str]:
    """Compare without underscores and case: the API reads both spellings of a name."""
    known = {name.lower() for name in _GEMINI[kind].split()}
    for key in value:
        if key.replace("_", "").lower() not in known:
            yield f"Invalid JSON payload received. Unknown name \"{key}\" at '{where}': Cannot find field."
