"""The loop in docs/agent.md, run against a server that validates every request as its provider would."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from holdfast.hooks.events import CompactionCompleted
from holdfast.messages import Tool, encode_tools
from providers import Answer, Call, ProviderServer, Request, Say

pytestmark = pytest.mark.anyio
PAGE = Path(__file__).parents[2] / "docs" / "agent.md"
LOOK = Tool("look", "Look at a berth.", {"type": "object", "properties": {"berth": {"type": "integer"}}})


async def test_loop_in_docs_runs_for_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = 0

    def script(request: Request) -> Answer:
        nonlocal steps
        if "tools" not in request.body:
            return "## Completed Work\n- Many berths were looked at.\n## Pending Work\n- [ ] the others"
        steps += 1
        return Say(calls=(Call("look", {"berth": steps}),)) if steps < 60 else "All were looked at."

    code = re.search(r"```python\n(from anthropic.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert code is not None
    events: list[Any] = []
    given = {
        "PROMPT": "You look after berths.",
        "TOOLS": encode_tools("anthropic", [LOOK]),
        "answered": lambda call: {"type": "tool_result", "tool_use_id": call["id"], "content": "deep water, " * 300},
    }
    with ProviderServer(script, window=20_000) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.anthropic_url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
        exec(code[1], given)
        keeper: Any = given["keeper"]
        keeper.listen = events.append
        history: list[Any] = [{"role": "user", "content": "Look at all berths."}]
        work: Any = given["work"]
        assert await work(history) == "All were looked at."
        client: Any = given["client"]
        await client.close()
        assert not server.refused and server.overflowed == 1
    assert (await keeper.size()).window == 20_000
    assert sum(isinstance(event, CompactionCompleted) for event in events) >= 2
    assert len(history) > 100, "the caller's list keeps the whole history"
