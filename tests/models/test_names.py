"""From what a person writes to a model."""

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
    model_for,
    stepper_for,
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
def test_names(given: str, kind: type, model: str | None, name: str) -> None:
    made: Any = model_for(given)
    assert type(made) is kind
    assert (made.model, made.name) == (model, name)


@pytest.mark.parametrize(
    ("given", "says"),
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
def test_what_is_no_model_is_refused_with_the_nearest_right_form(given: Any, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        model_for(given)


@pytest.mark.parametrize("name", ["anthropic:claude-x", "openai:gpt-x", "openai-responses:gpt-x", "gemini:gemini-x"])
def test_an_agents_model_has_the_same_names(name: str) -> None:
    stepper = stepper_for(f" {name} ")
    assert (type(stepper), stepper.name) == (type(model_for(name)), name)
    assert stepper_for(stepper) is stepper
    assert stepper_for("http://localhost:8080/v1#qwen").format == "openai-chat"


@pytest.mark.parametrize(
    ("given", "says"),
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
def test_what_is_no_agents_model_is_refused_with_the_nearest_right_form(given: Any, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as caught:
        stepper_for(given)
    assert "\n" not in str(caught.value)


def test_nothing_stays_nothing_and_models_stay_themselves() -> None:
    model = ScriptedModel("x")
    assert model_for(None) is None
    assert model_for(model) is model


def test_functions_become_models() -> None:
    class Named:
        name = "mine"

        def __call__(self, text: str) -> str:
            return text

    assert isinstance(model_for(lambda text: text), FunctionModel)
    assert isinstance(model_for(Named()), FunctionModel)
    assert isinstance(model_for(str.upper), FunctionModel)
