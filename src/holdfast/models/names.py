"""From what a person writes to a model: `anthropic:claude-…`, a server's address, a function."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from typing import Any, TypeGuard, cast, overload
from urllib.parse import unquote, urldefrag, urlsplit

from ..calls import Model, Stepper
from ..catalog import CATALOG
from ..errors import InvalidInput
from .anthropic import Anthropic
from .function import FunctionModel, Summarize
from .gemini import Gemini
from .openai_chat import OpenAIChat
from .openai_responses import OpenAIResponses
from .provider import Provider
from .script_file import read_script
from .scripted_agent import ScriptedAgentModel
from .secrets import scrub

Named = Provider | ScriptedAgentModel
"""What a name stands for: it answers questions and takes steps."""
PROVIDERS: dict[str, Callable[[str], Named]] = {
    "anthropic": Anthropic,
    "openai": OpenAIChat,
    "openai-responses": OpenAIResponses,
    "gemini": Gemini,
    "google": Gemini,
    "script": read_script,
}
FORMS = (
    "anthropic:MODEL, openai:MODEL, openai-responses:MODEL, gemini:MODEL, script:FILE, "
    "or the address of an OpenAI-compatible server: http://localhost:8080/v1#MODEL"
)


@overload
def model_for(given: None) -> None: ...
@overload
def model_for(given: str | Model | Summarize) -> Model: ...
@overload
def model_for(given: str | Model | Summarize | None) -> Model | None: ...
def model_for(given: str | Model | Summarize | None) -> Model | None:
    """The model that was meant, by name, by address, as an object or as a function; None stays None."""
    if given is None:
        return None
    if isinstance(given, str):
        return _named(given.strip())
    if _is_model(given):
        return given
    if callable(given) and not isinstance(given, type):
        return FunctionModel(cast("Summarize", given))
    kind = f"the class {given.__name__}" if isinstance(given, type) else type(given).__name__
    raise InvalidInput(f"A summarizer is a name ({FORMS}), a model, or a function from text to text, not {kind}.")


def stepper_for(given: str | Stepper) -> Stepper:
    """The model that an agent is to talk to, by name, by address, or as an object."""
    if isinstance(given, str):
        return _named(given.strip())
    if not isinstance(given, type) and callable(getattr(given, "step", None)):
        if isinstance(getattr(given, "name", None), str) and isinstance(getattr(given, "format", None), str):
            return given
        raise InvalidInput(f"{type(given).__name__} takes steps, but has no `name` and `format`: see holdfast.calls.")
    if isinstance(given, type):
        kind = f"the class {given.__name__}"
    else:
        kind = "a function, which can only summarize" if callable(given) else type(given).__name__
    raise InvalidInput(f"A model for an agent is a name ({FORMS}) or an object with `step`, not {kind}.")


def _is_model(given: Any) -> TypeGuard[Model]:
    """It has a name and takes a call and someone to tell, where a plain function takes a text."""
    if isinstance(given, type) or not callable(given) or not isinstance(getattr(given, "name", None), str):
        return False
    try:
        inspect.signature(given).bind("call", "on_delta")
    except (TypeError, ValueError):
        return False
    return True


def _named(name: str) -> Named:
    if name.lower().startswith(("http://", "https://")):
        address, model = urldefrag(name)
        if not urlsplit(address).hostname:
            raise InvalidInput(f"{scrub(name)!r} names no server: use http://localhost:8080/v1#MODEL.")
        return OpenAIChat(unquote(model) or None, base_url=address)
    provider, colon, model = name.partition(":")
    known = PROVIDERS.get(provider.strip().lower())
    if known is not None and model.strip():
        return known(model.strip())
    raise InvalidInput(f"{_complaint(name, provider, model, bool(colon))} Use {FORMS}.")


def _complaint(name: str, provider: str, model: str, has_provider: bool) -> str:
    shown = scrub(name)
    if provider.lower() in PROVIDERS:
        return f"{shown!r} names no model."
    if has_provider:
        near = difflib.get_close_matches(provider.lower(), PROVIDERS, 1, 0.5)
        return f"There is no provider {scrub(provider)!r}" + (f": did you mean {near[0]}:{model}?" if near else ".")
    entry = CATALOG.find(name)
    if entry is not None and entry.provider in PROVIDERS:
        return f"{shown!r} names no provider: did you mean {entry.provider}:{name}?"
    return f"{shown!r} names no provider."
