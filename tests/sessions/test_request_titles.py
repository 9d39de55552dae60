"""The title of a session is what the user asked."""

from __future__ import annotations

import pytest

from holdfast import MemoryStore, SessionService
from holdfast.sessions.history import first_user_line

REQUESTS = {
    "  Mend the crane.\nAll of it.": "Mend the crane.",
    "Implement the following plan:\n\n# Plan: Simplify setup\n\n## Context": (
        "Implement the following plan: Plan: Simplify setup"
    ),
    "Fix this:\n```\nKeyError: 'berth'\n```": "Fix this: KeyError: 'berth'",
    "<command-message>review</command-message>\n<command-name>/review</command-name>\n"
    "<command-args>pull 2\nplease</command-args>": "/review pull 2 please",
    "<command-message>review</command-message>\n<command-name>/review</command-name>": "/review",
}
BY_TOOLS = [
    "# AGENTS.md instructions for /home/dev/agentv\n\n<INSTRUCTIONS>\n# Guide",
    "<environment_context>\n<cwd>/home</cwd>\n</environment_context>",
    "<local-command-stdout>bye</local-command-stdout>",
    "Base directory for this skill: /home/dev/.claude/skills/review\n\n# Review",
    "[Request interrupted by user for tool use]",
]


pytestmark = pytest.mark.anyio


async def title(*texts: str) -> str:
    async with SessionService(MemoryStore()) as sessions:
        session = await sessions.create()
        for text in texts:
            await sessions.append(session.id, {"role": "user", "content": text})
        return await first_user_line(sessions.store, session.id)


@pytest.mark.parametrize("text", REQUESTS)
async def test_a_request_is_its_first_line_and_what_that_announces(text: str) -> None:
    assert await title(text) == REQUESTS[text]


@pytest.mark.parametrize("text", BY_TOOLS)
async def test_what_a_tool_adds_in_the_users_voice_is_no_title(text: str) -> None:
    assert await title(text) == ""


async def test_the_first_request_is_the_title_of_a_session() -> None:
    assert await title(*BY_TOOLS, "Mend the crane.", "And the buoys.") == "Mend the crane."
