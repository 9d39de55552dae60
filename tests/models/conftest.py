"""Models of every provider, connected to a local server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.models import Anthropic, Gemini, OpenAIChat, OpenAIResponses
from providers import ProviderServer
from providers.fixtures import serve

__all__ = ["serve"]

KINDS: dict[str, Callable[..., Any]] = {
    "openai": lambda server, **more: OpenAIChat("gpt-test", base_url=server.openai_url, **more),
    "openai-responses": lambda server, **more: OpenAIResponses("gpt-test", base_url=server.openai_url, **more),
    "anthropic": lambda server, **more: Anthropic("claude-test", base_url=server.anthropic_url, **more),
    "gemini": lambda server, **more: Gemini("gemini-test", base_url=server.gemini_url, **more),
}


@pytest.fixture(params=KINDS)
def connect(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Makes a model of one provider for a server."""

    def make(server: ProviderServer, **more: Any) -> Any:
        return KINDS[request.param](server, **more)

    return make


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    names = "OPENAI_API_KEY OPENAI_BASE_URL ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN ANTHROPIC_BASE_URL"
    for name in [*names.split(), "GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL"]:
        monkeypatch.delenv(name, raising=False)
