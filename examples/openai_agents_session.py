"""An agent of the OpenAI Agents SDK whose session is a file: its log is complete, its items are compacted.

    pip install '.[openai-agents]'
    OPENAI_API_KEY=… python examples/openai_agents_session.py FOLDER "Which page mentions a ship?"

OPENAI_BASE_URL and OPENAI_MODEL select another server and model, WINDOW its context window, STORE the file.
"""

from __future__ import annotations

import asyncio
import os

from agents import Agent, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

from holdfast.integrations.openai_agents import HoldfastSession
from pages import MODEL, QUESTION, WINDOW, read_file


async def main() -> None:
    set_tracing_disabled(True)
    session = HoldfastSession("pages", window=WINDOW, store=os.environ.get("STORE", "memory:"), listen=print)
    async with AsyncOpenAI() as client:
        model = session.model(OpenAIResponsesModel(model=MODEL, openai_client=client))
        agent = Agent(name="Reader", tools=[function_tool(read_file), *session.recall_tools()], model=model)
        run = await Runner.run(agent, QUESTION, session=session, max_turns=1_000)
    print(f"items {len(await session.get_items())}")
    print(run.final_output)


if __name__ == "__main__":
    asyncio.run(main())
