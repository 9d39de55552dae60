"""How one request is answered: by the gateway alone, or by the upstream."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

from ..io.http_messages import Headers, Pieces
from ..io.http_server import HttpReply
from .protocols import RequestBody
from .rewriting import RewriteDecision


class ReplyEdit(Protocol):
    """Changes the bytes of a reply as they pass."""

    def feed(self, chunk: bytes) -> bytes: ...
    def finish(self) -> bytes: ...


class Answer(msgspec.Struct):
    """What to forward for one request, and what to do with the reply; or the gateway's own reply."""

    decision: RewriteDecision
    reply: HttpReply | None = None
    edit: Callable[[str, str], ReplyEdit] | None = None
    """Edits the upstream's reply, by its content type and encoding."""
    headers: Callable[[Headers], Mapping[str, str | None]] | None = None
    """Returns the headers of the upstream's request that differ from the client's."""
    body: RequestBody | None = None
    """The request as it was decided about; None if it could not be read, or was decided about in another process."""
    number: int = 0
    """By which another process knows the decision."""
    pieces: Pieces | None = None
    """The request to forward, if that process has changed it."""
    instead: bytes | None = None
    """The whole conversation, if the request names the reply before it, for an upstream that does not have that."""
