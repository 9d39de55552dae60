"""LlamaIndex's `FunctionAgent`."""

from __future__ import annotations

import asyncio
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.memory import ChatMemoryBuffer, ChatSummaryMemoryBuffer, Memory
from llama_index.llms.openai import OpenAI
from tests.integrations.harbour_task import SYSTEM, Harbour, read_log

from holdfast.integrations.llama_index import HoldfastFunctionAgent, HoldfastMemory

_MOST_STEPS = 1_000


class HarbourOpenAI(OpenAI):
    """A model that LlamaIndex does not know, on the provider's server."""

    @property
    def metadata(self) -> Any:
        known = OpenAI(model="gpt-4o", api_key="sk-harbor-0123456789").metadata
        return known.model_copy(update={"context_window": 16_000, "model_name": self.model})

    @property
    def _tokenizer(self) -> None:
        return None


def chat_model(server: Harbour) -> OpenAI:
    return HarbourOpenAI(model="harbor-1", api_base=server.openai_url, api_key="sk-harbor-0123456789", max_retries=0)


def run(server: Harbour, kind: type[FunctionAgent] = FunctionAgent, **options: Any) -> str:
    return asyncio.run(loop(server, kind, **options))


async def loop(server: Harbour, kind: type[FunctionAgent], **options: Any) -> str:
    agent = kind(llm=chat_model(server), tools=[read_log], system_prompt=SYSTEM, streaming=False, timeout=None)
    return str(await agent.run(server.task.prompt, max_iterations=_MOST_STEPS, **options))


def with_holdfast(server: Harbour, **options: Any) -> str:
    return run(server, HoldfastFunctionAgent, memory=HoldfastMemory(**options))


OWN = {
    "nothing": run,
    "Memory": lambda server: run(server, memory=Memory.from_defaults(token_limit=server.task.window // 2)),
    "ChatMemoryBuffer": lambda server: run(
        server, memory=ChatMemoryBuffer.from_defaults(token_limit=server.task.window // 2)
    ),
    "ChatSummaryMemoryBuffer": lambda server: run(
        server,
        memory=ChatSummaryMemoryBuffer.from_defaults(llm=chat_model(server), token_limit=server.task.window // 2),
    ),
}
