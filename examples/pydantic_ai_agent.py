"""A Pydantic AI agent that reads a folder of any size, one file at a time.

    pip install '.[pydantic-ai]' 'pydantic-ai-slim[openai]'
    OPENAI_API_KEY=… python examples/pydantic_ai_agent.py FOLDER "Which page mentions a ship?"

OPENAI_BASE_URL and OPENAI_MODEL select another server and model, WINDOW its context window.
"""

from __future__ import annotations

from pydantic_ai import Agent, UsageLimits

from holdfast.integrations.pydantic_ai import HoldfastCapability
from pages import MODEL, QUESTION, WINDOW, read_file

if __name__ == "__main__":
    capability = HoldfastCapability(window=WINDOW, listen=print)
    agent = Agent(f"openai-chat:{MODEL}", tools=[read_file], capabilities=[capability])
    run = agent.run_sync(QUESTION, usage_limits=UsageLimits(request_limit=None))
    print(f"history {len(run.all_messages())} messages")
    print(run.output)
