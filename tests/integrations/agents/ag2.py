"""ag2's `Agent`, on the Anthropic protocol."""

from __future__ import annotations

import asyncio
from typing import Any

from ag2 import Agent, KnowledgeConfig
from ag2.compact import CompactTrigger, SummarizeCompact, TailWindowCompact
from ag2.config import AnthropicConfig
from ag2.knowledge import MemoryKnowledgeStore
from ag2.middleware import HistoryLimiter, TokenLimiter
from tests.integrations.harbour_task import SYSTEM, Harbour, read_log

from holdfast.integrations.ag2 import HoldfastEventMiddleware


def model_config(server: Harbour) -> AnthropicConfig:
    return AnthropicConfig(
        model="harbor-1",
        base_url=server.anthropic_url,
        api_key="harbor-0123456789",
        max_tokens=500,
        max_retries=0,
        prompt_caching=False,  # its marks move from request to request
    )


def run(server: Harbour, *middleware: Any, **options: Any) -> str:
    return asyncio.run(loop(server, *middleware, **options))


async def loop(server: Harbour, *middleware: Any, **options: Any) -> str:
    agent = Agent("clerk", SYSTEM, config=model_config(server), tools=[read_log], middleware=middleware, **options)
    reply = await agent.ask(server.task.prompt)
    return str(await reply.content())


def with_holdfast(server: Harbour, **options: Any) -> str:
    return run(server, HoldfastEventMiddleware(**options))


def _knowledge(server: Harbour, strategy: Any) -> KnowledgeConfig:
    trigger = CompactTrigger(max_tokens=server.task.window // 2)
    return KnowledgeConfig(MemoryKnowledgeStore(), expose_tool=False, compact=strategy, compact_trigger=trigger)


OWN = {
    "nothing": run,
    "SummarizeCompact": lambda server: run(
        server, knowledge=_knowledge(server, SummarizeCompact(20, model_config(server)))
    ),
    "TailWindowCompact": lambda server: run(server, knowledge=_knowledge(server, TailWindowCompact(20))),
    "TokenLimiter": lambda server: run(server, TokenLimiter(server.task.window // 2)),
    "HistoryLimiter": lambda server: run(server, HistoryLimiter(40)),
}
