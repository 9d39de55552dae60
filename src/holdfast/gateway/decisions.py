"""What a model call needs of its request to be decided about, and the decision: in this process or in another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from ..errors import InvalidInput
from ..hooks.events import CompactionEvent
from ..messages import Json
from ..models.calls import Failure
from ..sessions import SessionService
from ..tokens import Usage
from .answers import Answer
from .client_model import client_model
from .client_sessions import Caller
from .protocols import CallKind, RequestBody, WireProtocol, find_protocol, session_key
from .replies import decode_body
from .response_chains import ResponseChains, is_chained
from .rewriting import RewriteDecision, Rewriter

if TYPE_CHECKING:
    from .vendors.compaction import VendorCompaction


class GatewayCall(msgspec.Struct):
    """A request for a model, as far as a decision needs it."""

    raw: bytes
    encoding: str
    path: str
    owner: str
    key: str
    """The client's own name of the conversation, if a header has it."""
    upstream: str = ""
    """Address and key for the client's own model as summarizer, if it is to be used."""
    provider_key: str = ""

    def unpack(self, limit: int) -> None:
        """Decodes a compressed body; raises InvalidInput if it is malformed, BodyTooLarge if it is longer."""
        if self.encoding:
            self.raw, self.encoding = decode_body(self.raw, self.encoding, limit), ""

    @property
    def protocol(self) -> tuple[WireProtocol, CallKind]:
        """Wire protocol and kind of the call."""
        found = find_protocol("POST", self.path)
        assert found is not None
        return found


class DecisionOptions(msgspec.Struct, frozen=True):
    """The options of the gateway that decisions depend on."""

    item_keys: tuple[str, ...]
    native: bool
    max_body: int


class Decisions:
    """Decides about model calls with the sessions of a service."""

    def __init__(
        self,
        sessions: SessionService,
        options: DecisionOptions,
        on_event: Callable[[CompactionEvent, str], object],
        on_unwritten: Callable[[], object] = lambda: None,
        store_seconds: float | None = None,
    ) -> None:
        self.rewriter = Rewriter(sessions, on_event, on_unwritten, store_seconds)
        self._chains = ResponseChains(self.rewriter)
        self._vendor: VendorCompaction | None = None
        self._options = options

    def _vendor_protocols(self) -> VendorCompaction:
        if self._vendor is None:
            from .vendors.compaction import VendorCompaction

            self._vendor = VendorCompaction(self.rewriter, self._options.item_keys, native=self._options.native)
        return self._vendor

    async def decide(self, call: GatewayCall) -> Answer:
        """Returns what to forward or to reply."""
        protocol, kind = call.protocol
        try:
            call.unpack(self._options.max_body)
            body = RequestBody(protocol, call.raw, call.path)
            caller = Caller(call.owner, session_key(call.key, body), protocol.format)
        except RecursionError:
            raise InvalidInput("The JSON of the request is nested too deeply.") from None
        except InvalidInput:
            return Answer(RewriteDecision("other"))  # the upstream says what is wrong with it
        if window := body.stated_window:
            self.rewriter.sessions.stated.note(body.model, reported=window)
        summarizer = None
        if call.provider_key:
            summarizer = client_model(protocol.format, body.model, call.upstream, call.provider_key)
        if body.may_ask_for_compaction(kind):
            answer = await self._vendor_protocols().decide(body, kind, caller, summarizer)
        elif kind == "generate" and is_chained(body):
            answer = await self._chains.decide(body, caller, summarizer)
        else:
            answer = Answer(await self.rewriter.decide(body, kind, caller, summarizer))
        answer.body = answer.body or body
        return answer

    def note_reply(self, answer: Answer, reply: Json) -> None:
        """Notes a reply of the Responses API, which the next request may name in place of the conversation."""
        if answer.body is not None and answer.edit is None:
            self._chains.note(answer.body, answer.decision, reply)

    def without_store(self, answer: Answer, status: int, reply: bytes, encoding: str) -> bool:
        """Whether a refusal means that the upstream has no earlier replies: the decision is then to send everything."""
        return self._chains.learn(answer, status, reply, encoding)

    async def recover(self, answer: Answer, failure: Failure) -> RewriteDecision | None:
        """Returns a smaller request after the provider refused one as too long; None if there is none."""
        return None if answer.body is None else await self.rewriter.recover(answer.body, answer.decision, failure)

    async def finish(self, answer: Answer, usage: Usage | None) -> None:
        """Records the usage of a reply, and compacts in the background if that is due."""
        if answer.body is not None:
            await self._chains.finish(answer.decision)
            await self.rewriter.finish(answer.body, answer.decision, usage)
