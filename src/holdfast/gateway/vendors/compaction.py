"""Both vendors' compaction protocols over any upstream: requests are compacted here, items are minted and read here."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import Protocol

import anyio
import msgspec

from ...compaction import acompact
from ...errors import InvalidInput
from ...follow import count_leading_system
from ...io.http_messages import Headers
from ...io.http_server import HttpReply
from ...messages import Json, decode_one, is_framed, strip_frame
from ...models.calls import Model
from ...sessions import Context
from ...tokens import Usage
from ...triggers import always
from ..answers import Answer
from ..client_sessions import Caller, ClientSession
from ..protocols import CallKind, RequestBody, mark_last_block
from ..replies import decoder_for, read_event
from ..rewriting import PREPARE_SECONDS, RewriteDecision, Rewriter, failed
from . import anthropic, openai
from .context_editing import ContextEdits
from .requests import CompactedContext, CompactionItem, CompactionRequest, ProtocolRefusal
from .sealed_items import ItemSealer, SealedItem, text_digest

log = logging.getLogger("holdfast.gateway")
_MAX_QUOTE, _MAX_QUOTES = 2_000, 20
"""Characters of a message that is quoted beside the notes, and the number of such messages."""
_READERS = {"openai-responses": openai.read_request, "anthropic": anthropic.read_request}


class ReplyEditor(Protocol):
    """Changes an upstream's reply as the vendor's protocol requires."""

    def edit_event(self, event: Json) -> list[Json]: ...
    def edit_whole(self, reply: Json) -> Json: ...


class VendorCompaction:
    """Performs the vendors' protocols with the conversations of a `Rewriter`.

    With `native`, the upstream has the protocols itself: only items of the gateway are read.
    """

    def __init__(self, rewriter: Rewriter, keys: Sequence[str], *, native: bool = False) -> None:
        self._rewriter = rewriter
        self._sealer = ItemSealer(keys)
        self._native = native

    async def decide(self, body: RequestBody, kind: CallKind, caller: Caller, summarizer: Model | None) -> Answer:
        """Returns what to forward or to reply: the vendor's own refusal where the vendor would refuse the request."""
        try:
            answer = await self._decide(body, kind, caller, summarizer)
        except ProtocolRefusal as refusal:
            return Answer(RewriteDecision("refused"), refusal.reply)
        if body.is_changed and not self._native:
            answer.headers = partial(upstream_headers, edited=answer.edit is not None)
        return answer

    async def _decide(self, body: RequestBody, kind: CallKind, caller: Caller, summarizer: Model | None) -> Answer:
        read = _READERS[body.protocol.format]
        sent = dict(body.fields)
        try:
            asked = read(body, kind, self._sealer, caller.owner, native=self._native)
        except ProtocolRefusal:
            raise
        except Exception as problem:
            log.warning("the request is forwarded as it is: %s", type(problem).__name__, exc_info=True)
            body.restore(sent)
            return Answer(failed(problem))
        if kind == "compact" and not asked.now:
            return Answer(RewriteDecision("other"))
        compacted: CompactedContext | None = None

        async def rewrite() -> RewriteDecision:
            nonlocal compacted
            decision, compacted = await self._rewrite(body, kind, caller, asked, summarizer)
            return decision

        decision = await self._rewriter.guard(rewrite)
        if asked.now and compacted is None:
            compacted = await self._compact_list(body, asked)
        item = None if compacted is None else self._mint(compacted, asked, caller)
        if item is not None and (asked.now or asked.pause):
            decision.outcome = "failed" if decision.outcome == "failed" else "compacted"
            return Answer(decision, _reply(body, kind, asked, item))
        editor = _editor(body, kind, asked, item, self._apply_edits(body, asked, decision))
        return Answer(decision, edit=None if editor is None else partial(EditedReply, editor))

    async def _rewrite(
        self, body: RequestBody, kind: CallKind, caller: Caller, asked: CompactionRequest, summarizer: Model | None
    ) -> tuple[RewriteDecision, CompactedContext | None]:
        """Decides as the rewriter does, after the compaction that the request asks for; returns that, too."""
        rewriter, returned = self._rewriter, asked.returned
        if not body.has_all_messages:
            return RewriteDecision("other"), None
        match = None if returned is None else await rewriter.conversations.match_place(caller, returned.place)
        continues = match is not None
        match = match or await rewriter.conversations.match(caller, body)
        if not asked.now and (kind != "generate" or rewriter.is_side_call(match, body)):
            return await rewriter.decide_aside(match, body, continues=continues), None
        if asked.now and await rewriter.conversations.has_more(match):
            return RewriteDecision("other"), None
        decision = await rewriter.follow(match, body, summarizer)
        conversation, compacted = decision.conversation, None
        if conversation is None:
            return decision, None
        if asked.is_any:
            context = await rewriter.keeper(body, decision).context()
            if asked.is_due(context.tokens, lambda: context.messages, rewriter.measure(body)):
                usage = await self._compact_session(decision, asked, context)
                conversation.size = None
                if usage is not None:
                    context = await rewriter.keeper(body, decision).context()
                    compacted = await self._compacted(conversation, context, usage)

        def mark(messages: list[Json]) -> None:
            if returned is not None and returned.mark is not None:
                mark_last_block(messages, returned.messages, returned.mark)

        await rewriter.replace(body, decision, continues=continues, mark=mark)
        return decision, compacted

    async def _compact_session(
        self, decision: RewriteDecision, asked: CompactionRequest, context: Context
    ) -> Usage | None:
        """Compacts a session; returns the summarizer's usage, or None if a threshold was exceeded to no avail."""
        sessions = self._rewriter.sessions
        window = (await sessions.size(decision.session_id)).window or context.tokens
        with self._rewriter.waiting():
            result = await sessions.compact(
                decision.session_id,
                always if asked.now else lambda request: True,
                on_conflict="rebase",
                preset=self._rewriter.policy,
                budget=max(1, min(context.tokens, window, asked.threshold or window)),
                instructions=asked.instructions,
                summarizer=decision.summarizer or sessions.model,
                listen=lambda event: self._rewriter.on_event(event, decision.owner),
            )
        if not asked.now and result.tokens_after >= result.tokens_before:
            return None
        return Usage() if result.cost is None else result.cost.usage

    async def _compacted(self, conversation: ClientSession, context: Context, usage: Usage) -> CompactedContext:
        newest = await self._rewriter.sessions.events(conversation.session_id, kind="compaction", last=1)
        return CompactedContext(
            context.messages,
            context.tokens,
            usage,
            session=conversation.session_id,
            last=conversation.log.ids[-1],
            checkpoint=newest[0].id if newest else "",
        )

    async def _compact_list(self, body: RequestBody, asked: CompactionRequest) -> CompactedContext:
        """Compacts the list alone: the store cannot be used, or the client compacts a part of its conversation."""
        rewriter = self._rewriter
        try:
            messages: list[Json] = msgspec.json.decode(body.messages)
            messages = messages[count_leading_system(messages) :]
            window = rewriter.window(body.model)
            with anyio.fail_after(PREPARE_SECONDS):
                result = await acompact(
                    messages,
                    budget=max(1, min(window, sum(map(rewriter.measure(body), messages)))),
                    preset=rewriter.policy.changed(window=window),
                    format=body.protocol.format,
                    system=body.system,
                    tools=body.value("tools"),
                    trigger=always,
                    summarizer=rewriter.sessions.model,
                    instructions=asked.instructions,
                )
        except Exception as problem:
            log.warning("a compaction that a client asked for failed: %s", type(problem).__name__, exc_info=True)
            vendor = anthropic if body.protocol.format == "anthropic" else openai
            raise vendor.unavailable() from None
        usage = Usage() if result.cost is None else result.cost.usage
        return CompactedContext(list(result.messages), result.tokens_after, usage)

    def _mint(self, compacted: CompactedContext, asked: CompactionRequest, caller: Caller) -> CompactionItem:
        summary = summary_text(compacted.messages, caller.format)
        item = SealedItem(
            format=caller.format,
            messages=msgspec.json.encode(compacted.messages),
            session=compacted.session,
            last=compacted.last,
            checkpoint=compacted.checkpoint,
            replaced=asked.replaced,
            summary=text_digest(summary),
        )
        return CompactionItem(self._sealer.seal(item, caller.owner), summary, compacted.tokens, compacted.usage)

    def _apply_edits(self, body: RequestBody, asked: CompactionRequest, decision: RewriteDecision) -> list[Json]:
        """Clears what the request's edits name from the request that is forwarded."""
        if not asked.edits:
            return []
        try:
            return self._clear(body, asked.edits, decision)
        except Exception as problem:
            log.warning("the request is forwarded without its edits: %s", type(problem).__name__, exc_info=True)
            return []

    def _clear(self, body: RequestBody, edits: ContextEdits, decision: RewriteDecision) -> list[Json]:
        forwarded = body if decision.body is None else RequestBody(body.protocol, decision.body)
        messages: list[Json] = msgspec.json.decode(forwarded.messages)
        measure = self._rewriter.measure(body)
        tokens = decision.tokens_after or sum(map(measure, messages))
        edited, applied = edits.apply(messages, tokens, measure)
        if applied:
            decision.body = body.with_messages(msgspec.json.encode(edited))
            decision.tokens_after = tokens - sum(edit["cleared_input_tokens"] for edit in applied)
        return applied


def summary_text(messages: list[Json], format: str) -> str:
    """Returns the notes and the user's messages of a compacted context as text; without notes, the newest texts."""
    decoded = [decode_one(message, format) for message in messages]
    notes = [strip_frame(message) for message in decoded if is_framed(message)]
    kept = ("user",) if notes else ("user", "assistant")
    texts = [
        f"{message.role}: {message.text[:_MAX_QUOTE]}"
        for message in decoded
        if message.role in kept and message.text and not is_framed(message)
    ]
    return "\n\n".join([*notes, *texts[-_MAX_QUOTES:]]) or "(The conversation so far has no text.)"


def _reply(body: RequestBody, kind: CallKind, asked: CompactionRequest, item: CompactionItem) -> HttpReply:
    """Returns the reply that has only the item, in the form that the request asks for."""
    if kind == "compact":
        return HttpReply.json(openai.compacted_reply(asked, item))
    if body.protocol.format == "anthropic":
        whole, events = anthropic.compacted_reply(body, asked, item)
    else:
        whole, events = openai.triggered_reply(body, item)
    if body.value("stream") is not True:
        return HttpReply.json(whole)
    stream = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}
    return HttpReply(200, b"".join(map(encode_event, events)), stream)


def _editor(
    body: RequestBody, kind: CallKind, asked: CompactionRequest, item: CompactionItem | None, applied: list[Json]
) -> ReplyEditor | None:
    if body.protocol.format == "anthropic" and kind == "count":
        return anthropic.CountEditor(applied) if asked.reports_edits else None
    if body.protocol.format == "anthropic" and (item is not None or asked.reports_edits):
        return anthropic.MessageEditor(asked, item, applied)
    return None if item is None else openai.ResponseEditor(item)


def upstream_headers(headers: Headers, *, edited: bool) -> dict[str, str | None]:
    """Returns the headers that differ in the upstream's request: no betas of ours, and a reply that can be edited."""
    changed: dict[str, str | None] = {}
    if betas := headers.get("anthropic-beta"):
        kept = [name for name in map(str.strip, betas.split(",")) if name not in anthropic.BETAS]
        changed["anthropic-beta"] = ",".join(kept) or None
    return changed | ({"accept-encoding": "identity"} if edited else {})


def encode_event(event: Json) -> bytes:
    """Encodes an event of a stream, named by its type as both vendors do."""
    return f"event: {event['type']}\ndata: ".encode() + msgspec.json.encode(event) + b"\n\n"


class EditedReply:
    """The bytes of a reply as they pass, edited: a stream event by event, any other reply at its end."""

    def __init__(self, editor: ReplyEditor, content_type: str, encoding: str) -> None:
        self._editor = editor
        self._streams = "text/event-stream" in content_type
        decode = decoder_for(encoding)
        if decode is None:
            raise InvalidInput(f"The upstream replied in {encoding!r}, which was not asked for.")
        self._decode = decode
        self._rest = b""

    def feed(self, chunk: bytes) -> bytes:
        """Takes the next bytes; returns those that can be sent."""
        self._rest += self._decode(chunk)
        if not self._streams:
            return b""
        text = self._rest.replace(b"\r\n", b"\n")
        complete, end, self._rest = text.rpartition(b"\n\n")
        return b"".join(self._edit(block + b"\n\n") for block in complete.split(b"\n\n")) if end else b""

    def finish(self) -> bytes:
        """Returns what remains at the end of the reply."""
        if self._streams or not self._rest:
            return self._rest
        try:
            reply = msgspec.json.decode(self._rest)
        except msgspec.DecodeError:
            return self._rest
        return msgspec.json.encode(self._editor.edit_whole(reply)) if isinstance(reply, dict) else self._rest

    def _edit(self, block: bytes) -> bytes:
        event = read_event(block)
        if not isinstance(event, dict) or "type" not in event:
            return block
        edited = self._editor.edit_event(event)
        return block if len(edited) == 1 and edited[0] is event else b"".join(map(encode_event, edited))
