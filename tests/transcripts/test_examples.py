"""The shipped example sessions are valid requests of their providers."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import Any

import pytest

from holdfast.errors import InvalidInput
from holdfast.transcripts.examples import EXAMPLES, example_path
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


def test_examples_list_matches_files() -> None:
    assert EXAMPLES.keys() == FORMATS.keys()
    folder = example_path().parent
    assert {path.stem for path in folder.glob("*.json")} == EXAMPLES.keys()


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_is_valid_for_its_provider(name: str) -> None:
    assert judge(messages(name), FORMATS[name][1], pending_ok=False, extras_ok=False) == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_has_one_message_a_line(name: str) -> None:
    assert len(example_path(name).read_text(encoding="utf-8").splitlines()) > len(messages(name))


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_has_no_machine_traces(name: str) -> None:
    text = example_path(name).read_text(encoding="utf-8")
    assert not [trace for trace in (sys.prefix, "site-packages", "\\u001b[") if trace in text]


@pytest.mark.parametrize(("name", "least"), [("harbor", 600), ("journal", 50), ("review", 80), ("support", 60)])
def test_example_message_count(name: str, least: int) -> None:
    assert len(messages(name)) >= least


def test_example_harbor_is_long_but_small() -> None:
    characters = len(json.dumps(messages("harbor"), ensure_ascii=False))
    assert 110_000 <= characters // 4 <= 165_000
    assert example_path().stat().st_size < 900_000


def test_example_harbor_alternates_roles() -> None:
    roles = [message["role"] for message in messages("harbor")]
    assert roles == ["user", "assistant"] * (len(roles) // 2)


def test_example_harbor_answers_every_call_once() -> None:
    calls = [block["id"] for block in blocks("tool_use")]
    answers = [block["tool_use_id"] for block in blocks("tool_result")]
    assert calls == answers
    assert set(Counter(calls).values()) == {1}
    assert len(calls) >= 280


def test_example_harbor_calls_only_defined_tools() -> None:
    assert {block["name"] for block in blocks("tool_use")} == {tool["name"] for tool in load("harbor")["tools"]}


def test_example_harbor_has_hard_cases() -> None:
    results = blocks("tool_result")
    assert sum("is_error" in result for result in results) >= 15
    assert max(len(result["content"]) for result in results) > 50_000
    several = [m for m in messages("harbor") if [b for b in m["content"] if isinstance(b, dict)][1:]]
    assert len(several) > 50


@pytest.mark.parametrize(
    "fact", ["Never touch the migrations/ folder", "INC-0871", "TB-7F3K2", "HM-OVR-26", "212.4", "We take B", "4 May"]
)
def test_example_harbor_contains_expected_facts(fact: str) -> None:
    assert fact.lower() in json.dumps(messages("harbor")).lower()


def test_example_review_has_encrypted_reasoning() -> None:
    thoughts = [item for item in messages("review") if item["type"] == "reasoning"]
    assert len(thoughts) >= 20
    assert all(thought["encrypted_content"].startswith("placeholder-") for thought in thoughts)


def test_example_journal_has_three_languages() -> None:
    text = json.dumps(messages("journal"), ensure_ascii=False)
    assert all(words in text for words in ("sin cilantro", "不吃香菜", "coriander"))


def test_example_unknown_name_lists_examples() -> None:
    with pytest.raises(InvalidInput, match="harbor, journal, review, support"):
        example_path("harbour")
