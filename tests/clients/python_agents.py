"""Small agents on published SDKs and frameworks; runs in their own environment, without this project.

Usage: python python_agents.py AGENT URL MODEL KEY PROMPT
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

_ROUNDS = 40
_SCHEMA = {
    "type": "object",
    "properties": {"command": {"type": "string"}},
    "required": ["command"],
    "additionalProperties": False,
}
_ABOUT = "Runs a command line and returns its output."


def run_command(command: str) -> str:
    """Runs a command line and returns its output."""
    return subprocess.run(command, shell=True, capture_output=True, text=True, check=False).stdout


def openai_chat(url: str, model: str, key: str, prompt: str) -> str:
    from openai import OpenAI

    client = OpenAI(base_url=f"{url}/v1", api_key=key)
    tool: Any = {"type": "function", "function": {"name": "run_command", "description": _ABOUT, "parameters": _SCHEMA}}
    messages: list[Any] = [{"role": "system", "content": "You are an agent."}, {"role": "user", "content": prompt}]
    for _ in range(_ROUNDS):
        message = client.chat.completions.create(model=model, messages=messages, tools=[tool]).choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return message.content or ""
        for call in message.tool_calls:
            output = run_command(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": output})
    return "too many rounds"


def openai_responses(url: str, model: str, key: str, prompt: str) -> str:
    from openai import OpenAI

    client = OpenAI(base_url=f"{url}/v1", api_key=key)
    tool: Any = {
        "type": "function",
        "name": "run_command",
        "description": _ABOUT,
        "parameters": _SCHEMA,
        "strict": True,
    }
    items: list[Any] = [{"role": "user", "content": prompt}]
    for _ in range(_ROUNDS):
        events = client.responses.create(
            model=model, input=items, tools=[tool], store=False, include=["reasoning.encrypted_content"], stream=True
        )
        reply = next(event.response for event in events if event.type == "response.completed")
        items += [item.model_dump(exclude_none=True) for item in reply.output]
        calls = [item for item in reply.output if item.type == "function_call"]
        if not calls:
            return reply.output_text
        for call in calls:
            output = run_command(**json.loads(call.arguments))
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": output})
    return "too many rounds"


def anthropic(url: str, model: str, key: str, prompt: str) -> str:
    from anthropic import Anthropic

    client = Anthropic(base_url=url, api_key=key)
    tool: Any = {"name": "run_command", "description": _ABOUT, "input_schema": _SCHEMA}
    messages: list[Any] = [{"role": "user", "content": prompt}]
    for _ in range(_ROUNDS):
        with client.messages.stream(model=model, max_tokens=1_000, messages=messages, tools=[tool]) as stream:
            reply = stream.get_final_message()
        messages.append(
            {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in reply.content]}
        )
        calls = [block for block in reply.content if block.type == "tool_use"]
        if not calls:
            return "".join(block.text for block in reply.content if block.type == "text")
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": run_command(**call.input)} for call in calls
        ]
        messages.append({"role": "user", "content": results})
    return "too many rounds"


def agents(url: str, model: str, key: str, prompt: str, *, responses: bool) -> str:
    from agents import (
        Agent,
        OpenAIChatCompletionsModel,
        OpenAIResponsesModel,
        Runner,
        function_tool,
        set_tracing_disabled,
    )
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=f"{url}/v1", api_key=key)
    kind: Any = OpenAIResponsesModel if responses else OpenAIChatCompletionsModel
    agent = Agent(
        name="Harbor",
        instructions="You are an agent.",
        tools=[function_tool(run_command)],
        model=kind(model=model, openai_client=client),
    )
    return str(Runner.run_sync(agent, prompt, max_turns=_ROUNDS).final_output)


def langchain(chat_model: Any, prompt: str) -> str:
    from langchain.agents import create_agent

    agent = create_agent(chat_model, [run_command], system_prompt="You are an agent.")
    state = agent.invoke({"messages": [("user", prompt)]}, {"recursion_limit": 3 * _ROUNDS})
    return str(state["messages"][-1].text)


def pydantic_ai(kind: str, url: str, model: str, key: str, prompt: str) -> str:
    from pydantic_ai import Agent
    from pydantic_ai.usage import UsageLimits

    chosen: Any
    match kind:
        case "messages":
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            chosen = AnthropicModel(model, provider=AnthropicProvider(base_url=url, api_key=key))
        case "google":
            from pydantic_ai.models.google import GoogleModel
            from pydantic_ai.providers.google import GoogleProvider

            chosen = GoogleModel(model, provider=GoogleProvider(base_url=url, api_key=key))
        case _:
            from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
            from pydantic_ai.providers.openai import OpenAIProvider

            made: Any = OpenAIResponsesModel if kind == "responses" else OpenAIChatModel
            chosen = made(model, provider=OpenAIProvider(base_url=f"{url}/v1", api_key=key))
    agent = Agent(chosen, instructions="You are an agent.", tools=[run_command])
    return str(agent.run_sync(prompt, usage_limits=UsageLimits(request_limit=_ROUNDS)).output)


def main() -> None:
    agent, url, model, key, prompt = sys.argv[1:]
    match agent:
        case "openai-chat":
            answer = openai_chat(url, model, key, prompt)
        case "openai-responses":
            answer = openai_responses(url, model, key, prompt)
        case "anthropic":
            answer = anthropic(url, model, key, prompt)
        case "agents-chat" | "agents-responses":
            answer = agents(url, model, key, prompt, responses=agent.endswith("responses"))
        case _ if agent.startswith("pydantic-"):
            answer = pydantic_ai(agent.removeprefix("pydantic-"), url, model, key, prompt)
        case "langchain-anthropic":
            from langchain_anthropic import ChatAnthropic

            answer = langchain(ChatAnthropic(model=model, base_url=url, api_key=key, max_tokens=1_000), prompt)
        case _:
            from langchain_openai import ChatOpenAI

            responses = agent == "langchain-responses"
            chat_model = ChatOpenAI(model=model, base_url=f"{url}/v1", api_key=key, use_responses_api=responses)
            answer = langchain(chat_model, prompt)
    print(answer)


main()
