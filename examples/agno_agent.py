"""An Agno agent that reads a folder of any size, one file at a time.

    pip install '.[agno]' openai
    OPENAI_API_KEY=… python examples/agno_agent.py FOLDER "Which page mentions a ship?"

OPENAI_BASE_URL and OPENAI_MODEL select another server and model, WINDOW its context window.
"""

from __future__ import annotations

from agno.agent import Agent
from agno.models.openai import OpenAIChat

from holdfast.integrations.agno import RecallTools, compacting
from pages import MODEL, QUESTION, WINDOW, read_file

if __name__ == "__main__":
    model = compacting(OpenAIChat(id=MODEL), window=WINDOW, listen=print)
    agent = Agent(model=model, tools=[read_file, RecallTools(model)], telemetry=False)
    messages = agent.run(QUESTION).messages or []
    print(f"history {len(messages)} messages")
    print(messages[-1].content)
