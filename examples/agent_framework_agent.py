"""An agent of the Microsoft Agent Framework that reads a folder of any size, one file at a time.

    pip install '.[agent-framework]' agent-framework-openai
    OPENAI_API_KEY=… python examples/agent_framework_agent.py FOLDER "Which page mentions a ship?"

OPENAI_BASE_URL and OPENAI_MODEL select another server and model, WINDOW its context window.
"""

from __future__ import annotations

import asyncio

from agent_framework import Agent
from agent_framework.openai import OpenAIChatCompletionClient
from openai import AsyncOpenAI

from holdfast.integrations.agent_framework import HoldfastChatMiddleware
from pages import MODEL, QUESTION, WINDOW, read_file


async def main() -> None:
    middleware = HoldfastChatMiddleware(window=WINDOW, listen=print)
    async with AsyncOpenAI() as openai:
        client = OpenAIChatCompletionClient(model=MODEL, async_client=openai)
        client.function_invocation_configuration["max_iterations"] = 1_000
        agent = Agent(client=client, tools=[read_file, *middleware.recall_tools()], middleware=[middleware])
        reply = await agent.run(QUESTION)
    print(f"history {len(reply.messages)} messages")
    print(reply.messages[-1].text)


if __name__ == "__main__":
    asyncio.run(main())
