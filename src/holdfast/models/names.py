"""Resolves names, URLs, objects and functions to models."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeGuard, cast, overload
from urllib.parse import unquote, urlsplit

import anyio.to_thread

from ..errors import InvalidInput
from ..io.arguments import closest_name
from ..io.secrets import scrub
from ..tokens.catalog import CATALOG, wants_long_window
from .anthropic import Anthropic
from .calls import Answer, ChatModel, Failure, Model, ModelCall, Reply
from .failures import failure_from_exception
from .gemini import Gemini
from .openai import OpenAIChat, OpenAIResponses
from .provider import Provider
from .scripted import ScriptedAgentModel, load_script

SummarizeFunction = Callable[[str], str] | Callable[[str], Awaitable[str]]


class FunctionModel:
    """Calls a function with system prompt and prompt joined; a blocking one runs in a thread.

    On cancellation the thread is abandoned and its answer dropped, since threads cannot be stopped.
    """

    def __init__(self, function: SummarizeFunction) -> None:
        self._function: Callable[[str], Any] = function

    @property
    def name(self) -> str:
        return f"function:{getattr(self._function, '__name__', type(self._function).__name__)}"

    def __repr__(self) -> str:
        return f"FunctionModel({self.name.partition(':')[2]})"

    async def __call__(self, call: ModelCall, on_delta: Callable[[str], None]) -> Answer:
        prompt = f"{call.system}\n\n{call.prompt}" if call.system else call.prompt
        try:
            answer = await self._run(prompt)
        except (ValueError, TypeError) as error:
            return Failure("request", failure_from_exception(error).why)
        except Exception as error:
            return failure_from_exception(error)
        if not isinstance(answer, str):
            return Failure("request", f"{self.name} returned {type(answer).__name__}, not a string.")
        on_delta(answer)
        return Reply(answer, model=self.name)

    async def _run(self, prompt: str) -> Any:
        called = getattr(self._function, "__call__", None)  # noqa: B004 - an object may have an async one
        if inspect.iscoroutinefunction(self._function) or inspect.iscoroutinefunction(called):
            return await self._function(prompt)
        answer = await anyio.to_thread.run_sync(self._guarded, prompt, abandon_on_cancel=True)
        if isinstance(answer, _Raised):
            raise answer.error
        return await answer if inspect.isawaitable(answer) else answer

    def _guarded(self, prompt: str) -> Any:
        """Returns errors as values, since StopIteration cannot be raised across the thread boundary."""
        try:
            return self._function(prompt)
        except Exception as error:
            return _Raised(error)


class _Raised:
    def __init__(self, error: Exception) -> None:
        self.error = RuntimeError(str(error)) if isinstance(error, StopIteration) else error


NamedModel = Provider | ScriptedAgentModel
"""Models that can be named; they answer calls and take steps."""
PROVIDERS: dict[str, Callable[[str], NamedModel]] = {
    "anthropic": Anthropic,
    "openai": OpenAIChat,
    "openai-responses": OpenAIResponses,
    "gemini": Gemini,
    "google": Gemini,
    "script": load_script,
}
MODEL_NAME_FORMS = (
    "anthropic:MODEL, openai:MODEL, openai-responses:MODEL, gemini:MODEL, script:FILE, "
    "or the address of an OpenAI-compatible server: http://localhost:8080/v1#MODEL"
)


@overload
def resolve_model(given: None) -> None: ...


@overload
def resolve_model(given: str | Model | SummarizeFunction) -> Model: ...


@overload
def resolve_model(given: str | Model | SummarizeFunction | None) -> Model | None: ...


def resolve_model(given: str | Model | SummarizeFunction | None) -> Model | None:
    """Returns the model for a name, a URL, an object or a function; None for None."""
    if given is None:
        return None
    if isinstance(given, str):
        return _model_by_name(given.strip())
    if _is_model(given):
        return given
    if callable(given) and not isinstance(given, type):
        return FunctionModel(cast("SummarizeFunction", given))
    kind = f"the class {given.__name__}" if isinstance(given, type) else type(given).__name__
    raise InvalidInput(
        f"A summarizer is a name ({MODEL_NAME_FORMS}), a model, or a function from text to text, not {kind}."
    )


def resolve_chat_model(given: str | ChatModel) -> ChatModel:
    """Returns the agent's model for a name, a URL or an object."""
    if isinstance(given, str):
        return _model_by_name(given.strip())
    if not isinstance(given, type) and callable(getattr(given, "step", None)):
        if isinstance(getattr(given, "name", None), str) and isinstance(getattr(given, "format", None), str):
            return given
        raise InvalidInput(
            f"{type(given).__name__} takes steps, but has no `name` and `format`: see holdfast.models.calls."
        )
    if isinstance(given, type):
        kind = f"the class {given.__name__}"
    else:
        kind = "a function, which can only summarize" if callable(given) else type(given).__name__
    raise InvalidInput(f"A model for an agent is a name ({MODEL_NAME_FORMS}) or an object with `step`, not {kind}.")


def _is_model(given: Any) -> TypeGuard[Model]:
    """Returns whether an object has a name and takes a call and `on_delta`; a plain function takes one text."""
    if isinstance(given, type) or not callable(given) or not isinstance(getattr(given, "name", None), str):
        return False
    try:
        inspect.signature(given).bind("call", "on_delta")
    except (TypeError, ValueError):
        return False
    return True


def has_key(provider: str) -> bool:
    """Whether the environment has a key for this provider; False if there is no such provider, or it needs none."""
    sdk = getattr(PROVIDERS.get(provider), "sdk", None)
    return sdk is not None and sdk.has_key()


def check_model_name(name: str) -> None:
    """Raises InvalidInput unless this names a model; needs neither its SDK nor a key."""
    _model_maker(name.strip())


def _model_by_name(name: str) -> NamedModel:
    return _model_maker(name)()


def _model_maker(name: str) -> Callable[[], NamedModel]:
    if name.lower().startswith(("http://", "https://")):
        address, _, model = name.partition("#")
        try:
            host = urlsplit(address).hostname
        except ValueError:
            host = None
        if not host:
            raise InvalidInput(f"{scrub(name)!r} names no server: use http://localhost:8080/v1#MODEL.")
        return partial(OpenAIChat, unquote(model) or None, base_url=address)
    provider, colon, model = name.partition(":")
    known = PROVIDERS.get(provider.strip().lower())
    if known is not None and model.strip():
        return partial(known, model.strip())
    raise InvalidInput(f"{_unknown_model_message(name, provider, model, bool(colon))} Use {MODEL_NAME_FORMS}.")


def _unknown_model_message(name: str, provider: str, model: str, has_provider: bool) -> str:
    shown = scrub(name)
    if provider.lower() in PROVIDERS:
        return f"{shown!r} names no model."
    if has_provider:
        similar = closest_name(provider, PROVIDERS)
        return f"There is no provider {scrub(provider)!r}" + (f": did you mean {similar}:{model}?" if similar else ".")
    entry = CATALOG.find(name)
    if entry is not None and entry.provider in PROVIDERS:
        return f"{shown!r} names no provider: did you mean {entry.provider}:{name}?"
    return f"{shown!r} names no provider."


def context_window_of(model: Model | ChatModel | None) -> int | None:
    """Returns the maximum prompt tokens of a model, if the catalog knows it."""
    name = None if model is None else model.name.rpartition(":")[2]
    if wants_long_window(name):
        return CATALOG.window(name)
    known = None if name is None else CATALOG.find(name)
    return None if known is None else known.input or known.window
