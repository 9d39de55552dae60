"""Renders a story for `generateContent`. System text before the first turn is `systemInstruction`."""

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
    contents: list[dict[str, Any]] = []
    calls: list[str] = []
    for step in story.steps:
        if isinstance(step, System) and not contents:
            continue
        if isinstance(step, Model) and step.calls:
            calls = [call.id for call in step.calls]
        content = _content(step, calls, story)
        if isinstance(step, Model) and step.calls and not story.careless:
            # a call may not follow a model turn: text just before it belongs to the same turn
            while contents and contents[-1]["role"] == "model" and not _calls_in(contents[-1]):
                content["parts"][:0] = contents.pop()["parts"]
        contents.append(content)
    return contents


def _calls_in(content: dict[str, Any]) -> bool:
    return any("functionCall" in part for part in content["parts"])


def _content(step: Step, calls: list[str], story: Story) -> dict[str, Any]:
    match step:
        case System(text):
            return {"role": "user", "parts": [{"text": text}]}
        case Summary(text):
            return {"role": "user", "parts": [{"text": f"Summary of the conversation so far: {text}"}]}
        case User(parts):
            return {"role": "user", "parts": [_part(part) for part in parts]}
        case Model(parts):
            return {"role": "model", "parts": _spoken(parts, story.ids)}
        case Results(results):
            order = list(results)
            if not story.ids and not story.careless:  # only their order shows which call they answer
                order.sort(key=lambda result: calls.index(result.id) if result.id in calls else len(calls))
            responses = [part for result in order for part in _response(result, story.ids)]
            return {"role": "user" if story.terse else "function", "parts": responses}


def _part(part: Text | Media) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"text": part.text}
    if part.form == "link":
        return {"fileData": {"mimeType": "image/png", "fileUri": LINK}}
    if part.form == "file":
        return {"inlineData": {"mimeType": "application/pdf", "data": PDF}}
    return {"inlineData": {"mimeType": "image/png", "data": PNG}}


def _spoken(parts: tuple[Thought | Text | Call, ...], ids: bool) -> list[dict[str, Any]]:
    """The signature of a thought is on the part that follows it."""
    found: list[dict[str, Any]] = []
    seal = ""
    for part in parts:
        match part:
            case Thought():
                seal = part.seal
                if not part.redacted:
                    found.append({"text": part.text, "thought": True})
                continue
            case Text(text):
                found.append({"text": text})
            case Call(id, name, args):
                body = {"id": id, "name": name, "args": args} if ids else {"name": name, "args": args}
                found.append({"functionCall": body})
        if seal:
            found[-1]["thoughtSignature"] = seal
            seal = ""
    return found


def _response(result: Result, ids: bool) -> list[dict[str, Any]]:
    body = {"name": result.name, "response": {"error" if result.failed else "result": result.text}}
    part = {"functionResponse": {"id": result.id, **body} if ids else body}
    return [part, _part(result.media)] if result.media else [part]
