"""What a request asks of its vendor's compaction protocol, and the items of earlier compactions in its messages."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ...io.http_server import HttpReply
from ...messages import Json
from ...tokens import Usage
from ..client_sessions import SessionPlace
from .context_editing import ContextEdits
from .sealed_items import DamagedItem, ItemSealer, SealedItem

Measure = Callable[[Json], int]


class ProtocolRefusal(Exception):
    """A request that the vendor would refuse, with the vendor's reply."""

    def __init__(self, status: int, body: Json) -> None:
        super().__init__(status)
        self.reply = HttpReply.json(body, status=status)


class ReturnedItem(msgspec.Struct):
    """The newest item of the gateway in a request, and the messages that follow its content."""

    item: SealedItem
    leading: list[Json]
    """System messages that the list begins with."""
    after: list[Json]
    mark: Any = None
    """The client's mark for the prompt cache on the item."""

    @property
    def messages(self) -> list[Json]:
        """The compacted messages."""
        decoded: list[Json] = msgspec.json.decode(self.item.messages)
        return decoded

    @property
    def place(self) -> SessionPlace:
        """Where the list continues a session."""
        item = self.item
        return SessionPlace(item.session, item.last, self.after, self.leading, item.checkpoint)


class CompactionRequest(msgspec.Struct):
    """What one request asks for; by default nothing."""

    now: bool = False
    """Compact, and reply with the item alone."""
    threshold: int | None = None
    """Compact if the input has more tokens."""
    pause: bool = False
    """Reply with the item alone if the threshold was exceeded."""
    instructions: str | None = None
    edits: ContextEdits = ContextEdits()
    reports_edits: bool = False
    """Whether the reply lists the applied edits."""
    returned: ReturnedItem | None = None
    user_messages: list[Json] = []
    """The client's own messages, which some vendors return with the item."""
    replaced: tuple[bytes, ...] = ()
    """Digests of the messages that an item will replace and that clients may send again."""

    @property
    def is_any(self) -> bool:
        """Whether a compaction is asked for, now or over a threshold."""
        return self.now or self.threshold is not None

    def is_due(self, tokens: int, messages: Callable[[], list[Json]], measure: Measure) -> bool:
        """Whether to compact a context of so many tokens; what the edits clear does not count."""
        if self.now or self.threshold is None or tokens <= self.threshold:
            return self.now
        if not self.edits:
            return True
        _, applied = self.edits.apply(messages(), tokens, measure)
        cleared: int = sum(edit["cleared_input_tokens"] for edit in applied)
        return tokens - cleared > self.threshold


class CompactedContext(msgspec.Struct):
    """A context that was compacted because a client asked for it."""

    messages: list[Json]
    tokens: int
    usage: Usage = Usage()
    """Tokens of the summarizer; none without a model."""
    session: str = ""
    last: str = ""
    checkpoint: str = ""


class CompactionItem(msgspec.Struct, frozen=True):
    """A minted item, with what a reply reports about it."""

    sealed: str
    summary: str
    """Readable text of the notes."""
    tokens: int
    usage: Usage

    @property
    def id(self) -> str:
        return f"cmp_{hashlib.blake2b(self.sealed.encode(), digest_size=12).hexdigest()}"


def open_last(
    texts: Sequence[str], sealer: ItemSealer, owner: str, refuse: Callable[[str], ProtocolRefusal]
) -> SealedItem:
    """Opens the newest of some items; each of them must be genuine."""
    opened = []
    for text in texts:
        try:
            opened.append(sealer.open(text, owner))
        except DamagedItem:
            raise refuse(text) from None
    return opened[-1]
