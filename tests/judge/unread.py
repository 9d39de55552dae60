"""Results that no reply has followed, as a provider sees them: are they whole, where they would fit (H10)?

Shares no code with the library: `unread_results` reads a request in each wire format, `cut_results` compares it with
what the client had, and `marked_results` needs the request alone, by the marks that a shortened result has.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

_Json = dict[str, Any]
_MARK = re.compile(r"\s*\[(?:cut: [\d,]+|Old tool result cleared\.)\]")
_LEFT_OUT = re.compile(r"\[… ([\d,]+) characters left out")
_REPLY_ITEMS = ("reasoning", "function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call")
_NO_TEXT = frozenset(
    ("type", "role", "id", "call_id", "tool_call_id", "tool_use_id", "toolCallId", "toolName", "name", "status", "kind")
)


class CutResult(NamedTuple):
    """A result of which the request does not hold all."""

    whole: str
    """Its text; empty if only the request is known."""
    left_out: int
    """Characters that the request does not hold."""


def unread_results(messages: list[_Json], profile: str) -> list[str]:
    """Return the texts of the results that no reply of the model has followed, in their order."""
    results, is_reply = _READERS[profile]
    newest = next((at for at in reversed(range(len(messages))) if is_reply(messages[at])), -1)
    return [_text(found) for message in messages[newest + 1 :] for found in results(message)]


def cut_results(before: list[_Json], after: list[_Json], profile: str) -> list[CutResult]:
    """Return the unread results of a client's list that the request made of it does not hold whole."""
    shown = unread_results(after, profile)
    lost = list((Counter(unread_results(before, profile)) - Counter(shown)).elements())
    rest = [text for text in shown if _MARK.match(text)]
    return [
        CutResult(text, max(0, len(text) - (len(rest[at]) if at < len(rest) else 0))) for at, text in enumerate(lost)
    ]


def marked_results(messages: list[_Json], profile: str) -> list[CutResult]:
    """Return the unread results of a request that begin with the mark of a shortened or cleared one."""
    found = []
    for text in unread_results(messages, profile):
        if _MARK.match(text):
            counts = [int(count.replace(",", "")) for count in _LEFT_OUT.findall(text)]
            found.append(CutResult("", sum(counts)))
    return found


def complaints(messages: list[_Json], profile: str, *, size: int, window: int | None) -> list[str]:
    """Return a complaint for each unread result of a request that is cut although its window has room for it.

    `size` are the request's tokens, a quarter of its characters. The reply takes a quarter of the window, or 16,384
    tokens, and task, rules and what the library's tokenizer counts otherwise another quarter.
    """
    marked = marked_results(messages, profile)
    free = None if window is None else (window - min(16_384, window // 4)) * 3 // 4 - size
    left_out = sum(one.left_out for one in marked) // 4
    if not marked or (free is not None and left_out > free and all(one.left_out for one in marked)):
        return []
    return [f"{len(marked)} unread results are cut: {size} tokens of a window of {window}, {left_out} left out"]


def newest_part(messages: list[_Json], profile: str) -> list[_Json]:
    """Return what must stay: system messages, the calls whose results are unread, and what the user asked last.

    That is the message before the calls, and what was said since.
    """
    results, is_reply = _READERS[profile]
    newest = next((at for at in reversed(range(len(messages))) if is_reply(messages[at])), -1)
    start = newest if any(True for message in messages[newest + 1 :] for _ in results(message)) else len(messages)
    while start > 0 and start < len(messages) and is_reply(messages[start - 1]):
        start -= 1
    spoken = [at for at, message in enumerate(messages[:start]) if _is_spoken(message, results)]
    lead = [m for m in messages[: max(start, 0)] if m.get("role") in ("system", "developer")]
    asked = [messages[spoken[-1]]] if spoken else []
    return [*lead, *asked, *messages[max(start, 0) :]]


def _is_spoken(message: _Json, results: Callable[[_Json], Iterator[Any]]) -> bool:
    return message.get("role") == "user" and not any(True for _ in results(message))


def _text(value: Any) -> str:
    """All strings in a result, without what names it."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "\n".join(_text(item) for key, item in value.items() if key not in _NO_TEXT)
    return "\n".join(map(_text, value)) if isinstance(value, list) else ""


def _chat_results(message: _Json) -> Iterator[Any]:
    if message.get("role") in ("tool", "function"):
        yield message.get("content")


def _response_results(item: _Json) -> Iterator[Any]:
    if str(item.get("type", "")).endswith("_output"):
        yield item.get("output")


def _is_response_reply(item: _Json) -> bool:
    return item.get("role") == "assistant" or item.get("type") in _REPLY_ITEMS


def _block_results(message: _Json) -> Iterator[Any]:
    blocks = message.get("content")
    for block in blocks if message.get("role") == "user" and isinstance(blocks, list) else ():
        if isinstance(block, dict) and block.get("type") == "tool_result":
            yield block.get("content")


def _gemini_results(content: _Json) -> Iterator[Any]:
    for part in content.get("parts") or () if content.get("role") != "model" else ():
        if "functionResponse" in part:
            yield part["functionResponse"].get("response")


def _sdk_results(message: _Json) -> Iterator[Any]:
    parts = message.get("content")
    for part in parts if message.get("role") == "tool" and isinstance(parts, list) else ():
        if part.get("type") == "tool-result":
            yield [part[name] for name in ("output", "result", "experimental_content") if name in part]


def _has_role(role: str) -> Callable[[_Json], bool]:
    return lambda message: message.get("role") == role


_READERS: dict[str, tuple[Callable[[_Json], Iterator[Any]], Callable[[_Json], bool]]] = {
    "openai-chat": (_chat_results, _has_role("assistant")),
    "openai-responses": (_response_results, _is_response_reply),
    "anthropic": (_block_results, _has_role("assistant")),
    "gemini": (_gemini_results, _has_role("model")),
    "ai-sdk": (_sdk_results, _has_role("assistant")),
}
