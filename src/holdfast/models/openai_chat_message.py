"""A Chat Completions message, put together from the pieces of a stream."""

from __future__ import annotations

from collections.abc import Iterator
from secrets import token_hex
from typing import Any

from ..calls import Delta
from ..messages import Json, copy_json

_THOUGHTS = ("reasoning_content", "reasoning")
"""Where servers other than OpenAI's write what a model thinks; each takes it back under its own name alone."""


class ChatMessage:
    def __init__(self) -> None:
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._thoughts: dict[str, list[str]] = {}
        self._calls: list[Json] = []
        self._written: list[list[str]] = []
        """The arguments of each call, in pieces."""
        self._at: dict[int, int] = {}
        """Which call the server's index means now."""

    @property
    def is_refusal(self) -> bool:
        return bool(self._refusal)

    def take(self, delta: Any) -> Iterator[Delta]:
        """Add the next piece, and say what is new in it."""
        if delta is None:
            return
        for field in [field for field in _THOUGHTS if getattr(delta, field, None)][:1]:
            thought = str(getattr(delta, field))
            self._thoughts.setdefault(field, []).append(thought)
            yield Delta("reasoning", thought)
        if delta.content:
            self._text.append(delta.content)
            yield Delta("text", delta.content)
        if refusal := getattr(delta, "refusal", None):
            self._refusal.append(refusal)
            yield Delta("text", refusal)
        for call in delta.tool_calls or ():
            yield Delta("call", self._take_call(call))

    def _take_call(self, piece: Any) -> str:
        """The name of a call that begins; nothing where one goes on."""
        at = self._place(piece)
        call, body = self._calls[at]["function"], piece.function
        begins = not call["name"] and body is not None and bool(body.name)
        if begins:
            call["name"] = body.name
        self._written[at].append((body and body.arguments) or "")
        self._calls[at] |= copy_json(piece.model_extra or {})  # Google's server signs its calls here
        return str(call["name"]) if begins else ""

    def _place(self, piece: Any) -> int:
        """A piece with another id is another call, whatever its index: some servers count every call as the first."""
        at = self._at.get(piece.index or 0)
        if at is None or (piece.id and piece.id != self._calls[at]["id"]):
            at = self._at[piece.index or 0] = len(self._calls)
            own = {"name": "", "arguments": ""}
            self._calls.append({"id": piece.id or f"call_{token_hex(8)}", "type": "function", "function": own})
            self._written.append([])
        return at

    def whole(self) -> list[Json]:
        """The message to send back; none where nothing was said, since a thought alone is not taken."""
        for call, written in zip(self._calls, self._written, strict=True):
            call["function"]["arguments"] = "".join(written)
        text, refusal = "".join(self._text), "".join(self._refusal)
        if not (text or refusal or self._calls):
            return []
        more = {"refusal": refusal} if refusal else {}
        more |= {field: "".join(pieces) for field, pieces in self._thoughts.items()}
        calls = {"tool_calls": self._calls} if self._calls else {}
        return [{"role": "assistant", "content": text or None} | more | calls]
