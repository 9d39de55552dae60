"""An agent loop on the Anthropic SDK; when the window is nearly full, the model summarizes the older part.

    pip install '.[anthropic]'
    ANTHROPIC_API_KEY=… python examples/anthropic_loop.py docs "Which pages mention a lease?"

ANTHROPIC_BASE_URL and ANTHROPIC_MODEL select another server and model, WINDOW its context window in tokens.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from anthropic import AsyncAnthropic, BadRequestError

from holdfast import Keeper

MODEL = os.environ.get("ANTHROPIC_MODEL", "claude-sonnet-4-5")
WINDOW = int(os.environ.get("WINDOW", "0")) or None
SYSTEM = "Answer questions about the files of one folder. Read a file before you write about it."
READ_FILE: Any = {
    "name": "read_file",
    "description": "Return the text of a file. The path '.' lists all files.",
    "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}


def read_file(folder: Path, given: str) -> str:
    path = (folder / given).resolve()
    if not path.is_relative_to(folder):
        return "Error: the path is outside the folder."
    if path == folder:
        return "\n".join(sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()))
    return path.read_text(errors="replace") if path.is_file() else "Error: there is no such file."


async def answer(folder: Path, question: str) -> str:
    client = AsyncAnthropic()
    keeper = Keeper(
        model=MODEL,
        window=WINDOW,
        system=SYSTEM,
        tools=[READ_FILE],
        format="anthropic",
        summarizer=f"anthropic:{MODEL}",
    )
    history: list[Any] = [{"role": "user", "content": question}]
    while True:
        context = await keeper.prepare_step(history)  # compacts if the window is nearly full
        print(f"history {len(history)} messages, sent {len(context)} messages, {context.tokens:,} tokens")
        try:
            async with client.messages.stream(model=MODEL, max_tokens=4_096, **context.request) as stream:
                reply = await stream.get_final_message()
        except BadRequestError as error:
            if (await keeper.on_overflow(error)).retry:  # the prompt was too long: it is compacted now
                continue
            raise
        message = {"role": "assistant", "content": [block.to_dict() for block in reply.content]}
        await keeper.on_step_finish(message, reply.usage)  # the provider's token count replaces the estimate
        history.append(message)
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": read_file(folder, str(block.input["path"]))}
            for block in reply.content
            if block.type == "tool_use"
        ]
        if not results:
            return "".join(block.text for block in reply.content if block.type == "text")
        history.append({"role": "user", "content": results})


if __name__ == "__main__":
    print(asyncio.run(answer(Path(sys.argv[1]).resolve(), sys.argv[2])))
