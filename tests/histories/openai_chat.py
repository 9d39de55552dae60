"""Renders a story for `chat/completions`. Reasoning is omitted: the format does not support it."""

import json
from typing import Any

from histories.media import LINK, PDF, PNG
from histories.script import Call, Media, Model, Results, Step, Story, Summary, System, Text, Thought, User


def render(story: Story) -> list[dict[str, Any]]:
    return [message for step in story.steps for message in _messages(step, story)]


def _messages(step: Step, story: Story) -> list[dict[str, Any]]:
    match step:
        case System(text):
            return [{"role": "system" if story.terse else "developer", "content": text}]
        case Summary(text):
            return [{"role": "system", "content": f"Summary of the conversation so far: {text}"}]
        case User(parts):
            return [{"role": "user", "content": _content(parts, story.terse)}]
        case Model():
            return [_assistant(step, story)]
        case Results(results):
            return [{"role": "tool", "tool_call_id": f"call_{r.id}", "content": r.text} for r in results]


def _content(parts: tuple[Text | Media, ...], terse: bool) -> str | list[dict[str, Any]]:
    if not parts and terse:
        return ""
    if len(parts) == 1 and isinstance(parts[0], Text) and terse:
        return parts[0].text
    return [{"type": "text", "text": part.text} if isinstance(part, Text) else _media(part) for part in parts]


def _media(media: Media) -> dict[str, Any]:
    if media.form == "file":
        data = f"data:application/pdf;base64,{PDF}"
        return {"type": "file", "file": {"filename": "note.pdf", "file_data": data}}
    url = LINK if media.form == "link" else f"data:image/png;base64,{PNG}"
    return {"type": "image_url", "image_url": {"url": url}}


def _assistant(step: Model, story: Story) -> dict[str, Any]:
    texts = [part.text for part in step.parts if isinstance(part, Text)]
    message: dict[str, Any] = {"role": "assistant", "content": "\n".join(texts)}
    if step.calls:
        message["tool_calls"] = [_call(call) for call in step.calls]
        if not texts:
            message["content"] = None
            if story.terse:
                del message["content"]
    if story.extras and (thoughts := [part.text for part in step.parts if isinstance(part, Thought)]):
        message["reasoning_content"] = "\n".join(thoughts)
    return message


def _call(call: Call) -> dict[str, Any]:
    function = {"name": call.name, "arguments": json.dumps(call.args, ensure_ascii=False)}
    return {"id": f"call_{call.id}", "type": "function", "function": function}
