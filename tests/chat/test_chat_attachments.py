"""Attached files and commands of the user: valid for every provider, and no words of the user in a compaction."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from chat_harness import ChatHarness

from holdfast.agent.events import Attached, RunFinished
from holdfast.chat.commands import run_command
from holdfast.models.anthropic import Anthropic
from holdfast.models.gemini import Gemini
from holdfast.models.openai import OpenAIChat, OpenAIResponses
from providers import ProviderServer
from providers.fixtures import serve

__all__ = ["serve"]
pytestmark = pytest.mark.anyio
PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
MODELS = {
    "anthropic": lambda server: Anthropic("claude-sonnet-5", base_url=server.anthropic_url, api_key="k"),
    "gemini": lambda server: Gemini("gemini-2.5-pro", base_url=server.gemini_url, api_key="k"),
    "openai": lambda server: OpenAIChat("gpt-5", base_url=server.openai_url, api_key="k"),
    "responses": lambda server: OpenAIResponses("gpt-5", base_url=server.openai_url, api_key="k"),
}


@pytest.mark.parametrize("provider", MODELS)
async def test_attachments_are_valid_requests_of_every_provider(
    tmp_path: Path, serve: Callable[..., ProviderServer], provider: str
) -> None:
    (tmp_path / "tides.csv").write_text("low,3\n")
    (tmp_path / "berth.png").write_bytes(PNG)
    server = serve("Aye.")
    harness = ChatHarness(tmp_path, ["unused"])
    harness.chat.model = MODELS[provider](server)
    async with harness.open() as chat:
        for line in ("What is in @tides.csv and on @berth.png?", "!echo $((6*7))", "And now?"):
            await run_command(chat, line)
            await chat.wait_idle()
        assert await harness.sessions.verify(chat.record.id) == []
    assert [event.status for event in harness.events if isinstance(event, RunFinished)] == ["done", "done"]
    sent = str(server.requests[-1].body)
    assert "low,3" in sent and "$ echo $((6*7))" in sent and "42" in sent and "iVBORw0KGgo" in sent
    assert sent.index("low,3") < sent.index("What is in @tides.csv")


async def test_compaction_does_not_take_attached_content_for_the_words_of_the_user(tmp_path: Path) -> None:
    harness = ChatHarness(tmp_path, ["It has berths. " * 400] * 9, window=8_000)
    async with harness.open() as chat:
        for line in ("Always answer in fathoms. See @long.txt", "!seq 1000 1200", "Two?", "Three?", "Four?"):
            await run_command(chat, line)
            await chat.wait_idle()
        await chat.compact(without_model=True)
        assert await harness.sessions.verify(chat.record.id) == []
        page = (await harness.texts())[0]
        assert "Always answer in fathoms." in page and "1150" not in page
    assert [event.files for event in harness.events if isinstance(event, Attached)] == [("long.txt (120 lines)",)]
