"""An ADK app whose agent reads a folder of any size, one file at a time.

    pip install '.[google-adk]' 'google-adk[extensions]'
    OPENAI_API_KEY=… python examples/google_adk_app.py FOLDER "Which page mentions a ship?"

OPENAI_BASE_URL and OPENAI_MODEL select another server and model, WINDOW its context window. A `Gemini` model works the
same way.
"""

from __future__ import annotations

import asyncio

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.genai import types

from holdfast.integrations.google_adk import HoldfastPlugin
from pages import MODEL, QUESTION, WINDOW, read_file

agent = LlmAgent(name="reader", model=LiteLlm(model=f"openai/{MODEL}"), tools=[read_file])
app = App(name="pages", root_agent=agent, plugins=[HoldfastPlugin(window=WINDOW, listen=print)])


async def ask() -> str:
    runner = InMemoryRunner(app=app)
    session = await runner.session_service.create_session(app_name="pages", user_id="reader")
    question = types.Content(role="user", parts=[types.Part(text=QUESTION)])
    text = ""
    async for event in runner.run_async(user_id="reader", session_id=session.id, new_message=question):
        if event.is_final_response() and event.content and event.content.parts:
            text = event.content.parts[0].text or ""
    return text


if __name__ == "__main__":
    print(asyncio.run(ask()))
