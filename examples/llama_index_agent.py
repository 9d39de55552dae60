"""A LlamaIndex agent that reads a folder of any size, one file at a time.

    pip install '.[llama-index]' llama-index-llms-openai
    OPENAI_API_KEY=… python examples/llama_index_agent.py FOLDER "Which page mentions a ship?"

OPENAI_BASE_URL and OPENAI_MODEL select another server and model, WINDOW its context window.
"""

from __future__ import annotations

import asyncio
import os

from llama_index.llms.openai import OpenAI

from holdfast.integrations.llama_index import HoldfastFunctionAgent, HoldfastMemory
from pages import MODEL, QUESTION, WINDOW, read_file


async def ask() -> str:
    llm = OpenAI(model=MODEL, api_base=os.environ.get("OPENAI_BASE_URL"))
    memory = HoldfastMemory(window=WINDOW, listen=print)
    agent = HoldfastFunctionAgent(llm=llm, tools=[read_file, *memory.recall_tools()], streaming=False)
    reply = await agent.run(QUESTION, memory=memory, max_iterations=1_000)
    print(f"history {len(memory.get_all())} messages")
    return str(reply)


if __name__ == "__main__":
    print(asyncio.run(ask()))
