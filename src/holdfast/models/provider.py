"""What all providers have in common: one client, one way to read a stream, one way to fail."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from types import MappingProxyType
from typing import Any, ClassVar

import anyio.to_thread
from anyio.lowlevel import current_token

from ..calls import Answer, Delta, Failure, ModelCall, StepCall, StepReply
from ..errors import InvalidInput
from ..messages import Json, Media, Message, Text, decode_all, encode_all, tools_in
from .draft import Draft
from .failures import failure_of
from .overflow import is_doubtful
from .sdk import ONE_CALL, PLACEHOLDER, Sdk
from .secrets import passwords_in, public_url, scrub

_NOT_TAKEN = re.compile(
    r"unsupported|(?:not|n't) support|unrecogni[sz]ed|unknown|unexpected|not (?:permitted|allowed)|deprecated"
    r"|extra_forbidden|only the default",
    re.IGNORECASE,
)
_PARAMETERS = 3
"""So many parameters a model may refuse, one after the other."""
Call = ModelCall | StepCall
Pieces = AsyncGenerator[Delta, None]


class Provider(ABC):
    """A model behind a provider's own SDK, which is imported when it is first asked.

    It answers questions (`await model(call, …)`) and takes an agent's steps (`await model.step(call, …)`), where a
    piece without text is a sign of life and no more.

    With `base_url=` it is asked there, and no key from the environment goes to that address: give `api_key=`
    where it wants one. With `client=` it is asked through the SDK's asynchronous client that you made; close it
    yourself.
    """

    sdk: ClassVar[Sdk]
    prefix: ClassVar[str]
    format: ClassVar[str]
    optional: ClassVar[frozenset[str]] = frozenset()
    """Parameters that a model may refuse, and that a call can do without."""
    by_other_words: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """How a refusal names a parameter that it does not name."""

    def __init__(
        self, model: str | None, *, base_url: str | None = None, api_key: str | None = None, client: Any = None
    ) -> None:
        self.sdk.must_be_installed()
        self.model = model
        self._refused: set[str] = set()
        self._given = client
        self._kept: tuple[object, Any] | None = None
        self._base_url = base_url or os.environ.get(self.sdk.address) or None
        self._key = api_key
        if client is not None or api_key is not None:
            return
        if base_url or (self._base_url and not self.sdk.has_key()):
            self._key = PLACEHOLDER
        elif not self.sdk.has_key():
            raise InvalidInput(
                f"{self.prefix}:{scrub(model or '')} needs a key: set {' or '.join(self.sdk.keys)}, or pass api_key=."
            )

    @property
    def name(self) -> str:
        return f"{self.prefix}:{self.model}"

    def __repr__(self) -> str:
        where = f", base_url={public_url(self._base_url)!r}" if self._base_url else ""
        return f"{type(self).__name__}({self.model!r}{where})"

    async def __call__(self, call: ModelCall, on_delta: Callable[[str], None]) -> Answer:
        def hear(delta: Delta) -> None:
            on_delta(delta.text if delta.kind == "text" else "")

        drafted = await self._ask(call, hear)
        return drafted if isinstance(drafted, Failure) else drafted.reply()

    async def step(self, call: StepCall, on_delta: Callable[[Delta], None]) -> StepReply | Failure:
        drafted = await self._ask(call, on_delta)
        return drafted if isinstance(drafted, Failure) else drafted.step(self.format)

    async def aclose(self) -> None:
        """Let go of the client; the next call makes a new one."""
        kept, self._kept = self._kept, None
        if kept is not None and kept[0] == current_token():
            await self._disconnect(kept[1])

    async def _ask(self, call: Call, on_delta: Callable[[Delta], None]) -> Draft | Failure:
        """One request, and again without the parameters that the model refuses."""
        answer = await self._ask_once(call, on_delta)
        for _ in range(_PARAMETERS):
            if not (isinstance(answer, Failure) and self._learns_from(answer, call)):
                break
            answer = await self._ask_once(call, on_delta)
        if isinstance(answer, Failure) and answer.kind == "media" and not self._shows_media(call):
            return Failure("request", answer.why)
        return answer

    async def _ask_once(self, call: Call, on_delta: Callable[[Delta], None]) -> Draft | Failure:
        """Only what goes wrong with the request is a failure, not what the listener raises."""
        draft = Draft()
        async with aclosing(self._pieces(call, draft)) as pieces:
            while isinstance(piece := await self._next(pieces), Delta):
                if piece.kind == "text":
                    draft.texts.append(piece.text)
                on_delta(piece)
        if isinstance(piece, Failure) and is_doubtful(piece, call):
            return Failure("request", piece.why)
        return piece or draft

    async def _next(self, pieces: Pieces) -> Delta | Failure | None:
        try:
            return await anext(pieces, None)
        except Exception as problem:
            failure = failure_of(problem, (self._key or "", *passwords_in(self._base_url)))
            return Failure("request", failure.why) if _asked_wrongly(problem) else failure

    async def _pieces(self, call: Call, draft: Draft) -> Pieces:
        client = await self._client()
        if self.model is None:
            self.model = await self._first_model(client)
        async with aclosing(self._stream(client, self._request(call), draft)) as pieces:
            async for piece in pieces:
                yield piece

    async def _client(self) -> Any:
        """One for each event loop, because a connection cannot move from one to another."""
        if self._given is not None:
            return self._given
        here = current_token()
        if self._kept is None or self._kept[0] != here:
            client = await anyio.to_thread.run_sync(self._connect, abandon_on_cancel=True)
            if self._kept is None or self._kept[0] != here:
                self._kept = (here, client)
        return self._kept[1]

    def _learns_from(self, failure: Failure, call: Call) -> bool:
        """Did it refuse a parameter, of those it can do without? It is not sent again."""
        if failure.kind != "request" or not _NOT_TAKEN.search(failure.why) or self.model is None:
            return False
        sent = self.optional & self._request(call).keys()
        refused = {name for name in sent if re.search(self.by_other_words.get(name, rf"\b{name}\b"), failure.why)}
        self._refused |= refused
        return bool(refused)

    def _messages(self, call: Call) -> list[Json]:
        if isinstance(call, StepCall):
            return list(call.messages)
        return encode_all([Message("user", (Text(call.prompt), *call.media))], self.format)

    def _tools(self, call: Call) -> list[Json] | None:
        return tools_in(self.format, call.tools) if isinstance(call, StepCall) and call.tools else None

    def _temperature(self, call: Call) -> float | None:
        return call.temperature if isinstance(call, ModelCall) else None

    def _shows_media(self, call: Call) -> bool:
        if isinstance(call, ModelCall):
            return bool(call.media)
        parts = [part for message in decode_all(call.messages, self.format)[0] for part in message.parts]
        inside = [piece for part in parts for piece in getattr(part, "content", ())]
        return any(isinstance(part, Media) for part in [*parts, *inside])

    def _accepted(self, parameters: Json) -> Json:
        return {name: value for name, value in parameters.items() if value is not None and name not in self._refused}

    async def _first_model(self, client: Any) -> str:
        raise InvalidInput(f"Name the model: {self.prefix}:MODEL.")

    def _connect(self) -> Any:
        """A client of the SDK. It never tries again by itself and leaves no connection open after a call."""
        return self._make_client(self.sdk.load(), dict(ONE_CALL))

    @abstractmethod
    def _make_client(self, sdk: Any, headers: dict[str, str]) -> Any: ...

    @abstractmethod
    def _request(self, call: Call) -> Json: ...

    @abstractmethod
    def _stream(self, client: Any, request: Json, draft: Draft) -> Pieces: ...

    async def _disconnect(self, client: Any) -> None:
        await client.close()


def _asked_wrongly(problem: Exception) -> bool:
    """Was it never sent? Gemini's SDK checks messages itself, with a library that is not imported here."""
    return isinstance(problem, InvalidInput | TypeError) or type(problem).__name__ == "ValidationError"
