"""No key and no header ever appears in logs, events, errors or reprs, whatever a server echoes."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from holdfast import Notice, SessionService, SQLiteStore
from providers import ProviderServer, Request, Status

pytestmark = pytest.mark.anyio

KEY = "sk-plantedkey-0123456789abcdef"


def echoes(request: Request) -> Status:
    """A server, or a proxy before it, that says too much."""
    return Status(400, f"Bad request. Headers were: {dict(request.headers)}; the key {KEY} is known to us.")


@pytest.mark.parametrize("provider", ["openai:gpt-4o", "openai-responses:gpt-4o", "anthropic:claude-test"])
async def test_a_planted_key_is_nowhere(
    provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    heard: list[Notice] = []
    with ProviderServer(echoes) as server:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.anthropic_url)
        async with SessionService(SQLiteStore(tmp_path / "s.db"), summarizer=provider) as service:
            await service.create(id="s")
            for number in range(12):
                await service.append("s", {"role": "user", "content": f"{number} " + "words that are said " * 30})
            result = await service.compact("s", budget=500, notify=heard.append)
            exported = await service.export("s")
            told: list[Any] = [
                result,
                vars(result),
                result.why,
                result.remarks,
                result.messages,
                result.checkpoint,
                exported,
                heard,
                service.model,
            ]
    assert server.requests and KEY in str(server.requests[0].headers), "it was sent where it belongs"
    assert result.fallback == "ledger"
    for thing in told:
        assert KEY not in repr(thing)
        assert "plantedkey" not in repr(thing)
    assert "plantedkey" not in caplog.text
    assert b"plantedkey" not in (tmp_path / "s.db").read_bytes()
