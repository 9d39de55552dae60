"""ProviderServer: valid requests, refusals, scripts."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from providers import ProviderServer, Say
from providers.raw_requests import CHAT, CLAUDE, GEMINI, RESPONSES, post


@pytest.mark.parametrize(
    ("to", "body"), [("chat", CHAT), ("responses", RESPONSES), ("claude", CLAUDE), ("gemini", GEMINI)]
)
def test_server_answers_valid_requests_and_requires_keys(to: str, body: Any) -> None:
    with ProviderServer(Say("hello there", pieces=1)) as server:
        status, text = post(server, to, body)
        assert status == 200 and text.startswith(("data: ", "event: ")) and "hello there" in text
        assert post(server, to, body, {"anthropic-version": "x"})[0] == 401
        assert [request.prompt for request in server.requests] == ["hi", "hi"]


@pytest.mark.parametrize(
    ("to", "body", "message"),
    [
        ("chat", CHAT | {"foo": 1}, "Unrecognized request argument supplied: foo"),
        ("chat", CHAT | {"messages": []}, "empty array"),
        ("chat", CHAT | {"messages": [{"role": "robot", "content": "hi"}]}, "robot"),
        ("chat", CHAT | {"max_tokens": 0}, "max_tokens"),
        ("chat", CHAT | {"temperature": 3}, "temperature"),
        ("chat", {"messages": CHAT["messages"]}, "model"),
        ("responses", RESPONSES | {"max_tokens": 1}, "Unknown parameter: 'max_tokens'"),
        ("responses", {"model": "m", "stream": True}, "input"),
        ("claude", CHAT, "max_tokens: Field required"),
        ("claude", CLAUDE | {"messages": [{"role": "assistant", "content": "hi"}]}, "user role"),
        ("claude", CLAUDE | {"messages": [{"role": "user", "content": ""}]}, "non-empty content"),
        ("claude", CLAUDE | {"messages": [{"role": "system", "content": "x"}]}, "user role"),
        ("claude", CLAUDE | {"temperature": 1.5}, "temperature"),
        ("claude", CLAUDE | {"foo": 1}, "Extra inputs are not permitted"),
        ("gemini", {"contents": []}, "contents is not specified"),
        ("gemini", GEMINI | {"foo": 1}, "Unknown name"),
        ("gemini", GEMINI | {"generationConfig": {"maxOutputTokens": 0}}, "max_output_tokens"),
        ("chat", [], "not an object"),
    ],
)  # fmt: skip
def test_server_refuses_invalid_requests_like_the_provider(to: str, body: Any, message: str) -> None:
    with ProviderServer() as server:
        status, text = post(server, to, body)
    assert status == 400
    assert message in text


def test_server_list_of_answers_repeats_the_last() -> None:
    with ProviderServer(["one", "two"]) as server:
        texts = [post(server, "gemini", GEMINI)[1] for _ in range(3)]
    assert ['"w"' in text for text in texts] == [False, True, True]


def test_server_lists_models_and_refuses_other_paths() -> None:
    with ProviderServer(models=["a", "b"]) as server:
        with urllib.request.urlopen(f"{server.openai_url}/models") as answer:
            assert [model["id"] for model in json.load(answer)["data"]] == ["a", "b"]
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"{server.openai_url}/nowhere")
        caught.value.close()
