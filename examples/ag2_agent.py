"""An ag2 agent that reads a folder of any size, one file at a time.

    pip install '.[ag2]' 'ag2[anthropic]'
    ANTHROPIC_API_KEY=… python examples/ag2_agent.py FOLDER "Which page mentions a ship?"

ANTHROPIC_BASE_URL and ANTHROPIC_MODEL select another server and model, WINDOW its context window.
"""

from __future__ import annotations

import asyncio
import os

from ag2 import Agent
from ag2.config import AnthropicConfig

from holdfast.integrations.ag2 import HoldfastEventMiddleware
from pages import QUESTION, WINDOW, read_file

MODEL = os.environ.get("ANTHROPIC_MODEL", "claude-sonnet-5")


async def ask() -> str:
    middleware = HoldfastEventMiddleware(window=WINDOW, listen=print)
    tools = [read_file, *middleware.recall_tools]
    config = AnthropicConfig(model=MODEL, max_tokens=4_096)
    reply = await Agent("reader", config=config, tools=tools, middleware=[middleware]).ask(QUESTION)
    return str(await reply.content())


if __name__ == "__main__":
    print(asyncio.run(ask()))
