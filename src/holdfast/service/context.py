"""What a session sends to its model next."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, overload

from ..compaction import numbers_in, read_back
from ..messages import COMMON, Json
from ..view import View


class Context(Sequence[Json]):
    """The messages of a session, ready to send, with what stands beside them."""

    def __init__(
        self,
        messages: list[Json],
        *,
        format: str | None,
        tokens: int,
        version: int,
        system: Any = None,
        tools: Any = None,
        known: bool = False,
        view: View,
    ) -> None:
        self.messages = messages
        self.format = format
        """The wire format; None while plain text fits several."""
        self.tokens = tokens
        self.version = version
        self.system = system
        self.tools = tools
        self.known = known
        """Do the tokens rest on what the provider reported, or on an estimate alone?"""
        self._view, self._live = view, len(view.messages)

    @cached_property
    def numbers(self) -> list[int]:
        """The number of the event behind each message, as references have it; of a note, that of its compaction."""
        view, live = self._view, self._live
        given = [*(shown.message for shown in view.head), *view.messages[:live]]
        sources = [view.events.get(shown.source or "") for shown in view.head]
        first = [view.checkpoint_seq if source is None else source.seq for source in sources]
        return numbers_in(read_back(self.messages, self.format or COMMON), given, [*first, *view.numbers[:live]])

    def __len__(self) -> int:
        return len(self.messages)

    @overload
    def __getitem__(self, place: int) -> Json: ...
    @overload
    def __getitem__(self, place: slice) -> list[Json]: ...
    def __getitem__(self, place: int | slice) -> Json | list[Json]:
        return self.messages[place]

    def __eq__(self, other: object) -> bool:
        return self.messages == (other.messages if isinstance(other, Context) else other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Context({len(self.messages)} messages, {self.tokens} tokens, version {self.version})"
