"""Pydantic AI's `Agent.run`."""

from __future__ import annotations

from typing import Any

import anyio
from openai import AsyncOpenAI
from pydantic_ai import Agent, ModelMessage, UsageLimits
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from tests.integrations.harbour_task import SYSTEM, Harbour, read_log

from holdfast.integrations.pydantic_ai import HoldfastCapability

UNLIMITED = UsageLimits(request_limit=None)


def run(server: Harbour, *capabilities: Any) -> str:
    async def work() -> str:
        async with AsyncOpenAI(base_url=server.openai_url, api_key="sk-harbor-0123456789", max_retries=0) as client:
            model = OpenAIChatModel("harbor-1", provider=OpenAIProvider(openai_client=client))
            agent = Agent(model, instructions=SYSTEM, tools=[read_log], capabilities=capabilities)
            return (await agent.run(server.task.prompt, usage_limits=UNLIMITED)).output

    return anyio.run(work)


def with_holdfast(server: Harbour, **options: Any) -> str:
    return run(server, HoldfastCapability(**options))


def keep_newest(messages: list[ModelMessage]) -> list[ModelMessage]:
    """The history processor of the documentation: the last messages only."""
    return messages[-20:] if len(messages) > 20 else messages


OWN = {
    "nothing": run,
    "ProcessHistory, last 20 messages": lambda server: run(server, ProcessHistory(keep_newest)),
}
