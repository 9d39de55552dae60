"""Differences between two contexts: what only looks different does not count."""

from __future__ import annotations

import pytest

from holdfast import MemoryStore, SessionService
from holdfast.messages import Json
from holdfast.web.diff import compare_contexts, normalize

pytestmark = pytest.mark.anyio
CACHED: Json = {
    "role": "user",
    "content": [{"type": "text", "text": "Ship 3?", "cache_control": {"type": "ephemeral"}}],
}


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": "Ship 3?"},
        {"role": "user", "content": [{"type": "text", "text": "Ship 3?"}]},
        {"content": [{"type": "text", "text": "Ship 3?"}], "role": "user"},
    ],
)
def test_cache_marks_and_single_blocks_are_no_difference(message: Json) -> None:
    assert normalize(message) == normalize(CACHED)


def test_other_texts_and_blocks_are_a_difference() -> None:
    assert normalize({"role": "user", "content": "Ship 4?"}) != normalize(CACHED)
    two = {"role": "user", "content": [{"type": "text", "text": "Ship"}, {"type": "text", "text": " 3?"}]}
    assert normalize(two) != normalize(CACHED)


async def test_appended_messages_are_added_and_the_rest_is_the_same() -> None:
    service = SessionService(MemoryStore())
    await service.create(id="s", format="openai-chat")
    for number in range(6):
        await service.append("s", {"role": "user", "content": f"Ship {number}\nand its cargo"}, id=f"m{number}")
    before, after = await service.context_at("s", "m3"), await service.context_at("s", "m5")
    found = compare_contexts(before, after)
    assert [(part.kind, part.count, part.number) for part in found] == [
        ("same", 4, 0),
        ("added", 1, 5),
        ("added", 1, 6),
    ]
    assert "+Ship 4" in found[1].lines
    assert [part.kind for part in compare_contexts(after, before)] == ["same", "removed", "removed"]
    assert compare_contexts(after, after)[0].count == 6
