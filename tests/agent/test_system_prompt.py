"""`system=` has one meaning in every format: it counts, is no message, and is in the request (L12)."""

from __future__ import annotations

from typing import Any

import pytest
from keeper_conversations import user_message

from holdfast import Keeper, MemoryStore, SessionService
from holdfast.errors import InvalidInput

pytestmark = pytest.mark.anyio
SYSTEM = "You keep a harbour."
TOOLS = [{"name": "look"}]
ASK = user_message("Go.")
GEMINI_ASK = {"role": "user", "parts": [{"text": "Go."}]}
REQUESTS: dict[str, dict[str, Any]] = {
    "openai-chat": {"messages": [{"role": "system", "content": SYSTEM}, ASK], "tools": TOOLS},
    "openai-responses": {"input": [ASK], "instructions": SYSTEM, "tools": TOOLS},
    "anthropic": {"messages": [ASK], "system": SYSTEM, "tools": TOOLS},
    "gemini": {"contents": [GEMINI_ASK], "config": {"system_instruction": SYSTEM, "tools": TOOLS}},
}


@pytest.mark.parametrize("format", REQUESTS)
async def test_l12_system_prompt_of_a_message_list_is_in_the_request(format: str) -> None:
    keeper = Keeper(window=8_000, system=SYSTEM, tools=TOOLS, format=format)
    context = await keeper.prepare_step([GEMINI_ASK if format == "gemini" else ASK])
    assert context.request == REQUESTS[format]
    assert context.system == SYSTEM and len(context) == 1, "the prompt is no message"
    bare = await Keeper(window=8_000, format=format).prepare_step([GEMINI_ASK if format == "gemini" else ASK])
    assert context.tokens > bare.tokens and list(bare.request.values()) == [bare.messages]


@pytest.mark.parametrize("format", REQUESTS)
async def test_l12_system_prompt_of_a_session_is_in_the_request(format: str) -> None:
    sessions = SessionService(MemoryStore())
    session = await sessions.create(system=SYSTEM, tools=TOOLS, format=format)
    await sessions.append(session.id, GEMINI_ASK if format == "gemini" else ASK)
    assert (await sessions.context(session.id)).request == REQUESTS[format]
    assert (await Keeper(sessions, session.id, window=8_000).prepare_step()).request == REQUESTS[format]


async def test_l12_system_message_of_the_list_stays_a_message() -> None:
    history = [{"role": "system", "content": SYSTEM}, ASK]
    context = await Keeper(window=8_000, format="openai-chat").prepare_step(history)
    assert context.request == {"messages": history} and context.system is None


async def test_l12_system_prompt_in_blocks_is_text_for_the_responses_api() -> None:
    blocks = [{"type": "text", "text": SYSTEM}, {"type": "text", "text": "Be brief."}]
    context = await Keeper(window=8_000, system=blocks, format="openai-responses").prepare_step([ASK])
    assert context.request["instructions"] == f"{SYSTEM}\nBe brief."
    chat = await Keeper(window=8_000, system=blocks, format="openai").prepare_step([ASK])
    assert chat.request["messages"][0] == {"role": "system", "content": blocks}


async def test_l12_request_of_an_unknown_format_says_what_to_pass() -> None:
    context = await Keeper(window=8_000, system=SYSTEM).prepare_step([ASK])
    with pytest.raises(InvalidInput, match="pass format="):
        _ = context.request
