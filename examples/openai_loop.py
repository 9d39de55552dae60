"""An agent loop on the OpenAI SDK that stays inside its model's window.

    pip install '.[openai]'
    OPENAI_API_KEY=… python examples/openai_loop.py docs "Which pages mention a lease?"

OPENAI_BASE_URL and OPENAI_MODEL select another server and model, WINDOW its context window in tokens.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI, BadRequestError
from openai.types.chat import ParsedFunctionToolCall

from holdfast import Keeper

MODEL = os.environ.get("OPENAI_MODEL", "gpt-5-mini")
WINDOW = int(os.environ.get("WINDOW", "0")) or None
SYSTEM = "Answer questions about the files of one folder. Read a file before you write about it."
READ_FILE: Any = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Return the text of a file. The path '.' lists all files.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
}


def read_file(folder: Path, arguments: str) -> str:
    path = (folder / json.loads(arguments)["path"]).resolve()
    if not path.is_relative_to(folder):
        return "Error: the path is outside the folder."
    if path == folder:
        return "\n".join(sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()))
    return path.read_text(errors="replace") if path.is_file() else "Error: there is no such file."


def as_json(call: ParsedFunctionToolCall) -> dict[str, Any]:
    function = {"name": call.function.name, "arguments": call.function.arguments}
    return {"id": call.id, "type": "function", "function": function}


async def answer(folder: Path, question: str) -> str:
    client = AsyncOpenAI()
    keeper = Keeper(model=MODEL, window=WINDOW, system=SYSTEM, tools=[READ_FILE], format="openai-chat")
    history: list[Any] = [{"role": "user", "content": question}]
    while True:
        context = await keeper.prepare_step(history)  # compacts if the window is nearly full
        print(f"history {len(history)} messages, sent {len(context)} messages, {context.tokens:,} tokens")
        try:
            async with client.chat.completions.stream(
                model=MODEL,
                stream_options={"include_usage": True},
                **context.request,  # with SYSTEM and the tools
            ) as stream:
                completion = await stream.get_final_completion()
        except BadRequestError as error:
            if (await keeper.on_overflow(error)).retry:  # the prompt was too long: it is compacted now
                continue
            raise
        message = completion.choices[0].message
        calls = message.tool_calls or []
        reply: dict[str, Any] = {"role": "assistant", "content": message.content}
        if calls:
            reply["tool_calls"] = [as_json(call) for call in calls]
        await keeper.on_step_finish(reply, completion.usage)  # the provider's token count replaces the estimate
        history.append(reply)
        if not calls:
            return message.content or ""
        for call in calls:
            result = read_file(folder, call.function.arguments)
            history.append({"role": "tool", "tool_call_id": call.id, "content": result})


if __name__ == "__main__":
    print(asyncio.run(answer(Path(sys.argv[1]).resolve(), sys.argv[2])))
