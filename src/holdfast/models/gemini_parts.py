"""The parts of a Gemini content, put together from the chunks of a stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..calls import Delta
from ..messages import Json, copy_json

_STANDARD = str.maketrans("-_", "+/")
_SIGNATURE = "thoughtSignature"


class Parts:
    def __init__(self) -> None:
        self._parts: list[Json] = []
        self._texts: list[list[str]] = []
        """The text of each part, in pieces."""

    @property
    def has_call(self) -> bool:
        return any("functionCall" in part for part in self._parts)

    def take(self, given: Any) -> Iterator[Delta]:
        """Add the next piece, and say what is new in it. A signature belongs to its own part, and is never merged."""
        part: Json = copy_json(given)
        if _SIGNATURE in part:
            part[_SIGNATURE] = part[_SIGNATURE].translate(_STANDARD)  # the SDK writes the URL's alphabet
        if part.keys() == {_SIGNATURE}:
            part["text"] = ""  # a signature that stands alone needs something to stand in
        text = part.get("text")
        if text is not None and self._continues(part):
            self._texts[-1].append(text)
        elif text or part.keys() - {"text", "thought"}:
            self._parts.append(part)
            self._texts.append([text] if text is not None else [])
        if text:
            yield Delta("reasoning" if part.get("thought") else "text", text)
        if "functionCall" in part:
            yield Delta("call", part["functionCall"].get("name", ""))

    def _continues(self, part: Json) -> bool:
        before = self._parts[-1] if self._parts else {}
        return "text" in before and before | {"text": ""} == part | {"text": ""}

    def whole(self) -> list[Json]:
        """The content to send back; none where nothing was said."""
        joined = zip(self._parts, self._texts, strict=True)
        parts = [part | {"text": "".join(text)} if "text" in part else part for part, text in joined]
        spoken = [part for part in parts if part.get("text") or part.keys() - {"text", _SIGNATURE}]
        return [{"role": "model", "parts": parts}] if any(not part.get("thought") for part in spoken) else []
