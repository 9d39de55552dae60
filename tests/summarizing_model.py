"""A rule-based summarizer that quotes its input in the format that the prompt requests."""

from __future__ import annotations

import json
import re

from providers import Request, Say

_DELIMITED = r"<({0}-[0-9a-f]+)>\n(.*?)\n</\1>"
_ENTRY = re.compile(r"(?m)^\[(\d+)\] (USER|ASSISTANT|TOOL|SYSTEM):\n(.*)$")
_EARLIER = ("earlier-summary", "previous-summary", "summary")
_CONVERSATION = ("conversation", "new-messages")


def delimited(prompt: str, *names: str) -> str:
    """Returns the text between delimiters of one of these names."""
    for name in names:
        if found := re.search(_DELIMITED.format(name), prompt, re.DOTALL):
            return found[2]
    return ""


def limit_of(request: Request) -> int | None:
    body = request.body
    return body.get("max_tokens") or body.get("max_completion_tokens") or body.get("max_output_tokens")


def summarize(request: Request) -> Say:
    """Summarizes the first and last user messages and an earlier summary, within the allowed length."""
    prompt = request.prompt
    asked = [text[:120] for _, role, text in _ENTRY.findall(delimited(prompt, *_CONVERSATION)) if role == "USER"]
    points = [*asked[:2], *asked[-2:]] if len(asked) > 4 else asked
    before = delimited(prompt, *_EARLIER)
    text = _format(prompt, points or ["nothing in particular"], "" if before == "(none)" else before)
    most = 4 * (limit_of(request) or 100_000)
    return Say(text[:most], finish="stop" if len(text) <= most else "length")


def _format(prompt: str, points: list[str], before: str) -> str:
    bullets = "\n".join(f"- The user wrote: {point}" for point in points)
    if "### Completed Work" in prompt:
        return (
            "### Completed Work\n| File/Component | Action | Description |\n| --- | --- | --- |\n"
            f"| the work | continued | as asked |\n\n### Key Technical Decisions\n{bullets}\n\n"
            "### Current State\n- Working on: what was asked last\n- Last completed: what was asked before\n\n"
            "### Pending Work\n- [ ] whatever is left\n"
        )
    earlier = f"\nBefore that:\n{before[:1_500]}" if before else ""
    if "state_delta" in prompt:
        delta = {"tasks": [{"text": points[-1][:80], "status": "open"}], "key_decisions": [points[0][:80]]}
        return json.dumps({"summary": f"KEY FACTS\n{bullets}{earlier}\nOPEN THREADS\n- none", "state_delta": delta})
    return f"Conversation:\n{bullets}{earlier}"
