"""A tool loop on LiteLLM that reads a folder of any size, one file at a time.

    pip install '.[litellm]'
    OPENAI_API_KEY=… python examples/litellm_loop.py FOLDER "Which page mentions a ship?"

OPENAI_BASE_URL and OPENAI_MODEL select another server and model, WINDOW its context window.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import litellm

from holdfast.integrations.litellm import HoldfastCallback
from pages import MODEL, QUESTION, WINDOW, read_file

TOOL = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": read_file.__doc__,
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
}


async def ask() -> str:
    callback = HoldfastCallback(window=WINDOW, listen=print)
    litellm.callbacks = [callback]
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    while True:
        tools = [TOOL, *callback.recall_tools]
        message = (
            (await litellm.acompletion(model=f"openai/{MODEL}", messages=messages, tools=tools)).choices[0].message
        )
        messages.append(message.model_dump(include={"role", "content", "tool_calls"}, exclude_none=True))
        if not message.tool_calls:
            print(f"history {len(messages)} messages")
            return str(message.content)
        for call in message.tool_calls:
            if call.function.name == "read_file":
                result = read_file(**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
            else:
                messages.append(await callback.answer(call, messages=messages))


if __name__ == "__main__":
    print(asyncio.run(ask()))
