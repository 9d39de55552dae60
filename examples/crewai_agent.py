"""A CrewAI agent that reads a folder of any size, one file at a time.

    pip install '.[crewai]' anthropic
    ANTHROPIC_API_KEY=… python examples/crewai_agent.py FOLDER "Which page mentions a ship?"

ANTHROPIC_BASE_URL and ANTHROPIC_MODEL select another server and model, WINDOW its context window.
"""

from __future__ import annotations

import os

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool

from holdfast.integrations.crewai import compacting, recall_tools
from pages import QUESTION, WINDOW, read_file

MODEL = os.environ.get("ANTHROPIC_MODEL", "claude-sonnet-5")

if __name__ == "__main__":
    llm = compacting(LLM(model=f"anthropic/{MODEL}", max_tokens=4_096), window=WINDOW, listen=print)
    tools = [tool("read_file")(read_file), *recall_tools(llm)]
    agent = Agent(role="Reader", goal="Answer questions.", backstory="You read files.", llm=llm, tools=tools)
    task = Task(description=QUESTION, expected_output="One sentence.", agent=agent)
    print(Crew(agents=[agent], tasks=[task]).kickoff().raw)
