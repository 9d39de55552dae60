"""No API key or header appears in logs, events, errors or reprs, whatever a server echoes."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from holdfast import SessionService, SQLiteStore
from holdfast.models import Notice
from providers import ProviderServer, Request, Status

pytestmark = pytest.mark.anyio

KEY = "sk-plantedkey-0123456789abcdef"


def echo_headers(request: Request) -> Status:
    """A server, or a proxy, whose error echoes headers and key."""
    return Status(400, f"Bad request. Headers were: {dict(request.headers)}; the key {KEY} is known to us.")


@pytest.mark.parametrize("provider", ["openai:gpt-4o", "openai-responses:gpt-4o", "anthropic:claude-test"])
async def test_key_echoed_by_a_server_appears_nowhere(
    provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    notices: list[Notice] = []
    with ProviderServer(echo_headers) as server:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.anthropic_url)
        async with SessionService(SQLiteStore(tmp_path / "s.db"), summarizer=provider) as service:
            await service.create(id="s")
            for number in range(12):
                await service.append("s", {"role": "user", "content": f"{number} " + "words of a message " * 30})
            result = await service.compact("s", budget=500, notify=notices.append)
            exported = await service.export("s")
            outputs: list[Any] = [
                result,
                vars(result),
                result.why,
                result.remarks,
                result.messages,
                result.checkpoint,
                exported,
                notices,
                service.model,
            ]
    assert server.requests and KEY in str(server.requests[0].headers), "the key was sent to the provider"
    assert result.fallback == "ledger"
    for output in outputs:
        assert KEY not in repr(output)
        assert "plantedkey" not in repr(output)
    assert "plantedkey" not in caplog.text
    assert b"plantedkey" not in (tmp_path / "s.db").read_bytes()
