"""Strands' `Agent`, on OpenAI's protocol."""

from __future__ import annotations

from typing import Any

from strands import Agent, tool
from strands.agent.conversation_manager import (
    ConversationManager,
    NullConversationManager,
    SlidingWindowConversationManager,
    SummarizingConversationManager,
)
from strands.models.openai import OpenAIModel
from tests.integrations.harbour_task import SYSTEM, Harbour, read_log

from holdfast.integrations.strands import HoldfastConversationManager


def chat_model(server: Harbour) -> OpenAIModel:
    client = {"base_url": server.openai_url, "api_key": "sk-harbor-0123456789", "max_retries": 0}
    return OpenAIModel(client_args=client, model_id="harbor-1", context_window_limit=server.task.window)


def agent_on(server: Harbour, manager: ConversationManager, **options: Any) -> Agent:
    given: dict[str, Any] = {"model": chat_model(server), "tools": [tool(read_log)], "system_prompt": SYSTEM}
    return Agent(conversation_manager=manager, callback_handler=None, **given | options)


def run(server: Harbour, manager: ConversationManager | None = None) -> str:
    return str(agent_on(server, manager or NullConversationManager())(server.task.prompt)).strip()


def with_holdfast(server: Harbour, **options: Any) -> str:
    return run(server, HoldfastConversationManager(**options))


OWN = {
    "nothing": run,
    "SlidingWindowConversationManager": lambda server: run(
        server, SlidingWindowConversationManager(proactive_compression=True)
    ),
    "SummarizingConversationManager": lambda server: run(
        server, SummarizingConversationManager(proactive_compression=True)
    ),
}
