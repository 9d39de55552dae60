"""Renders a story for the AI SDK: as version 4 has it for a client without ids, else as later versions do."""

from typing import Any

from histories.media import LINK, PDF, PNG
from histories.script import Call, Media, Model, Result, Results, Step, Story, Summary, System, Text, Thought, User


def render(story: Story) -> list[dict[str, Any]]:
    return [message for step in story.steps for message in _messages(step, story)]


def _messages(step: Step, story: Story) -> list[dict[str, Any]]:
    match step:
        case System(text):
            return [{"role": "system", "content": text}]
        case Summary(text):
            return [{"role": "system", "content": f"Summary of the conversation so far: {text}"}]
        case User(parts) | Model(parts):
            role = "user" if isinstance(step, User) else "assistant"
            return _message(role, [_part(part, story) for part in parts], story)
        case Results(results):
            shown = [_result(result, story) for result in results]
            return [
                {"role": "tool", "content": each} for each in ([[one] for one in shown] if story.split else [shown])
            ]


def _message(role: str, parts: list[dict[str, Any]], story: Story) -> list[dict[str, Any]]:
    """A careful client leaves out messages without content."""
    if not parts and not story.careless:
        return []
    if story.terse and len(parts) == 1 and parts[0]["type"] == "text":
        return [{"role": role, "content": parts[0]["text"]}]
    return [{"role": role, "content": parts}]


def _part(part: Text | Media | Thought | Call, story: Story) -> dict[str, Any]:
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Media(form):
            data = {"file": PDF, "link": LINK, "image": PNG}[form]
            mime = "mediaType" if story.ids else "mimeType"
            if form == "file":
                return {"type": "file", "data": data, mime: "application/pdf"}
            return {"type": "image", "image": data, mime: "image/png"}
        case Thought():
            return _thought(part, story)
        case Call(id, name, args):
            return {"type": "tool-call", "toolCallId": f"call_{id}", "toolName": name} | (
                {"input": args} if story.ids else {"args": args}
            )


def _thought(thought: Thought, story: Story) -> dict[str, Any]:
    if story.ids:
        sealed = {"redactedData" if thought.redacted else "signature": thought.seal}
        text = "" if thought.redacted else thought.text
        return {"type": "reasoning", "text": text, "providerOptions": {"anthropic": sealed}}
    if thought.redacted:
        return {"type": "redacted-reasoning", "data": thought.seal}
    return {"type": "reasoning", "text": thought.text, "signature": thought.seal}


def _result(result: Result, story: Story) -> dict[str, Any]:
    own = {"type": "tool-result", "toolCallId": f"call_{result.id}", "toolName": result.name}
    picture = result.media and result.media.form != "link"
    words = {"type": "text", "text": result.text}
    if not story.ids:
        if picture:
            own["experimental_content"] = [words, {"type": "image", "data": PNG, "mimeType": "image/png"}]
        return own | {"result": result.text} | ({"isError": True} if result.failed else {})
    if picture:
        return own | {
            "output": {"type": "content", "value": [words, {"type": "media", "data": PNG, "mediaType": "image/png"}]}
        }
    return own | {"output": {"type": "error-text" if result.failed else "text", "value": result.text}}
