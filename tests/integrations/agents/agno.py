"""Agno's `Agent`."""

from __future__ import annotations

from typing import Any

from agno.agent import Agent
from agno.compaction import Compaction
from agno.compression.manager import CompressionManager
from agno.models.openai import OpenAIChat
from tests.integrations.harbour_task import SYSTEM, Harbour, read_log

from holdfast.integrations.agno import compacting


def chat_model(server: Harbour) -> OpenAIChat:
    return OpenAIChat(id="harbor-1", base_url=server.openai_url, api_key="sk-harbor-0123456789", max_retries=0)


def run(server: Harbour, model: OpenAIChat | None = None, **options: Any) -> str:
    agent = Agent(
        model=model or chat_model(server),
        tools=[read_log],
        system_message=SYSTEM,
        telemetry=False,
        **options,
    )
    result = agent.run(server.task.prompt)
    if result.status != "COMPLETED":
        raise RuntimeError(result.content)
    return str((result.messages or [])[-1].content)


def with_holdfast(server: Harbour, **options: Any) -> str:
    return run(server, compacting(chat_model(server), **options))


OWN = {
    "nothing": run,
    "CompressionManager": lambda server: run(
        server,
        compression_manager=CompressionManager(model=chat_model(server), compress_tool_results_limit=10),
    ),
    "Compaction": lambda server: run(
        server, compaction=Compaction(model=chat_model(server), compact_at_tokens=server.task.window // 2)
    ),
}
