"""Renders a story for `responses`: a flat list of items."""

import json
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

_FREE = "apply_patch"  # the one tool that takes free text: a custom tool


def render(story: Story) -> list[dict[str, Any]]:
    items = [item for step in story.steps for item in _items(step, story)]
    for n, item in enumerate(items):
        if item.get("type") == "message" and item["role"] == "assistant":
            item["id"] = f"msg_{n:04d}"
        if not story.ids:
            item.pop("id", None)
    return items


def _items(step: Step, story: Story) -> list[dict[str, Any]]:
    match step:
        case System(text):
            return [{"role": "developer", "content": text}]
        case Summary(text):
            return [{"type": "compaction", "id": "cmp_0001", "encrypted_content": f"gAAAA{text}"}]
        case User(parts):
            return [_user(parts, story)]
        case Model(parts):
            return [_text_part(part, story) for part in parts] or [_text_part(Text(""), story)]
        case Results(results):
            return [_output(result) for result in results]


def _user(parts: tuple[Text | Media, ...], story: Story) -> dict[str, Any]:
    if story.terse and all(isinstance(part, Text) for part in parts):
        return {"role": "user", "content": "\n".join(part.text for part in parts if isinstance(part, Text))}
    content = [_text(part.text) if isinstance(part, Text) else _media(part) for part in parts]
    return {"type": "message", "role": "user", "content": content}


def _text(text: str) -> dict[str, Any]:
    return {"type": "input_text", "text": text}


def _media(media: Media) -> dict[str, Any]:
    if media.form == "file":
        data = f"data:application/pdf;base64,{PDF}"
        return {"type": "input_file", "filename": "note.pdf", "file_data": data}
    url = LINK if media.form == "link" else f"data:image/png;base64,{PNG}"
    return {"type": "input_image", "image_url": url, "detail": "auto"}


def _text_part(part: Thought | Text | Call, story: Story) -> dict[str, Any]:
    match part:
        case Thought(text, seal, redacted):
            summary = [] if redacted else [{"type": "summary_text", "text": text}]
            return {
                "type": "reasoning",
                "id": f"rs_{seal}",
                "summary": summary,
                "encrypted_content": f"gAAAA{seal}",
            }
        case Text(text):
            if story.terse and not story.ids:
                return {"role": "assistant", "content": text}
            content = [{"type": "output_text", "text": text, "annotations": []}]
            return {"type": "message", "role": "assistant", "status": "completed", "content": content}
        case Call(id, name, args):
            call = {"call_id": f"call_{id}", "name": name, "status": "completed"}
            text = json.dumps(args, ensure_ascii=False)
            if name == _FREE:
                return {"type": "custom_tool_call", "id": f"ctc_{id}", **call, "input": text}
            return {"type": "function_call", "id": f"fc_{id}", **call, "arguments": text}


def _output(result: Result) -> dict[str, Any]:
    kind = "custom_tool_call_output" if result.name == _FREE else "function_call_output"
    output = [_text(result.text), _media(result.media)] if result.media else result.text
    return {"type": kind, "call_id": f"call_{result.id}", "output": output}
