"""Requests that name the reply before them (`previous_response_id`) in place of the conversation.

They continue the session of that reply, and are forwarded as they are while the upstream has what they name and it
fits. Else the session's context is sent in place of the name: where a compaction is due, content was redacted, or the
upstream does not store replies. Replies are noted in memory: after a restart, such requests pass as they are.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence

import msgspec

from ..messages import Json
from ..models.calls import Model
from .answers import Answer
from .client_sessions import Caller, SessionPlace
from .protocols import PREVIOUS_REPLY, RequestBody
from .replies import error_text
from .rewriting import RewriteDecision, Rewriter

MAX_REPLIES, MAX_REPLY_BYTES = 10_000, 64 * 2**20
"""Replies that are noted, and the bytes of their output."""
_FORMAT = "openai-responses"
_UNFINISHED = ("queued", "in_progress", "failed", "cancelled")
_UNKNOWN = re.compile(r"previous.?response", re.IGNORECASE)
"""How an upstream refuses the name of a reply that it does not have."""


class NotedReply(msgspec.Struct):
    """A reply that a request may name."""

    output: bytes
    """Its items, as a JSON list."""
    is_stored: bool
    """Whether the upstream was asked to store it."""
    checkpoint: str
    """The compaction under which it was made."""
    decision: RewriteDecision | None
    """The decision about its request, until the log has that."""
    place: SessionPlace | None = None


def is_chained(body: RequestBody) -> bool:
    """Whether a request names a reply, or has a text in place of a list as the first of such requests may."""
    return body.protocol.format == _FORMAT and (PREVIOUS_REPLY in body.fields or body.has_text_alone)


class ResponseChains:
    """The replies of the Responses API that clients may name, by owner and id."""

    def __init__(self, rewriter: Rewriter) -> None:
        self._rewriter = rewriter
        self._replies: OrderedDict[tuple[str, str], NotedReply] = OrderedDict()
        self._bytes = 0
        self._is_stateless = False
        """Whether the upstream has refused the name of a reply that it made itself."""

    async def decide(self, body: RequestBody, caller: Caller, summarizer: Model | None) -> Answer:
        """Returns what to forward for a request that names a reply, or has a text alone."""
        whole = _with_list(body)
        named = body.value(PREVIOUS_REPLY)
        if named is None:
            return Answer(await self._rewriter.decide(whole, "generate", caller, summarizer), body=whole)
        reply = self._replies.get((caller.owner, named)) if isinstance(named, str) else None
        if reply is None or not whole.has_all_messages:
            return Answer(RewriteDecision("other"))
        decision = await self._rewriter.guard(lambda: self._continue(reply, whole, caller, summarizer))
        answer = Answer(decision, body=whole)
        if decision.body is None or decision.conversation is None:
            return answer
        if not decision.checkpoint:
            decision.outcome = "continued"
        is_known = reply.is_stored and not self._is_stateless and decision.checkpoint == reply.checkpoint
        if is_known and not decision.conversation.is_redacted:
            answer.instead, decision.body, decision.outcome = decision.body, None, "unchanged"
        return answer

    async def _continue(
        self, reply: NotedReply, whole: RequestBody, caller: Caller, summarizer: Model | None
    ) -> RewriteDecision:
        await self._place(reply)
        if reply.place is None:
            return RewriteDecision("other")
        output, items = (msgspec.json.decode(part) for part in (reply.output, whole.messages))
        place = msgspec.structs.replace(reply.place, after=[*output, *items])
        match = await self._rewriter.conversations.match_place(caller, place)
        if match is None:  # the session was deleted
            return RewriteDecision("other")
        decision = await self._rewriter.follow(match, whole, summarizer)
        await self._rewriter.replace(whole, decision, continues=True)
        return decision

    def learn(self, answer: Answer, status: int, reply: bytes, encoding: str) -> bool:
        """Whether the upstream does not have the reply that a request names; everything is then sent, from now on."""
        if answer.instead is None or status not in (400, 404) or not _UNKNOWN.search(error_text(reply, encoding)):
            return False
        self._is_stateless = True
        answer.decision.body, answer.instead = answer.instead, None
        answer.decision.outcome = "compacted" if answer.decision.checkpoint else "continued"
        return True

    # -- replies ---------------------------------------------------------------------------------------

    def note(self, body: RequestBody, decision: RewriteDecision, reply: Json) -> None:
        """Notes a reply whose last bytes are still to be sent."""
        name, output = reply.get("id"), reply.get("output")
        if body.protocol.format != _FORMAT or decision.conversation is None or reply.get("status") in _UNFINISHED:
            return
        if not isinstance(name, str) or not isinstance(output, list):
            return
        is_stored = body.value("store") is not False
        noted = NotedReply(msgspec.json.encode(output), is_stored, decision.checkpoint, decision)
        self._forget((decision.owner, name))
        self._replies[decision.owner, name] = noted
        self._bytes += len(noted.output)
        decision.reply_id = name
        while len(self._replies) > MAX_REPLIES or self._bytes > MAX_REPLY_BYTES:
            self._forget(next(iter(self._replies)))

    def _forget(self, key: tuple[str, str]) -> None:
        if (gone := self._replies.pop(key, None)) is not None:
            self._bytes -= len(gone.output)

    async def finish(self, decision: RewriteDecision) -> None:
        """Finds the place in the log of the reply to a request."""
        if (reply := self._replies.get((decision.owner, decision.reply_id))) is not None:
            await self._place(reply)

    async def _place(self, reply: NotedReply) -> None:
        decision, reply.decision = reply.decision, None
        if decision is None or not await decision.written():
            return
        conversation, given = decision.conversation, decision.given
        assert conversation is not None and given is not None
        logged = conversation.log.match(given.given).logged
        leading: Sequence[Json] = given.leading_messages
        reply.place = SessionPlace(conversation.session_id, conversation.log.ids[logged - 1], [], list(leading))


def _with_list(body: RequestBody) -> RequestBody:
    """Returns a request without the name of a reply; a text alone becomes a list with one message."""
    fields = {}
    if body.has_text_alone:
        message = {"type": "message", "role": "user", "content": body.value(body.protocol.messages)}
        fields[body.protocol.messages] = msgspec.Raw(msgspec.json.encode([message]))
    whole = body.with_fields(fields)
    whole.fields.pop(PREVIOUS_REPLY, None)
    return whole
