"""A conversation continued with another provider's model: every request is valid for that provider."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast import MemoryStore, SessionService
from holdfast.agent import Agent, Keeper
from holdfast.agent.tools import Toolbox, WorkingFolder, approve_all, file_tools
from holdfast.models import Anthropic, Gemini, OpenAIChat, OpenAIResponses
from providers import Answer, Call, ProviderServer, Request, Say

pytestmark = pytest.mark.anyio
MODELS = {
    "openai-chat": lambda server: OpenAIChat("gpt-test", base_url=server.openai_url, api_key="k"),
    "openai-responses": lambda server: OpenAIResponses("gpt-test", base_url=server.openai_url, api_key="k"),
    "anthropic": lambda server: Anthropic("claude-test", base_url=server.anthropic_url, api_key="k"),
    "gemini": lambda server: Gemini("gemini-test", base_url=server.gemini_url, api_key="k"),
}


def script(request: Request) -> Answer:
    """Cycles through reasoning, two parallel calls, one call, and an answer."""
    place = len(request.body.get("messages") or request.body.get("input") or request.body.get("contents") or ()) % 5
    look = Call("read_file", {"path": "tides.txt"})
    if place in (1, 2):
        return Say("I look twice.", thinking="Both at once.", calls=(look, look))
    return Say(calls=(look,)) if place == 3 else Say("High water is at nine.", thinking="That is all.")


@pytest.mark.sampled(6)
@pytest.mark.parametrize("first", MODELS)
@pytest.mark.parametrize("second", MODELS)
async def test_switching_providers_keeps_requests_valid(tmp_path: Path, first: str, second: str) -> None:
    (tmp_path / "tides.txt").write_text("low 3\nhigh 9\n")
    sessions = SessionService(MemoryStore())
    record = await sessions.create()
    with ProviderServer(script) as server:
        for name in (first, second, first):
            model: Any = MODELS[name](server)
            box = Toolbox(file_tools(WorkingFolder(tmp_path)), approve_all)
            agent = Agent(
                Keeper(sessions, record.id, window=50_000), model, box, on_event=lambda event: None, max_steps=6
            )
            for prompt in ("When is high water?", "And tomorrow?"):
                finished = await agent.run(prompt)
                assert finished.status in ("done", "max_steps"), finished
        assert not server.refused, server.refused
    shown = str(list(await sessions.context(record.id)))
    assert shown.count("high 9") >= 2, "tool results are visible"
