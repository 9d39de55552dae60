"""Both vendors' compaction protocols over any upstream: requests are compacted here, items are minted and read here."""

from __future__ import annotations

import logging
from typing import Protocol

import anyio
import msgspec

from ..errors import InvalidInput
from ..io.http_messages import Headers, Pieces
from ..io.http_server import HttpReply
from ..messages import Json, decode_one, is_framed, strip_frame
from ..models.calls import Model
from . import anthropic_compaction, openai_compaction
from .client_sessions import Caller
from .protocols import CallKind, RequestBody
from .replies import decoder_for
from .rewriting import PREPARE_SECONDS, RewriteDecision, Rewriter
from .sealed_items import ItemSealer, SealedItem, text_digest
from .vendor_requests import CompactedContext, CompactionItem, CompactionRequest, ProtocolRefusal

log = logging.getLogger("holdfast.gateway")
_MAX_QUOTE, _MAX_QUOTES = 2_000, 20
"""Characters of a message that is quoted beside the notes, and the number of such messages."""
_READERS = {"openai-responses": openai_compaction.read_request, "anthropic": anthropic_compaction.read_request}


class ReplyEditor(Protocol):
    """Changes an upstream's reply as the vendor's protocol requires."""

    def edit_event(self, event: Json) -> list[Json]: ...
    def edit_whole(self, reply: Json) -> Json: ...


class VendorDecision(msgspec.Struct):
    """How one request is answered: by the gateway alone, or by the upstream with an edited reply."""

    decision: RewriteDecision
    reply: HttpReply | None = None
    editor: ReplyEditor | None = None
    body: RequestBody | None = None
    """The request as it was decided about; None if it could not be read, or was decided about in another process."""
    number: int = 0
    """By which another process knows the decision."""
    pieces: Pieces | None = None
    """The request to forward, if that process has changed it."""


class VendorCompaction:
    """Performs the vendors' protocols with the conversations of a `Rewriter`.

    With `native`, the upstream has the protocols itself: only items of the gateway are read.
    """

    def __init__(self, rewriter: Rewriter, sealer: ItemSealer, *, native: bool = False) -> None:
        self._rewriter = rewriter
        self._sealer = sealer
        self._native = native

    async def decide(
        self, body: RequestBody, kind: CallKind, caller: Caller, summarizer: Model | None = None
    ) -> VendorDecision:
        """Returns what to forward or to reply; raises ProtocolRefusal where the vendor would refuse the request."""
        read = _READERS[body.protocol.format]
        sent = dict(body.fields)
        try:
            asked = read(body, kind, self._sealer, caller.owner, native=self._native)
        except ProtocolRefusal:
            raise
        except Exception as problem:
            log.warning("the request is forwarded as it is: %s", type(problem).__name__, exc_info=True)
            body.restore(sent)
            return VendorDecision(RewriteDecision("failed"))
        if kind == "compact" and not asked.now:
            return VendorDecision(RewriteDecision("other"))
        decision = await self._rewriter.decide(body, kind, caller, asked, summarizer)
        compacted = decision.compacted
        if asked.now and compacted is None:
            compacted = await self._compact_list(body, asked)
        item = None if compacted is None else self._mint(compacted, asked, caller)
        if item is not None and (asked.now or asked.pause):
            decision.outcome = "failed" if decision.outcome == "failed" else "compacted"
            return VendorDecision(decision, _reply(body, kind, asked, item))
        applied = self._apply_edits(body, asked, decision)
        return VendorDecision(decision, editor=_editor(body, kind, asked, item, applied))

    async def _compact_list(self, body: RequestBody, asked: CompactionRequest) -> CompactedContext:
        """Compacts the list alone: the store cannot be used, or the client compacts a part of its conversation."""
        try:
            with anyio.fail_after(PREPARE_SECONDS):
                return await self._rewriter.compact_list(body, asked)
        except Exception as problem:
            log.warning("a compaction that a client asked for failed: %s", type(problem).__name__, exc_info=True)
            vendor = anthropic_compaction if body.protocol.format == "anthropic" else openai_compaction
            raise vendor.unavailable() from None

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
            return self._rewriter.apply_edits(body, asked.edits, decision)
        except Exception as problem:
            log.warning("the request is forwarded without its edits: %s", type(problem).__name__, exc_info=True)
            return []


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
        return HttpReply.json(openai_compaction.compacted_reply(asked, item))
    if body.protocol.format == "anthropic":
        whole, events = anthropic_compaction.compacted_reply(body, asked, item)
    else:
        whole, events = openai_compaction.triggered_reply(body, item)
    if body.value("stream") is not True:
        return HttpReply.json(whole)
    stream = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}
    return HttpReply(200, b"".join(map(encode_event, events)), stream)


def _editor(
    body: RequestBody, kind: CallKind, asked: CompactionRequest, item: CompactionItem | None, applied: list[Json]
) -> ReplyEditor | None:
    if body.protocol.format == "anthropic" and kind == "count":
        return anthropic_compaction.CountEditor(applied) if asked.reports_edits else None
    if body.protocol.format == "anthropic" and (item is not None or asked.reports_edits):
        return anthropic_compaction.MessageEditor(asked, item, applied)
    return None if item is None else openai_compaction.ResponseEditor(item)


def refused_reply(refusal: ProtocolRefusal) -> HttpReply:
    return HttpReply.json(refusal.body, status=refusal.status)


def upstream_headers(headers: Headers, *, edited: bool) -> dict[str, str | None]:
    """Returns the headers that differ in the upstream's request: no betas of ours, and a reply that can be edited."""
    changed: dict[str, str | None] = {}
    if betas := headers.get("anthropic-beta"):
        kept = [name for name in map(str.strip, betas.split(",")) if name not in anthropic_compaction.BETAS]
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
        data = b"\n".join(line[5:].strip() for line in block.split(b"\n") if line.startswith(b"data:"))
        try:
            event = msgspec.json.decode(data) if data else None
        except msgspec.DecodeError:
            return block
        if not isinstance(event, dict) or "type" not in event:
            return block
        edited = self._editor.edit_event(event)
        return block if len(edited) == 1 and edited[0] is event else b"".join(map(encode_event, edited))
