"""A reply of the server: reasoning, text and calls, each streamed in pieces."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

Finish = Literal["stop", "length", "tool_call", "refused"]


@dataclass(frozen=True)
class Call:
    """A tool call. Without an id, the server generates one."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    id: str | None = None


@dataclass(frozen=True)
class Piece:
    """A streamed piece of reasoning, text or call arguments."""

    kind: Literal["thinking", "text", "call"]
    text: str
    block: int
    """Index of its block in the reply."""
    first: bool
    last: bool
    call: Call | None = None
    number: int = 0
    """Index among the calls."""


@dataclass(frozen=True)
class Say:
    """A reply, streamed in pieces. Token counts are estimated from the texts unless given."""

    text: str = ""
    pieces: int = 4
    delay: float = 0.0
    """Seconds between two pieces."""
    held: threading.Event | None = None
    """If given, the last piece is sent once this is set."""
    finish: Finish = "stop"
    """With calls, `stop` becomes `tool_call`."""
    input: int | None = None
    """Prompt tokens, cached ones included."""
    output: int | None = None
    cached: int = 0
    calls: tuple[Call, ...] = ()
    thinking: str = ""
    """Reasoning, signed if the provider signs it."""
    redacted: bool = False
    """Begins with redacted reasoning, if the provider has it."""
    cut: bool = False
    """The last call is cut off in its JSON. Gemini omits such a call."""

    @property
    def ending(self) -> Finish:
        return "tool_call" if self.called and self.finish == "stop" else self.finish

    @property
    def called(self) -> tuple[Call, ...]:
        return self.calls or ((Call("look"),) if self.finish == "tool_call" else ())

    def written(self, call: Call) -> str:
        """Returns the JSON of a call's arguments, cut off if `cut`."""
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


def signature(reasoning: str) -> str:
    """Returns the signature of reasoning, by which the server detects changes."""
    return base64.b64encode(hashlib.sha256(reasoning.encode()).digest()).decode()
