"""A tool loop on `litellm.acompletion`, as LiteLLM's documentation of function calling shows it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import litellm
from litellm.compression import compress
from litellm.utils import trim_messages
from tests.integrations.harbour_task import SYSTEM, Harbour, read_log

from holdfast.integrations.litellm import HoldfastCallback

litellm.suppress_debug_info = True
MODEL = "openai/harbor-1"
TOOL = {
    "type": "function",
    "function": {
        "name": "read_log",
        "description": read_log.__doc__,
        "parameters": {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]},
    },
}
_MOST_STEPS = 1_000
Shorten = Callable[[list[Any]], list[Any]]


def request(server: Harbour) -> dict[str, Any]:
    """Arguments of a completion by the provider's server."""
    return {"model": MODEL, "api_base": server.openai_url, "api_key": "sk-harbor-0123456789", "tools": [TOOL]}


def run(server: Harbour, shorten: Shorten = lambda messages: messages) -> str:
    return asyncio.run(loop(server, shorten))


async def loop(server: Harbour, shorten: Shorten = lambda messages: messages, complete: Any = None) -> str:
    complete = complete or litellm.acompletion
    messages: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": server.task.prompt}]
    for _ in range(_MOST_STEPS):
        reply = await complete(messages=shorten(messages), **request(server))
        message = reply.choices[0].message
        messages.append(message.model_dump(include={"role", "content", "tool_calls"}, exclude_none=True))
        if not message.tool_calls:
            return str(message.content)
        for call in message.tool_calls:
            result = read_log(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    return "This takes too many steps."


def with_holdfast(server: Harbour, **options: Any) -> str:
    litellm.callbacks = [HoldfastCallback(**options)]
    try:
        return run(server)
    finally:
        litellm.callbacks = []


def _compressed(messages: list[Any], target: int) -> list[Any]:
    given = compress(messages, "gpt-4o", call_type="completion", compression_trigger=target, compression_target=target)
    return list(given["messages"])


OWN = {
    "nothing": run,
    "trim_messages": lambda server: run(
        server, lambda messages: trim_messages(messages, "gpt-4o", max_tokens=server.task.window // 2)
    ),
    "compress": lambda server: run(server, lambda messages: _compressed(messages, server.task.window // 2)),
}
