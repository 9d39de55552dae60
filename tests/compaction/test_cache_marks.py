"""H6: marks for the prompt cache and citations of a conversation with thinking survive its compactions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any, cast

from holdfast import MemoryStore, PruneToolResults, SessionService, SlidingWindow, compact
from holdfast.compaction import PrefixCheckpoint
from holdfast.errors import Outcome
from holdfast.messages import Json

ROUNDS = 10
TEXT = "Berth {0} is deep enough. " * 20
MARK = {"type": "ephemeral", "ttl": "1h"}


def cited(number: int) -> Json:
    source = {"type": "char_location", "cited_text": f"depth {number}", "document_index": 0}
    return {
        "type": "text",
        "text": TEXT.format(number),
        "citations": [source],
        "cache_control": MARK,
    }


def turn(number: int) -> list[Json]:
    """A turn with thinking, a call, its result, and a reply that cites and is marked."""
    thinking = {"type": "thinking", "thinking": "Which one?", "signature": f"s{number}"}
    call = {"type": "tool_use", "id": f"t{number}", "name": "read", "input": {"berth": number}, "cache_control": MARK}
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "deep " * 100, "cache_control": MARK}
    return [
        {"role": "user", "content": f"What about berth {number}?"},
        {"role": "assistant", "content": [thinking, {"type": "text", "text": "I look."}, call]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": [thinking, cited(number)]},
    ]


def blocks(messages: list[Json]) -> Iterator[Json]:
    for message in messages:
        if isinstance(message["content"], list):
            yield from message["content"]


def assert_marked(messages: list[Json]) -> None:
    """Every reply, call and result that is shown has its citations and its mark."""
    shown = [block for block in blocks(messages) if block["type"] != "thinking"]
    own = [block for block in shown if "berth" in str(block.get("input")) or block["type"] == "tool_result"]
    replies = [block for block in shown if "deep enough" in block.get("text", "")]
    assert replies and own
    assert all(block == cited(int(block["text"].split()[1])) for block in replies)
    assert all(block["cache_control"] == MARK for block in own)


def test_h6_marks_survive_ten_compactions_of_a_list() -> None:
    history: list[Json] = []
    previous: PrefixCheckpoint | None = None
    shown: list[Json] = []
    for round in range(ROUNDS):
        history += [message for number in range(12) for message in turn(12 * round + number)]
        before = json.dumps(history)
        result = compact(
            history, budget=2_500, target=1_600, format="anthropic", previous=previous, estimator="chars/4"
        )
        assert (result.outcome, json.dumps(history)) == (Outcome.COMPACTED, before)
        shown, previous = list(result.messages), cast(PrefixCheckpoint, result.checkpoint)
        assert_marked(shown)
    assert not any(block["type"] == "thinking" for block in blocks(shown))


def test_h6_marks_survive_ten_compactions_of_a_session_and_its_reopening() -> None:
    async def run() -> None:
        store = MemoryStore()
        async with SessionService(store, estimator="chars/4") as sessions:
            session = await sessions.create(format="anthropic")
            for round in range(ROUNDS):
                for number in range(8):
                    await sessions.append(session.id, turn(8 * round + number))
                strategy: Any = PruneToolResults(200, 0) if round % 2 else SlidingWindow(max_events=12)
                result = await sessions.compact(session.id, lambda request: True, strategy)
                assert result.outcome is Outcome.COMPACTED
                context = await sessions.context(session.id)
                assert_marked(list(context.messages))
                other = SessionService(store, estimator="chars/4")
                assert (await other.context(session.id)).messages == context.messages

    asyncio.run(run())
