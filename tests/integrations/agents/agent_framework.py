"""Microsoft Agent Framework's `Agent.run`."""

from __future__ import annotations

from typing import Any

import anyio
from agent_framework import Agent, SlidingWindowStrategy, SummarizationStrategy, TruncationStrategy
from agent_framework.openai import OpenAIChatCompletionClient
from openai import AsyncOpenAI
from tests.integrations.harbour_task import SYSTEM, Harbour, read_log

from holdfast.integrations.agent_framework import HoldfastChatMiddleware, HoldfastStrategy


def run(server: Harbour, middleware: Any = (), strategy: Any = None) -> str:
    async def work() -> str:
        async with AsyncOpenAI(base_url=server.openai_url, api_key="sk-harbor-0123456789", max_retries=0) as openai:
            client = OpenAIChatCompletionClient(model="harbor-1", async_client=openai)
            client.function_invocation_configuration["max_iterations"] = 1_000
            made = strategy(client) if strategy else None
            agent = Agent(
                client=client,
                instructions=SYSTEM,
                tools=[read_log],
                middleware=list(middleware),
                compaction_strategy=made,
            )
            return str((await agent.run(server.task.prompt)).messages[-1].text)

    return anyio.run(work)


def with_holdfast(server: Harbour, store: Any = None, **options: Any) -> str:
    return run(server, [HoldfastChatMiddleware(store=store, session_id="harbour" if store else None, **options)])


def with_strategy(server: Harbour) -> str:
    return run(server, strategy=lambda client: HoldfastStrategy(server.task.window))


OWN = {
    "nothing": run,
    "SlidingWindowStrategy": lambda server: run(
        server, strategy=lambda client: SlidingWindowStrategy(keep_last_groups=8)
    ),
    "TruncationStrategy": lambda server: run(
        server, strategy=lambda client: TruncationStrategy(max_n=40, compact_to=20)
    ),
    "SummarizationStrategy": lambda server: run(server, strategy=lambda client: SummarizationStrategy(client=client)),
}
