"""Haystack's `Agent`."""

from __future__ import annotations

from typing import Any

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.hooks.compaction import CompactionHook, SlidingWindowCompactor, SummarizationCompactor
from haystack.tools import create_tool_from_function
from haystack.utils import Secret
from tests.integrations.harbour_task import SYSTEM, Harbour, read_log

from holdfast.integrations.haystack import HoldfastChatGenerator, HoldfastCompactor

TOOL = create_tool_from_function(read_log)


def generator(server: Harbour) -> OpenAIChatGenerator:
    key = Secret.from_token("sk-harbor-0123456789")
    return OpenAIChatGenerator(model="harbor-1", api_base_url=server.openai_url, api_key=key, max_retries=0)


def run(server: Harbour, chat_generator: Any = None, compactor: Any = None) -> str:
    hooks: Any = {}
    if compactor is not None:
        hooks = {"before_llm": [CompactionHook(compactor, context_window=server.task.window)]}
    agent = Agent(
        chat_generator=chat_generator or generator(server),
        tools=[TOOL],
        system_prompt=SYSTEM,
        max_agent_steps=1_000,
        hooks=hooks,
    )
    agent.warm_up()
    return str(agent.run(messages=[ChatMessage.from_user(server.task.prompt)])["last_message"].text)


def with_holdfast(server: Harbour, **options: Any) -> str:
    return run(server, HoldfastChatGenerator(generator(server), **options))


def with_compactor(server: Harbour) -> str:
    return run(server, compactor=HoldfastCompactor())


OWN = {
    "nothing": run,
    "SlidingWindowCompactor": lambda server: run(server, compactor=SlidingWindowCompactor()),
    "SummarizationCompactor": lambda server: run(server, compactor=SummarizationCompactor(generator(server))),
}
