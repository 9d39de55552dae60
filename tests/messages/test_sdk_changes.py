"""The comparison of the SDK suite itself: what it takes for an edit, and what it reports."""

from __future__ import annotations

from typing import Any

import pytest
from sdk_changes import changes, is_edit, source_of

BLOCK: dict[str, Any] = {"type": "text", "text": "answer-1", "cache_control": {"type": "ephemeral"}}
GIVEN: dict[str, Any] = {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm-2"}, BLOCK]}


def reported(before: Any, after: Any) -> list[str]:
    return [str(change) for change in changes(before, after) if not is_edit(change)]


@pytest.mark.parametrize(
    "after",
    [
        GIVEN,
        {"role": "assistant", "content": [BLOCK]},
        {"role": "assistant", "content": [BLOCK | {"text": "short"}]},
        {"role": "assistant", "content": [GIVEN["content"][0], BLOCK | {"text": "short"}]},
    ],
)
def test_sdk_changes_of_texts_and_parts_are_edits(after: Any) -> None:
    assert reported(GIVEN, after) == []
    assert source_of(after, [{"role": "user", "content": "else-3"}, GIVEN]) is not None or "short" in str(after)


@pytest.mark.parametrize(
    ("after", "place"),
    [
        ({"role": "assistant", "content": "answer-1"}, "content"),
        ({"role": "assistant", "content": [{"type": "text", "text": "answer-1"}]}, "content/1/cache_control"),
        ({"role": "user", "content": GIVEN["content"]}, "role"),
        ({"content": GIVEN["content"], "role": "assistant"}, "."),
        ({"role": "assistant", "content": [BLOCK, GIVEN["content"][0]]}, "content"),
        (GIVEN | {"id": "x"}, "id"),
    ],
)
def test_sdk_changes_of_anything_else_are_reported(after: Any, place: str) -> None:
    assert any(f" at {place}" in report for report in reported(GIVEN, after)), reported(GIVEN, after)
