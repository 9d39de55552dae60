"""Renders a story for `messages`. System text before the first turn is the `system` parameter, not a message."""

from typing import Any

from histories.media import LINK, PDF, PNG
from histories.script import (
    Call,
    Media,
    Model,
    Result,
    Results,
    Step,
    Story,
    Summary,
    System,
    Text,
    Thought,
    User,
)


def render(story: Story) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for step in story.steps:
        if messages or not isinstance(step, System):
            messages += _messages(step, story)
    return messages


def _messages(step: Step, story: Story) -> list[dict[str, Any]]:
    match step:
        case System(text):
            return [{"role": "system", "content": text}]
        case Summary(text):
            block = {"type": "compaction", "content": text, "signature": "EuYBCkQY"}
            return [{"role": "assistant", "content": [block]}]
        case User(parts):
            return _message("user", [_part(part) for part in parts], story)
        case Model(parts):
            return _message("assistant", [_part(part) for part in parts], story)
        case Results(results) if story.split:
            return [{"role": "user", "content": [_result(result)]} for result in results]
        case Results(results):
            return _message("user", [_result(result) for result in results], story)


def _message(role: str, blocks: list[dict[str, Any]], story: Story) -> list[dict[str, Any]]:
    """A careful client omits empty texts, and messages without content."""
    if not story.careless:
        blocks = [block for block in blocks if block != {"type": "text", "text": ""}]
        if not blocks:
            return []
    content: Any = blocks
    if story.terse and len(blocks) == 1 and blocks[0]["type"] == "text":
        content = blocks[0]["text"]
    return [{"role": role, "content": content}]


def _part(part: Text | Media | Thought | Call) -> dict[str, Any]:
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Media():
            return _media(part)
        case Thought(_, seal, redacted) if redacted:
            return {"type": "redacted_thinking", "data": seal}
        case Thought(text, seal):
            return {"type": "thinking", "thinking": text, "signature": seal}
        case Call(id, name, args):
            return {"type": "tool_use", "id": f"toolu_{id}", "name": name, "input": args}


def _media(media: Media) -> dict[str, Any]:
    if media.form == "file":
        source = {"type": "base64", "media_type": "application/pdf", "data": PDF}
        return {"type": "document", "source": source}
    if media.form == "link":
        return {"type": "image", "source": {"type": "url", "url": LINK}}
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}


def _result(result: Result) -> dict[str, Any]:
    content: Any = result.text
    if result.media:
        content = [{"type": "text", "text": result.text}, _media(result.media)]
    block = {"type": "tool_result", "tool_use_id": f"toolu_{result.id}", "content": content}
    return {**block, "is_error": True} if result.failed else block
