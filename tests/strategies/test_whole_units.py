"""Whole units are kept or archived, whatever the strategy: programs with their calls, approvals, references (H11)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from strategy_table import CHARS, STRATEGIES, Messages, Size

from edge_stories import ASK, STORIES, Approval, Json, Story
from holdfast import check, compact
from holdfast.compaction import PRESETS
from holdfast.models import ScriptedModel
from holdfast.triggers import always
from judge import judge

ROUNDS = 8
_ID_KEYS = ("id", "call_id", "caller_id", "tool_id", "tool_use_id", "approval_request_id")
_TEXT_KEYS = ("text", "output", "result", "stdout")
LONG = "the quick brown fox jumps over the lazy dog " * 40
stories = pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)


def numbered(value: Any, round: int, key: str = "") -> Any:
    """Returns the same messages with ids of their own and with long texts."""
    if isinstance(value, dict):
        return {name: numbered(item, round, name) for name, item in value.items()}
    if isinstance(value, list):
        return [numbered(item, round, key) for item in value]
    if isinstance(value, str) and key in _ID_KEYS:
        return f"{value}{round}"
    return f"{value} {round}: {LONG}" if isinstance(value, str) and key in _TEXT_KEYS else value


def repeated(story: Story) -> tuple[Messages, list[tuple[int, int]]]:
    """Returns the story several times over, and where its units begin and end."""
    messages: Messages = []
    units: list[tuple[int, int]] = []
    for round in range(ROUNDS):
        edges = [len(messages) + start for start in (*story.starts, len(story.messages))]
        units += pairwise(edges)
        messages += numbered(story.messages, round)
    return messages, units


def ids_in(value: Any) -> list[str]:
    """Returns what tells one message from the others: its kind, and the ids of its items and parts."""
    if isinstance(value, list):
        return [found for item in value for found in ids_in(item)]
    if not isinstance(value, dict):
        return []
    own = [f"{value.get('type')} {key} {value[key]}" for key in _ID_KEYS if isinstance(value.get(key), str)]
    return own + [found for item in value.values() for found in ids_in(item)]


def split_units(given: Messages, units: list[tuple[int, int]], left: Messages) -> list[Messages]:
    """Returns the units of which only a part is left."""
    known = {tuple(ids_in(message)) for message in left}
    shown = [not (ids := tuple(ids_in(message))) or ids in known for message in given]
    named = [bool(ids_in(message)) for message in given]
    return [
        given[start:end]
        for start, end in units
        if len({shown[index] for index in range(start, end) if named[index]}) > 1
    ]


@pytest.mark.sampled(120)
@stories
@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
@pytest.mark.parametrize("name", STRATEGIES)
def test_strategy_keeps_or_archives_whole_units(name: str, share: float, story: Story) -> None:
    messages, units = repeated(story)
    tokens = compact(messages, budget=10**9, format=story.profile, estimator=CHARS).tokens_before
    size = Size(max(1, int(share * tokens)), max(1, int(share * len(messages))), max(1, int(share * ROUNDS)))
    options: dict[str, Any] = {"trigger": always, "format": story.profile, "estimator": CHARS}
    result = compact(messages, budget=10**6, target=size.tokens, strategy=STRATEGIES[name](size), **options)
    assert split_units(messages, units, result.messages) == []
    assert check(result.messages, story.profile, ready=False) == []
    assert judge(result.messages, story.profile) == []


@pytest.mark.sampled(60)
@stories
@pytest.mark.parametrize("name", PRESETS)
def test_preset_keeps_or_archives_whole_units(name: str, story: Story) -> None:
    messages, units = repeated(story)
    options: dict[str, Any] = {"trigger": always, "format": story.profile, "estimator": CHARS}
    model = ScriptedModel("The user said hi several times.", repeat=True)
    result = compact(messages, preset=name, target=1_500, summarizer=model, **options)
    assert split_units(messages, units, result.messages) == []
    assert check(result.messages, story.profile) == []


@pytest.mark.sampled(50)
@stories
@pytest.mark.parametrize("name", STRATEGIES)
def test_strategy_keeps_unit_in_progress_whole(name: str, story: Story) -> None:
    """The newest unit ends where the provider goes on: with results, an approval, or what it paused at."""
    messages, units = repeated(story)
    longest = max(pairwise([*story.starts, len(story.messages)]), key=lambda unit: unit[1] - unit[0])
    for end in range(longest[0] + 1, longest[1]):
        if story.messages[end - 1].get("type") == "reasoning":
            continue
        newest = numbered(story.messages[:end], ROUNDS)
        own = [
            (len(messages) + start, len(messages) + min(end, stop)) for start, stop in pairwise([*story.starts, end])
        ]
        options: dict[str, Any] = {"trigger": always, "format": story.profile, "estimator": CHARS}
        size = Size(1_000, 10, 2)
        given = messages + newest
        result = compact(given, budget=10**6, target=size.tokens, strategy=STRATEGIES[name](size), **options)
        assert split_units(given, units + [unit for unit in own if unit[0] < unit[1]], result.messages) == []
        assert check(result.messages, story.profile) == []


@pytest.mark.parametrize("name", STRATEGIES)
def test_approval_is_not_the_newest_user_message(name: str) -> None:
    """The request of the user stays, and so do the question whether a tool may run and its answer."""
    history: Messages = [message for round in range(40) for message in numbered([ASK | {"content": LONG}], round)]
    history = [
        message for pair in zip(history, [{"role": "assistant", "content": LONG}] * 40, strict=True) for message in pair
    ]
    wanted: Json = {"role": "user", "content": "Delete the old backups, but keep those of May."}
    result = compact(
        [*history, wanted, Approval.request, Approval.response],
        budget=10**6,
        target=1_500,
        trigger=always,
        strategy=STRATEGIES[name](Size(1_500, 4, 2)),
        format="openai-responses",
        estimator=CHARS,
    )
    assert result.messages[-2:] == [Approval.request, Approval.response]
    assert wanted in result.messages
