"""A small summariser that reads what it is given and says what it read, in the shape that it is asked for."""

from __future__ import annotations

import json
import re

from providers import Request, Say

_MARKED = r"<({0}-[0-9a-f]+)>\n(.*?)\n</\1>"
_ENTRY = re.compile(r"(?m)^\[(\d+)\] (USER|ASSISTANT|TOOL|SYSTEM):\n(.*)$")
_EARLIER = ("earlier-summary", "previous-summary", "summary")
_CONVERSATION = ("conversation", "new-messages")


def marked(prompt: str, *names: str) -> str:
    """What stands between marks of one of these names."""
    for name in names:
        if found := re.search(_MARKED.format(name), prompt, re.DOTALL):
            return found[2]
    return ""


def limit_of(request: Request) -> int | None:
    body = request.body
    return body.get("max_tokens") or body.get("max_completion_tokens") or body.get("max_output_tokens")


def summarise(request: Request) -> Say:
    """What the person asked, first and last, and what an earlier summary had; at most what is allowed."""
    prompt = request.prompt
    asked = [text[:120] for _, role, text in _ENTRY.findall(marked(prompt, *_CONVERSATION)) if role == "USER"]
    points = [*asked[:2], *asked[-2:]] if len(asked) > 4 else asked
    before = marked(prompt, *_EARLIER)
    text = _shaped(prompt, points or ["nothing in particular"], "" if before == "(none)" else before)
    most = 4 * (limit_of(request) or 100_000)
    return Say(text[:most], finish="stop" if len(text) <= most else "length")


def _shaped(prompt: str, points: list[str], before: str) -> str:
    told = "\n".join(f"- The person said: {point}" for point in points)
    if "### Completed Work" in prompt:
        return (
            "### Completed Work\n| File/Component | Action | Description |\n| --- | --- | --- |\n"
            f"| the work | went on | as asked |\n\n### Key Technical Decisions\n{told}\n\n"
            "### Current State\n- Working on: what was asked last\n- Last completed: what was asked before\n\n"
            "### Pending Work\n- [ ] whatever is left\n"
        )
    had = f"\nBefore that:\n{before[:1_500]}" if before else ""
    if "state_delta" in prompt:
        delta = {"tasks": [{"text": points[-1][:80], "status": "open"}], "key_decisions": [points[0][:80]]}
        return json.dumps({"summary": f"KEY FACTS\n{told}{had}\nOPEN THREADS\n- none", "state_delta": delta})
    return f"What was said:\n{told}{had}"
