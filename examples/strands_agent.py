"""A Strands agent that reads a folder of any size, one file at a time.

    pip install '.[strands]' openai
    OPENAI_API_KEY=… python examples/strands_agent.py FOLDER "Which page mentions a ship?"

OPENAI_BASE_URL and OPENAI_MODEL select another server and model, WINDOW its context window.
"""

from __future__ import annotations

from strands import Agent, tool
from strands.models.openai import OpenAIModel

from holdfast.integrations.strands import HoldfastConversationManager
from pages import MODEL, QUESTION, WINDOW, read_file

if __name__ == "__main__":
    manager = HoldfastConversationManager(window=WINDOW, listen=print)
    agent = Agent(
        model=OpenAIModel(model_id=MODEL),
        tools=[tool(read_file), *manager.recall_tools()],
        conversation_manager=manager,
        callback_handler=None,
    )
    answer = str(agent(QUESTION)).strip()
    print(f"history {len(agent.messages)} messages")
    print(answer)
