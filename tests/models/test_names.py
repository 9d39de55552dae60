"""Resolution of model names, URLs, objects and functions."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import InvalidInput
from holdfast.models import (
    Anthropic,
    FunctionModel,
    Gemini,
    OpenAIChat,
    OpenAIResponses,
    ScriptedModel,
    resolve_chat_model,
    resolve_model,
)


@pytest.fixture(autouse=True)
def keys(no_keys: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, "secret-of-" + name)


@pytest.mark.parametrize(
    ("given", "kind", "model", "name"),
    [
        ("anthropic:claude-x", Anthropic, "claude-x", "anthropic:claude-x"),
        (" Anthropic: claude-x ", Anthropic, "claude-x", "anthropic:claude-x"),
        ("openai:gpt-x", OpenAIChat, "gpt-x", "openai:gpt-x"),
        ("openai:ft:gpt-x:acme", OpenAIChat, "ft:gpt-x:acme", "openai:ft:gpt-x:acme"),
        ("openai-responses:gpt-x", OpenAIResponses, "gpt-x", "openai-responses:gpt-x"),
        ("gemini:gemini-x", Gemini, "gemini-x", "gemini:gemini-x"),
        ("google:gemini-x", Gemini, "gemini-x", "gemini:gemini-x"),
        (
            "http://localhost:8080/v1#Qwen/Qwen3-8B",
            OpenAIChat,
            "Qwen/Qwen3-8B",
            "http://localhost:8080/v1#Qwen/Qwen3-8B",
        ),
        ("https://models.test/v1", OpenAIChat, None, "https://models.test/v1"),
    ],
)
def test_resolve_model_names_and_urls(given: str, kind: type, model: str | None, name: str) -> None:
    resolved: Any = resolve_model(given)
    assert type(resolved) is kind
    assert (resolved.model, resolved.name) == (model, name)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("antropic:claude-x", "did you mean anthropic:claude-x"),
        ("open-ai:gpt-x", "did you mean openai:gpt-x"),
        ("gemni:x", "did you mean gemini:x"),
        ("zzz:x", r"no provider 'zzz'\. Use anthropic:MODEL"),
        ("claude-opus-4-6", "did you mean anthropic:claude-opus-4-6"),
        ("gemini-2.5-pro", "did you mean google:gemini-2.5-pro"),
        ("whatever", "names no provider"),
        ("openai:", "names no model"),
        ("", "names no provider"),
        ("http://", "names no server"),
        (7, "not int"),
        (OpenAIChat, "not the class OpenAIChat"),
    ],
)
def test_resolve_model_invalid_name_suggests_a_valid_one(given: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        resolve_model(given)


@pytest.mark.parametrize("name", ["anthropic:claude-x", "openai:gpt-x", "openai-responses:gpt-x", "gemini:gemini-x"])
def test_resolve_chat_model_accepts_the_same_names(name: str) -> None:
    chat_model = resolve_chat_model(f" {name} ")
    assert (type(chat_model), chat_model.name) == (type(resolve_model(name)), name)
    assert resolve_chat_model(chat_model) is chat_model
    assert resolve_chat_model("http://localhost:8080/v1#qwen").format == "openai-chat"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("antropic:claude-x", "did you mean anthropic:claude-x"),
        ("claude-x", "names no provider"),
        ("script:", "names no model"),
        (len, "not a function, which can only summarize"),
        (lambda text: text, "not a function, which can only summarize"),
        (None, "not NoneType"),
        (OpenAIChat, "not the class OpenAIChat"),
        (ScriptedModel("x"), "an object with `step`"),
        (type("Half", (), {"step": len})(), "has no `name` and `format`"),
    ],
)
def test_resolve_chat_model_invalid_name_suggests_a_valid_one(given: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        resolve_chat_model(given)
    assert "\n" not in str(caught.value)


def test_resolve_model_returns_none_and_models_unchanged() -> None:
    model = ScriptedModel("x")
    assert resolve_model(None) is None
    assert resolve_model(model) is model


def test_resolve_model_wraps_functions() -> None:
    class Named:
        name = "mine"

        def __call__(self, text: str) -> str:
            return text

    assert isinstance(resolve_model(lambda text: text), FunctionModel)
    assert isinstance(resolve_model(Named()), FunctionModel)
    assert isinstance(resolve_model(str.upper), FunctionModel)
