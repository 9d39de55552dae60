"""Generated histories: valid ones pass the judge, broken ones often do not."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

import histories
from histories.script import (
    Call,
    Media,
    Model,
    Result,
    Results,
    Step,
    Story,
    Summary,
    System,
    Text,
    Thought,
    User,
)
from judge import PROFILES, judge

Wire = list[dict[str, Any]]


def test_histories_and_judge_have_same_formats() -> None:
    assert set(histories.PROFILES) == set(PROFILES)


@pytest.mark.parametrize("profile", PROFILES)
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_histories_valid_history_is_accepted_by_judge(profile: str, data: st.DataObject) -> None:
    messages = data.draw(histories.wire(profile))
    assert judge(messages, profile, extras_ok=False) == []


@pytest.mark.parametrize("profile", PROFILES)
def test_histories_broken_history_is_often_rejected_by_judge(profile: str) -> None:
    refused = 0

    @settings(max_examples=60, deadline=None, database=None)
    @given(histories.wire(profile, broken=True))
    def count(messages: Wire) -> None:
        nonlocal refused
        assert messages
        refused += bool(judge(messages, profile))

    count()
    assert refused > 18


def test_histories_broken_history_shrinks_to_short_example() -> None:
    """Failing examples must be readable; one format is enough to show that scenes are dropped."""
    quick = settings(max_examples=200, database=None)
    refused = find(histories.wire("gemini", broken=True), lambda it: bool(judge(it, "gemini")), settings=quick)
    assert len(refused) <= 6
    assert len(json.dumps(refused)) < 1_500


@settings(max_examples=100, deadline=None)
@given(histories.everywhere(broken=True))
def test_histories_are_json_with_valid_unicode(renderings: dict[str, Wire]) -> None:
    assert set(renderings) == set(PROFILES)
    for messages in renderings.values():
        assert json.loads(json.dumps(messages, ensure_ascii=False).encode()) == messages


def of(story: Story, kind: type[Step]) -> list[Any]:
    return [step for step in story.steps if isinstance(step, kind)]


def parts(story: Story) -> list[Any]:
    return [part for step in story.steps if isinstance(step, User | Model) for part in step.parts]


def results(story: Story) -> list[Result]:
    return [result for step in of(story, Results) for result in step.results]


def is_pending(story: Story) -> bool:
    return isinstance(story.steps[-1], Model) and bool(story.steps[-1].calls)


FEATURES: dict[str, Callable[[Story], bool]] = {
    "one message": lambda story: len(story.steps) == 1,
    "a long story": lambda story: len(story.steps) > 30,
    "parallel calls": lambda story: any(len(step.calls) > 2 for step in of(story, Model)),
    "text with calls": lambda story: any(step.calls and Text in map(type, step.parts) for step in of(story, Model)),
    "a thought": lambda story: any(isinstance(part, Thought) for part in parts(story)),
    "a picture": lambda story: Media("image") in parts(story) and Media("link") in parts(story),
    "a file": lambda story: Media("file") in parts(story),
    "an empty message": lambda story: Text("") in parts(story),
    "a giant result": lambda story: any(len(result.text) >= 5_000 for result in results(story)),
    "a picture from a tool": lambda story: any(result.media for result in results(story)),
    "a failed tool": lambda story: any(result.failed for result in results(story)),
    "system first": lambda story: isinstance(story.steps[0], System),
    "a summary": lambda story: bool(of(story, Summary)),
    "no user": lambda story: not of(story, User) and bool(of(story, Model)),
    "ends with the user": lambda story: isinstance(story.steps[-1], User),
    "ends with words": lambda story: isinstance(story.steps[-1], Model) and not is_pending(story),
    "ends with results": lambda story: isinstance(story.steps[-1], Results),
    "ends with calls waiting": is_pending,
    "some calls answered": lambda story: (
        isinstance(story.steps[-1], Results) and len(story.steps[-1].results) < len(of(story, Model)[-1].calls)
    ),
}


def test_histories_cover_every_feature() -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=400, deadline=None, database=None)
    @given(histories.stories())
    def count(story: Story) -> None:
        seen.update(name for name, holds in FEATURES.items() if holds(story))

    count()
    assert {name: seen[name] for name in FEATURES if not seen[name]} == {}


def test_histories_one_story_in_four_formats() -> None:
    call = Call("1", "read", {"path": "a"})
    story = Story((User((Text("go"),)), Model((Thought("hm", "sig"), call)), Results((Result("1", "read", "a!"),))))
    assert histories.render(story, "openai-chat") == [
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "read", "arguments": '{"path": "a"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "a!"},
    ]
    assert [item.get("type") for item in histories.render(story, "openai-responses")] == [
        None,
        "reasoning",
        "function_call",
        "function_call_output",
    ]
    assert histories.render(story, "anthropic")[1]["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a"}},
    ]
    assert histories.render(story, "gemini")[1]["parts"] == [
        {"text": "hm", "thought": True},
        {"functionCall": {"id": "1", "name": "read", "args": {"path": "a"}}, "thoughtSignature": "sig"},
    ]
