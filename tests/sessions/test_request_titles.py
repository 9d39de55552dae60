"""The title of a session is what the user asked."""

from __future__ import annotations

import pytest

from holdfast import MemoryStore, SessionService
from holdfast.messages import user
from holdfast.sessions.history import first_user_line
from holdfast.sessions.titles import request_title

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
    "<environment_context>\n<cwd>/home</cwd>",
    "<local-command-stdout>bye</local-command-stdout>",
    "Base directory for this skill: /home/dev/.claude/skills/review\n\n# Review",
    "[Request interrupted by user for tool use]",
]


@pytest.mark.parametrize("text", REQUESTS)
def test_a_request_is_its_first_line_and_what_that_announces(text: str) -> None:
    assert request_title(user(text)) == REQUESTS[text]


@pytest.mark.parametrize("text", BY_TOOLS)
def test_what_a_tool_adds_in_the_users_voice_is_no_title(text: str) -> None:
    assert request_title(user(text)) == ""


@pytest.mark.anyio
async def test_the_first_request_is_the_title_of_a_session() -> None:
    async with SessionService(MemoryStore()) as sessions:
        session = await sessions.create()
        for text in (*BY_TOOLS, "Mend the crane.", "And the buoys."):
            await sessions.append(session.id, {"role": "user", "content": text})
        assert await first_user_line(sessions.store, session.id) == "Mend the crane."
