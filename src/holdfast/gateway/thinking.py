"""Thinking in messages of Anthropic's format: it counts only under the compaction under which it was made."""

from __future__ import annotations

from ..messages import Drop, Edit, Json, Replace, patch

_THINKING = ("thinking", "redacted_thinking")
_ONLY_THINKING = "(This reply had only thinking.)"


def content_blocks(message: Json) -> list[Json]:
    """Returns the content of a message that is a list of blocks."""
    content = message.get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def has_thinking(message: Json) -> bool:
    """Whether a message has thinking, readable or not."""
    return any(block.get("type") in _THINKING for block in content_blocks(message))


def strip_thinking(message: Json) -> Json:
    """Returns a message without its thinking; one that has nothing else says so."""
    thoughts = [at for at, block in enumerate(content_blocks(message)) if block.get("type") in _THINKING]
    if not thoughts:
        return message
    edits: list[Edit] = [Drop(("content", at)) for at in thoughts]
    if len(thoughts) == len(message["content"]):
        edits = [Replace(("content",), [{"type": "text", "text": _ONLY_THINKING}])]
    stripped: Json = patch(message, edits)
    return stripped
