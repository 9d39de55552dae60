"""What every provider shares: one client, one stream reader, one reply accumulator, one error path."""

from __future__ import annotations

import os
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import anyio.to_thread
from anyio.lowlevel import current_token

from ..errors import InvalidInput
from ..io.installation import install_command
from ..io.secrets import public_url, scrub, secrets_in_url
from ..messages import Json, Media, Message, Text, ToolCall, decode_all, encode_all, encode_tools, from_json
from ..tokens import Usage
from .calls import Answer, Failure, Finish, ModelCall, Reply, ReplyDelta, StepCall, StepReply
from .failures import failure_from_exception
from .overflow import is_doubtful_overflow, prompt_characters

PLACEHOLDER_KEY = "none"
"""SDKs require a key even if the server does not."""
CLOSE_CONNECTION = {"Connection": "close"}
"""One connection per call: an open one would outlive the event loop of a blocking caller."""


class Sdk(NamedTuple):
    """A provider's SDK: an extra, imported at the first call."""

    module: str
    extra: str
    keys: tuple[str, ...]
    """Environment variables for the API key; any one suffices."""
    base_url_variable: str
    """Environment variable for another base URL."""

    def require_installed(self) -> None:
        try:
            found = find_spec(self.module)
        except ModuleNotFoundError:
            found = None
        if found is None:
            raise InvalidInput(f"This model needs the {self.module} SDK: {install_command(self.extra)}") from None

    def has_key(self) -> bool:
        return any(os.environ.get(name) for name in self.keys)

    def load(self) -> Any:
        """Imports the SDK, one at a time: threads that import parts of HTTPX in different orders see it unfinished."""
        with _IMPORTING:
            return import_module(self.module)


_IMPORTING = threading.Lock()


class StreamedError(Exception):
    """An error that a provider reports inside a stream."""

    def __init__(self, body: Any) -> None:
        super().__init__("The provider reported an error.")
        self.body = body


def to_plain_data(value: Any) -> Any:
    """Converts an SDK object to plain data."""
    return value.model_dump() if hasattr(value, "model_dump") else value


def pop_extra_body(request: Json, names: Iterable[str]) -> Json:
    """Removes parameters from a request and returns them for the SDK's `extra_body`.

    This skips the SDK's validation of every message part, which takes longer than sending it, and allows parameters
    that the SDK does not know.
    """
    return {name: request.pop(name) for name in names if name in request}


_INCOMPLETE_STREAM = Failure("transport", "The stream ended before the reply was complete.")
_UNREADABLE_CALL = Failure("transport", "The model wanted to call a tool, but its call could not be read.")
"""Happens at random, so a retry may help."""


class ReplyAccumulator:
    """Accumulates a streamed reply. Without a finish, the stream was cut off."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.finish: Finish | None = None
        self.usage: Usage | None = None
        self.model: str | None = None
        self.messages: list[Json] = []
        """Messages to send back with the next request."""
        self.broken_calls: list[ToolCall] = []
        """Incomplete calls that the format cannot represent."""

    def reply(self) -> Answer:
        if self.finish is None:
            return _INCOMPLETE_STREAM
        return Reply("".join(self.texts), self.finish, self.usage, self.model)

    def step_reply(self, format: str) -> StepReply | Failure:
        if self.finish is None:
            return _INCOMPLETE_STREAM
        calls = (*_calls_in(self.messages, format, self.finish), *self.broken_calls)
        finish = "tool_call" if calls and self.finish == "stop" else self.finish
        if finish == "tool_call" and not calls:
            return _UNREADABLE_CALL
        return StepReply(tuple(self.messages), "".join(self.texts), calls, finish, self.usage, self.model)


def _calls_in(messages: list[Json], format: str, finish: Finish) -> Iterator[ToolCall]:
    calls = [call for message in decode_all(messages, format)[0] for call in message.calls]
    for call in calls:
        is_cut_off = finish == "length" and call is calls[-1]
        arguments = parse_arguments(call.arguments, is_cut_off) if isinstance(call.arguments, str) else call.arguments
        yield ToolCall(call.id, call.name, arguments, call.kind, call.signature)


def parse_arguments(written: str, is_cut_off: bool) -> Json | str:
    """Parses arguments as a JSON object; returns the text if it is none. Blank text is an empty object."""
    if not written.strip() and not is_cut_off:
        return {}
    try:
        value = from_json(written)
    except ValueError:
        return written
    return value if isinstance(value, dict) else written


_UNSUPPORTED = re.compile(
    r"unsupported|(?:not|n't) support|unrecogni[sz]ed|unknown|unexpected|not (?:permitted|allowed)|deprecated"
    r"|extra_forbidden|only the default|not enabled|invalid (?:parameter|schema|value)",
    re.IGNORECASE,
)
_MAX_REFUSED_PARAMETERS = 3
"""How many parameters a model may refuse, one after the other."""
ProviderCall = ModelCall | StepCall
DeltaStream = AsyncGenerator[ReplyDelta, None]


class Provider(ABC):
    """Base class of models behind a provider's SDK, which is imported at the first call.

    Answers calls (`await model(call, …)`) and takes an agent's steps (`await model.step(call, …)`); a delta without
    text only signals activity.

    `base_url=` selects another server; it gets no key from the environment, so pass `api_key=` if it needs one.
    `client=` is an asynchronous client of the SDK, which the caller closes.
    """

    sdk: ClassVar[Sdk]
    prefix: ClassVar[str]
    format: ClassVar[str]
    optional: ClassVar[frozenset[str]] = frozenset()
    """Parameters that are dropped if the model refuses them."""
    refusal_patterns: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Patterns for refusals that do not contain the parameter's name."""

    def __init__(
        self, model: str | None, *, base_url: str | None = None, api_key: str | None = None, client: Any = None
    ) -> None:
        self.sdk.require_installed()
        self.model = model
        self._refused: set[str] = set()
        self._custom_client = client
        self._cached_client: tuple[object, Any] | None = None
        self._base_url = base_url or os.environ.get(self.sdk.base_url_variable) or None
        self._key = api_key
        if client is not None or api_key is not None:
            return
        if base_url or (self._base_url and not self.sdk.has_key()):
            self._key = PLACEHOLDER_KEY
        elif not self.sdk.has_key():
            raise InvalidInput(
                f"{self.prefix}:{scrub(model or '')} needs a key: set {' or '.join(self.sdk.keys)} in the environment."
            )

    @property
    def name(self) -> str:
        return f"{self.prefix}:{self.model}"

    def __repr__(self) -> str:
        where = f", base_url={public_url(self._base_url)!r}" if self._base_url else ""
        return f"{type(self).__name__}({self.model!r}{where})"

    async def __call__(self, call: ModelCall, on_delta: Callable[[str], None]) -> Answer:
        def forward(delta: ReplyDelta) -> None:
            on_delta(delta.text if delta.kind == "text" else "")

        accumulated = await self._send(call, forward)
        return accumulated if isinstance(accumulated, Failure) else accumulated.reply()

    async def step(self, call: StepCall, on_delta: Callable[[ReplyDelta], None]) -> StepReply | Failure:
        accumulated = await self._send(call, on_delta)
        return accumulated if isinstance(accumulated, Failure) else accumulated.step_reply(self.format)

    async def aclose(self) -> None:
        """Closes the client; the next call makes a new one."""
        cached, self._cached_client = self._cached_client, None
        if cached is not None and cached[0] == current_token():
            await self._disconnect(cached[1])

    async def _send(self, call: ProviderCall, on_delta: Callable[[ReplyDelta], None]) -> ReplyAccumulator | Failure:
        """Sends the request, and again without the parameters that the model refuses."""
        answer = await self._send_once(call, on_delta)
        for _ in range(_MAX_REFUSED_PARAMETERS):
            if not (isinstance(answer, Failure) and self._note_refused(answer, call)):
                break
            answer = await self._send_once(call, on_delta)
        if isinstance(answer, Failure) and answer.kind == "media" and not self._has_media(call):
            return Failure("request", answer.why)
        return answer

    async def _send_once(
        self, call: ProviderCall, on_delta: Callable[[ReplyDelta], None]
    ) -> ReplyAccumulator | Failure:
        """Sends one request. Its errors become failures; errors of `on_delta` are raised."""
        accumulator = ReplyAccumulator()
        async with aclosing(self._deltas(call, accumulator)) as deltas:
            while isinstance(delta := await self._next(deltas), ReplyDelta):
                if delta.kind == "text":
                    accumulator.texts.append(delta.text)
                on_delta(delta)
        if isinstance(delta, Failure) and is_doubtful_overflow(delta, prompt_characters(call)):
            return Failure("request", delta.why)
        return delta or accumulator

    async def _next(self, deltas: DeltaStream) -> ReplyDelta | Failure | None:
        try:
            return await anext(deltas, None)
        except Exception as error:
            failure = failure_from_exception(error, (self._key or "", *secrets_in_url(self._base_url)))
            return Failure("request", failure.why) if _is_request_error(error) else failure

    async def _deltas(self, call: ProviderCall, accumulator: ReplyAccumulator) -> DeltaStream:
        client = await self._client()
        if self.model is None:
            self.model = await self._first_model(client)
        async with aclosing(self._stream(client, self._request(call), accumulator)) as deltas:
            async for delta in deltas:
                yield delta

    async def _client(self) -> Any:
        """Returns the client of this event loop, since connections cannot move between loops."""
        if self._custom_client is not None:
            return self._custom_client
        here = current_token()
        if self._cached_client is None or self._cached_client[0] != here:
            client = await anyio.to_thread.run_sync(self._connect, abandon_on_cancel=True)
            if self._cached_client is None or self._cached_client[0] != here:
                self._cached_client = (here, client)
        return self._cached_client[1]

    def _note_refused(self, failure: Failure, call: ProviderCall) -> bool:
        """Records optional parameters that the model refused; returns whether there are any."""
        if failure.kind != "request" or not _UNSUPPORTED.search(failure.why) or self.model is None:
            return False
        used = self.optional & self._parameters(self._request(call)).keys()
        refused = {name for name in used if re.search(self.refusal_patterns.get(name, rf"\b{name}\b"), failure.why)}
        self._refused |= refused
        return bool(refused)

    def _parameters(self, request: Json) -> Json:
        """Returns the part of a request that contains the optional parameters."""
        return request

    def _messages(self, call: ProviderCall) -> list[Json]:
        if isinstance(call, StepCall):
            return list(call.messages)
        return encode_all([Message("user", (Text(call.prompt), *call.media))], self.format)

    def _tools(self, call: ProviderCall) -> list[Json] | None:
        return encode_tools(self.format, call.tools) if isinstance(call, StepCall) and call.tools else None

    def _temperature(self, call: ProviderCall) -> float | None:
        return call.temperature if isinstance(call, ModelCall) else None

    def _schema(self, call: ProviderCall) -> Json | None:
        return call.schema if isinstance(call, ModelCall) else None

    def _has_media(self, call: ProviderCall) -> bool:
        if isinstance(call, ModelCall):
            return bool(call.media)
        parts = [part for message in decode_all(call.messages, self.format)[0] for part in message.parts]
        inside = [item for part in parts for item in getattr(part, "content", ())]
        return any(isinstance(part, Media) for part in [*parts, *inside])

    def _without_refused(self, parameters: Json) -> Json:
        return {name: value for name, value in parameters.items() if value is not None and name not in self._refused}

    async def _first_model(self, client: Any) -> str:
        raise InvalidInput(f"Name the model: {self.prefix}:MODEL.")

    def _connect(self) -> Any:
        """Makes an SDK client without retries that closes its connection after each call."""
        return self._make_client(self.sdk.load(), dict(CLOSE_CONNECTION))

    @abstractmethod
    def _make_client(self, sdk: Any, headers: dict[str, str]) -> Any: ...

    @abstractmethod
    def _request(self, call: ProviderCall) -> Json: ...

    @abstractmethod
    def _stream(self, client: Any, request: Json, accumulator: ReplyAccumulator) -> DeltaStream: ...

    async def _disconnect(self, client: Any) -> None:
        await client.close()


def _is_request_error(error: Exception) -> bool:
    """Returns whether the SDK rejected the request before sending it; Gemini's validates with its own library."""
    return isinstance(error, InvalidInput | TypeError) or type(error).__name__ == "ValidationError"
