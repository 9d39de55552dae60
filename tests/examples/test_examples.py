"""The sessions that ship are ones that their providers would accept."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import Any

import pytest

from holdfast.errors import InvalidInput
from holdfast.examples import EXAMPLES, example_path
from judge import judge

FORMATS = {
    "harbor": ("messages", "anthropic"),
    "journal": ("contents", "gemini"),
    "review": ("input", "openai-responses"),
    "support": ("messages", "openai-chat"),
}


def load(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(example_path(name).read_text(encoding="utf-8"))
    return document


def messages(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = load(name)[FORMATS[name][0]]
    return found


def blocks(kind: str) -> list[dict[str, Any]]:
    contents = [message["content"] for message in messages("harbor")]
    return [b for content in contents if isinstance(content, list) for b in content if b["type"] == kind]


def test_every_example_is_listed_and_every_listed_one_is_there() -> None:
    assert EXAMPLES.keys() == FORMATS.keys()
    folder = example_path().parent
    assert {path.stem for path in folder.glob("*.json")} == EXAMPLES.keys()


@pytest.mark.parametrize("name", EXAMPLES)
def test_its_provider_would_accept_it(name: str) -> None:
    assert judge(messages(name), FORMATS[name][1], pending_ok=False, extras_ok=False) == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_one_message_a_line_so_that_a_change_can_be_read(name: str) -> None:
    assert len(example_path(name).read_text(encoding="utf-8").splitlines()) > len(messages(name))


@pytest.mark.parametrize("name", EXAMPLES)
def test_nothing_of_the_machine_it_was_written_on_is_left(name: str) -> None:
    text = example_path(name).read_text(encoding="utf-8")
    assert not [trace for trace in (sys.prefix, "site-packages", "\\u001b[") if trace in text]


@pytest.mark.parametrize(("name", "least"), [("harbor", 600), ("journal", 50), ("review", 80), ("support", 60)])
def test_how_many_messages_it_has(name: str, least: int) -> None:
    assert len(messages(name)) >= least


def test_harbor_is_long_but_not_heavy() -> None:
    characters = len(json.dumps(messages("harbor"), ensure_ascii=False))
    assert 110_000 <= characters // 4 <= 165_000
    assert example_path().stat().st_size < 900_000


def test_harbor_alternates_between_user_and_assistant() -> None:
    roles = [message["role"] for message in messages("harbor")]
    assert roles == ["user", "assistant"] * (len(roles) // 2)


def test_harbor_answers_every_call_once() -> None:
    calls = [block["id"] for block in blocks("tool_use")]
    answers = [block["tool_use_id"] for block in blocks("tool_result")]
    assert calls == answers
    assert set(Counter(calls).values()) == {1}
    assert len(calls) >= 280


def test_harbor_calls_only_tools_that_it_has() -> None:
    assert {block["name"] for block in blocks("tool_use")} == {tool["name"] for tool in load("harbor")["tools"]}


def test_harbor_has_what_makes_compaction_hard() -> None:
    results = blocks("tool_result")
    assert sum("is_error" in result for result in results) >= 15
    assert max(len(result["content"]) for result in results) > 50_000
    several = [m for m in messages("harbor") if [b for b in m["content"] if isinstance(b, dict)][1:]]
    assert len(several) > 50


@pytest.mark.parametrize(
    "fact", ["Never touch the migrations/ folder", "INC-0871", "TB-7F3K2", "HM-OVR-26", "212.4", "We take B", "4 May"]
)
def test_harbor_keeps_the_facts_that_other_tests_look_for(fact: str) -> None:
    assert fact.lower() in json.dumps(messages("harbor")).lower()


def test_review_reasons_in_secret() -> None:
    thoughts = [item for item in messages("review") if item["type"] == "reasoning"]
    assert len(thoughts) >= 20
    assert all(thought["encrypted_content"].startswith("placeholder-") for thought in thoughts)


def test_journal_speaks_three_languages() -> None:
    text = json.dumps(messages("journal"), ensure_ascii=False)
    assert all(words in text for words in ("sin cilantro", "不吃香菜", "coriander"))


def test_an_unknown_example_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match="harbor, journal, review, support"):
        example_path("harbour")
