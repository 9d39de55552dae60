"""A reply as a server gives it: thoughts, text and calls, each in pieces."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

Finish = Literal["stop", "length", "tool_call", "refused"]


@dataclass(frozen=True)
class Call:
    """A call of a tool. Without an id, the server makes one up."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    id: str | None = None


@dataclass(frozen=True)
class Piece:
    """What goes out at a time: a bit of a thought, of the text, or of a call's arguments."""

    kind: Literal["thinking", "text", "call"]
    text: str
    block: int
    """Which thought, text or call of the reply it belongs to, counted from 0."""
    first: bool
    last: bool
    call: Call | None = None
    number: int = 0
    """Which call it is, among the calls."""


@dataclass(frozen=True)
class Say:
    """A reply, streamed in pieces. Token counts are guessed from the texts where none are given."""

    text: str = ""
    pieces: int = 4
    delay: float = 0.0
    """Seconds before each piece."""
    finish: Finish = "stop"
    """With calls, it ends in them unless this says otherwise."""
    input: int | None = None
    """All of the prompt, what is cached included."""
    output: int | None = None
    cached: int = 0
    calls: tuple[Call, ...] = ()
    thinking: str = ""
    """What it thinks aloud, signed where the provider signs thoughts."""
    redacted: bool = False
    """A thought that nobody may read comes first, where the provider has such."""
    cut: bool = False
    """The last call breaks off in the middle of its JSON. Gemini never shows such a call at all."""

    @property
    def ending(self) -> Finish:
        return "tool_call" if self.called and self.finish == "stop" else self.finish

    @property
    def called(self) -> tuple[Call, ...]:
        return self.calls or ((Call("look"),) if self.finish == "tool_call" else ())

    def written(self, call: Call) -> str:
        """A call's arguments as the model wrote them."""
        whole = json.dumps(call.arguments)
        return whole[: len(whole) // 2] if self.cut and call is self.called[-1] else whole

    def parts(self) -> list[Piece]:
        return list(self._parts())

    def _parts(self) -> Iterator[Piece]:
        block = 0
        for kind, text in (("thinking", self.thinking), ("text", self.text)):
            if text:
                yield from self._cut_up(kind, text, block)
                block += 1
        for number, call in enumerate(self.called):
            yield from self._cut_up("call", self.written(call), block, call, number)
            block += 1

    def _cut_up(self, kind: Any, text: str, block: int, call: Call | None = None, number: int = 0) -> Iterator[Piece]:
        step = max(-(-len(text) // max(self.pieces, 1)), 1)
        starts = range(0, max(len(text), 1), step)
        for start in starts:
            first, last = start == 0, start == starts[-1]
            yield Piece(kind, text[start : start + step], block, first, last, call, number)


def signature(thought: str) -> str:
    """What a provider signs a thought with, so that it can tell whether it was changed."""
    return base64.b64encode(hashlib.sha256(thought.encode()).digest()).decode()
