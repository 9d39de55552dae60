"""One server, event loop and client for all tests of a module: creating a client takes longer than a call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from holdfast.models import Anthropic, OpenAIChat
from providers import ProviderServer


@pytest.fixture(scope="module")
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        yield server


@pytest.fixture(scope="module")
def portal() -> Iterator[BlockingPortal]:
    with start_blocking_portal() as portal:
        yield portal


@pytest.fixture(scope="module")
def models(server: ProviderServer, portal: BlockingPortal) -> Iterator[dict[str, Any]]:
    """Real SDKs over plain HTTP."""
    made: dict[str, Any] = {
        "openai": OpenAIChat("gpt-test", base_url=server.openai_url, api_key="sk-very-secret-1234567"),
        "anthropic": Anthropic("claude-test", base_url=server.anthropic_url, api_key="sk-very-secret-1234567"),
    }
    yield made
    for model in made.values():
        portal.call(model.aclose)
