"""Eighty tool calls in a window of 16,000 tokens, in each framework's own agent loop."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.integrations.agents import AGENTS
from tests.integrations.comparison import run_with_holdfast
from tests.integrations.harbour_task import ANSWER, SMALL, Harbour

from holdfast import SessionService, check, open_store
from holdfast.hooks.events import CompactionCompleted

INSTALLED = [name for name, agent in AGENTS.items() if agent.installed]
_READ_AGAIN = 4
"""Logs that the model may read again because a compaction has cut them."""
each_framework = pytest.mark.parametrize("name", INSTALLED)


@pytest.mark.sampled(3)
@each_framework
def test_task_finishes_in_valid_requests_that_extend_the_last(name: str) -> None:
    """Between two compactions each request starts with the one before it, so that the prompt cache holds."""
    seen: list[object] = []
    with Harbour() as server:
        answer = AGENTS[name].with_holdfast(server, window=SMALL.window, listen=seen.append)
    compactions = sum(isinstance(event, CompactionCompleted) for event in seen)
    assert answer == ANSWER and server.model.calls <= SMALL.logs + _READ_AGAIN
    assert compactions >= 2
    assert (server.refused, server.overflowed) == ([], 0)
    assert server.model.summaries == (compactions if AGENTS[name].summarizes else 0)
    requests = [_conversation(request.body) for request in server.requests if "tools" in request.body]
    moved = [later for last, later in pairwise(requests) if later[: len(last)] != last]
    assert len(moved) <= compactions


def _conversation(body: dict[str, Any]) -> list[Any]:
    return next(filter(None, (body.get(field) for field in ("messages", "input", "contents"))), [])


@pytest.mark.sampled(3)
@each_framework
def test_task_with_a_store_leaves_the_whole_conversation_in_the_log(name: str, tmp_path: Path) -> None:
    run = run_with_holdfast(name, store=tmp_path / "agent.db")
    assert run.finished and run.compactions >= 2 and run.invalid == []

    async def read() -> None:
        async with SessionService(open_store(tmp_path / "agent.db")) as sessions:
            (record,) = await sessions.list()
            assert await sessions.round(record.id) >= 2
            found = await sessions.events(record.id, text="Log 7 of the harbour")
            assert found and await sessions.verify(record.id) == []
            chat = (await sessions.context(record.id, format="openai-chat")).messages
            assert check(chat, "openai-chat") == []

    anyio.run(read)


@each_framework
def test_window_that_is_smaller_than_believed_is_learned_from_the_overflow(name: str) -> None:
    with Harbour() as server:
        answer = AGENTS[name].with_holdfast(server, window=4 * SMALL.window)
    assert answer == ANSWER
    assert server.overflowed == 1 and server.refused == []
