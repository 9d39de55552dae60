"""A Haystack agent that reads a folder of any size, one file at a time.

    pip install '.[haystack]'
    OPENAI_API_KEY=… python examples/haystack_agent.py FOLDER "Which page mentions a ship?"

OPENAI_BASE_URL and OPENAI_MODEL select another server and model, WINDOW its context window.
"""

from __future__ import annotations

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools.from_function import create_tool_from_function

from holdfast.integrations.haystack import HoldfastChatGenerator
from pages import MODEL, QUESTION, WINDOW, read_file

if __name__ == "__main__":
    generator = HoldfastChatGenerator(OpenAIChatGenerator(model=MODEL), window=WINDOW, listen=print)
    tools = [create_tool_from_function(read_file), *generator.recall_tools()]
    agent = Agent(chat_generator=generator, tools=tools, max_agent_steps=1_000)
    agent.warm_up()
    result = agent.run(messages=[ChatMessage.from_user(QUESTION)])
    print(f"history {len(result['messages'])} messages")
    print(result["last_message"].text)
