"""The neutral message: a role and a tuple of parts, whatever wire format it came from.

Everything above this package reasons about these types alone. The payload as it came in stays beside
them, so that an untouched message goes back out exactly as it arrived, unknown fields included.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from .jsontext import compacted, from_json, to_json

Role = Literal["system", "user", "assistant", "tool"]
Json = dict[str, Any]


class Text(msgspec.Struct, frozen=True, tag="text", gc=False):
    text: str
    signature: str | None = None
    """Gemini signs text parts too."""


class Reasoning(msgspec.Struct, frozen=True, tag="reasoning", gc=False):
    """What a model thought. Only the format it came from can take it back."""

    text: str = ""
    signature: str | None = None
    encrypted: str | None = None
    id: str | None = None
    origin: str | None = None


class Media(msgspec.Struct, frozen=True, tag="media", gc=False):
    """An image, sound, film or file: its bytes in base64, or where they are."""

    kind: Literal["image", "audio", "video", "file"]
    mime: str | None = None
    data: str | None = None
    url: str | None = None
    file_id: str | None = None
    name: str | None = None


class Opaque(msgspec.Struct, frozen=True, tag="opaque", gc=False):
    """A part that one format has and the others do not: kept, never interpreted."""

    kind: str
    data: Json
    origin: str


class ToolCall(msgspec.Struct, frozen=True, tag="tool_call", gc=False):
    id: str
    name: str
    arguments: Json | str
    """As the format has them: an object, or the text a model wrote."""
    kind: str = "function"
    signature: str | None = None

    @property
    def object(self) -> Json:
        """The arguments as an object, for formats that take nothing else."""
        if isinstance(self.arguments, dict):
            return self.arguments
        try:
            value = from_json(self.arguments or "{}")
        except ValueError:
            value = None
        return value if isinstance(value, dict) else {RAW_ARGUMENTS: self.arguments}

    @property
    def written(self) -> str:
        """The arguments as a model wrote them: its own text, or compact JSON."""
        if isinstance(self.arguments, str):
            return self.arguments
        if len(self.arguments) == 1 and isinstance(text := self.arguments.get(RAW_ARGUMENTS), str):
            return text
        return to_json(self.arguments)

    @property
    def json(self) -> str:
        """The arguments as compact JSON; text that is not JSON stays as it is."""
        return self.written if isinstance(self.arguments, dict) else compacted(self.arguments)


class ToolResult(msgspec.Struct, frozen=True, tag="tool_result", gc=False):
    call_id: str
    content: tuple[Text | Media | Opaque, ...]
    is_error: bool = False
    name: str | None = None
    kind: str = "function"

    @property
    def text(self) -> str:
        if len(self.content) == 1 and isinstance(self.content[0], Text):
            return self.content[0].text
        return "\n".join(part.text for part in self.content if isinstance(part, Text))


Part = Text | Reasoning | Media | Opaque | ToolCall | ToolResult

RAW_ARGUMENTS = "__arguments__"
"""Where arguments that are not a JSON object stand in formats that take only objects."""


class Message(msgspec.Struct, frozen=True, gc=False):
    """One message. `raw` is the payload as it came, in `format`.

    It is None where the parts alone give the payload back: plain text, and whatever was changed. The
    format stays: a message that came by itself goes out by itself.
    """

    role: Role
    parts: tuple[Part, ...]
    format: str | None = None
    raw: Json | None = None

    @property
    def text(self) -> str:
        """What a person would read: the text parts alone."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def results(self) -> tuple[ToolResult, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolResult))

    def with_parts(self, parts: tuple[Part, ...]) -> Message:
        """A changed message: it is rendered anew, since its payload no longer says what it holds."""
        return Message(self.role, parts, self.format)


CallOf = Callable[[str], ToolCall | None]
"""The call that a result answers, by its id, where a format wants to know more of it than the id."""


def user(text: str) -> Message:
    return Message("user", (Text(text),))


def assistant(text: str) -> Message:
    return Message("assistant", (Text(text),))
