"""Asks a question about a compacted session; the model looks up what was archived with the recall tools.

    pip install '.[openai]'
    OPENAI_API_KEY=… python examples/recall_tools.py session.jsonl "Which ticket was the incident?"

The file is a session of Claude Code, Codex, pi or OpenCode, or a JSON list of messages in any provider's format.
OPENAI_BASE_URL and OPENAI_MODEL select another server and model, BUDGET the tokens to compact to.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from openai import AsyncOpenAI
from openai.types.chat import ParsedFunctionToolCall

from holdfast import MemoryStore, Recall, SessionService
from holdfast.messages import decode_one
from holdfast.transcripts import import_transcript, read_transcript
from holdfast.triggers import always

MODEL = os.environ.get("OPENAI_MODEL", "gpt-5-mini")
FORMAT = "openai-chat"  # of the model; the session may have come in another one
BUDGET = int(os.environ.get("BUDGET", "20000"))


def as_json(call: ParsedFunctionToolCall) -> dict[str, Any]:
    function = {"name": call.function.name, "arguments": call.function.arguments}
    return {"id": call.id, "type": "function", "function": function}


async def ask(path: str, question: str) -> str:
    client = AsyncOpenAI()
    async with SessionService(MemoryStore()) as sessions:
        session = await import_transcript(sessions, read_transcript(path))
        result = await sessions.compact(session.id, always, budget=BUDGET)
        print(f"{result.outcome}: {result.tokens_before:,} -> {result.tokens_after:,} tokens")
        recall = Recall(sessions, session.id)
        tools: list[Any] = recall.tools(FORMAT)  # recall_search, recall_read and recall_restore
        await sessions.append(session.id, {"role": "user", "content": question})
        while True:
            context = await sessions.context(session.id, format=FORMAT)
            messages: list[Any] = context.messages
            async with client.chat.completions.stream(model=MODEL, messages=messages, tools=tools) as stream:
                message = (await stream.get_final_completion()).choices[0].message
            calls = [as_json(call) for call in message.tool_calls or ()]
            reply: dict[str, Any] = {"role": "assistant", "content": message.content}
            if calls:
                reply["tool_calls"] = calls
            await sessions.append(session.id, decode_one(reply, FORMAT))
            if not calls:
                return message.content or ""
            for call in calls:
                print(f"{call['function']['name']} {call['function']['arguments']}")
                await sessions.append(session.id, decode_one(await recall.answer(call), FORMAT))


if __name__ == "__main__":
    print(asyncio.run(ask(sys.argv[1], sys.argv[2])))
