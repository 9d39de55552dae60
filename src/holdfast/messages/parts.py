"""The neutral message: a role and a tuple of parts, independent of the wire format.

Other packages work on these types only. A message also keeps its original payload, so that an unchanged
message is sent back exactly as it came, unknown fields included.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import msgspec

from .json_text import compact_json, from_json, to_json
from .patch import Edit, patch

Role = Literal["system", "user", "assistant", "tool"]
"""Role of a neutral message."""
Json = dict[str, Any]
"""A JSON object."""
JSON_SCALARS = frozenset((str, int, float, bool, type(None)))


class Text(msgspec.Struct, frozen=True, tag="text", gc=False):
    """Plain text."""

    text: str
    signature: str | None = None
    """Gemini signs text parts too."""


class Reasoning(msgspec.Struct, frozen=True, tag="reasoning", gc=False):
    """Reasoning of a model. Only the format it came from accepts it."""

    text: str = ""
    signature: str | None = None
    encrypted: str | None = None
    id: str | None = None
    origin: str | None = None


class Media(msgspec.Struct, frozen=True, tag="media", gc=False):
    """An image, audio, video or file: base64 data, a URL or a file id."""

    kind: Literal["image", "audio", "video", "file"]
    mime: str | None = None
    data: str | None = None
    url: str | None = None
    file_id: str | None = None
    name: str | None = None


class Opaque(msgspec.Struct, frozen=True, tag="opaque", gc=False):
    """A part that only one format has: kept, never interpreted."""

    kind: str
    data: Json
    origin: str


class ToolCall(msgspec.Struct, frozen=True, tag="tool_call", gc=False):
    """A tool call by the model."""

    id: str
    name: str
    arguments: Json | str
    """As in the wire format: an object, or the text that the model wrote."""
    kind: str = "function"
    signature: str | None = None

    @property
    def arguments_dict(self) -> Json:
        """The arguments as an object, for formats that accept nothing else."""
        if isinstance(self.arguments, dict):
            return self.arguments
        try:
            value = from_json(self.arguments or "{}")
        except ValueError:
            value = None
        return value if isinstance(value, dict) else {RAW_ARGUMENTS: self.arguments}

    @property
    def arguments_text(self) -> str:
        """The arguments as text: the model's own, or compact JSON."""
        if isinstance(self.arguments, str):
            return self.arguments
        if len(self.arguments) == 1 and isinstance(text := self.arguments.get(RAW_ARGUMENTS), str):
            return text
        return to_json(self.arguments)

    @property
    def arguments_json(self) -> str:
        """The arguments as compact JSON; text that is not JSON stays unchanged."""
        return self.arguments_text if isinstance(self.arguments, dict) else compact_json(self.arguments)


class ToolResult(msgspec.Struct, frozen=True, tag="tool_result", gc=False):
    """The result of a tool call."""

    call_id: str
    content: tuple[Text | Media | Opaque, ...]
    is_error: bool = False
    name: str | None = None
    kind: str = "function"

    @property
    def text(self) -> str:
        """The text of the result, joined by newlines."""
        if len(self.content) == 1 and isinstance(self.content[0], Text):
            return self.content[0].text
        return "\n".join(part.text for part in self.content if isinstance(part, Text))


Part = Text | Reasoning | Media | Opaque | ToolCall | ToolResult
"""A part of a neutral message."""
RAW_ARGUMENTS = "__arguments__"
"""Key for arguments that are not a JSON object, in formats that accept only objects."""


class Message(msgspec.Struct, frozen=True, gc=False):
    """One message. `raw` is the original payload in `format`; the parts are for reading.

    `raw` is None if the parts alone reproduce the payload: for plain text, and for messages that never had one. The
    latter keep `format`, so that a message that came by itself is sent by itself.
    """

    role: Role
    parts: tuple[Part, ...]
    format: str | None = None
    raw: Json | None = None
    edits: tuple[Edit, ...] = ()
    """What was changed since the message came, in the payload."""

    @property
    def payload(self) -> Json | None:
        """The payload with its edits."""
        return patch(self.raw, self.edits) if self.edits and self.raw is not None else self.raw

    @property
    def text(self) -> str:
        """The text parts, joined by newlines."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls in this message."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The tool results in this message."""
        return tuple(part for part in self.parts if isinstance(part, ToolResult))

    def with_parts(self, parts: tuple[Part, ...]) -> Message:
        """Returns a message with other parts and without a payload: a new one."""
        return Message(self.role, parts, self.format)


class End(NamedTuple):
    """One end of an edge between parts that belong together on the wire, as the provider names it.

    `opens` starts what other ends refer to by its key; `joins` refers to it, `closes` also finishes it. `leads`
    stands for something stored by the provider, with what directly follows it.
    """

    part: int
    """Index of the part in its message."""
    kind: str
    """Kind of what the edge opens: a call, a program, an approval request, …"""
    key: str
    role: Literal["opens", "joins", "closes", "leads"]
    name: str = ""
    """This end in the words of the provider, for reports."""

    @property
    def target(self) -> str:
        """What the edge refers to, for reports."""
        return f"{self.kind} {self.key!r}" if self.key else self.kind


FindCall = Callable[[str], ToolCall | None]
"""Finds the call that a result answers by its id."""


def user(text: str) -> Message:
    """Returns a user message with this text."""
    return Message("user", (Text(text),))


def assistant(text: str) -> Message:
    """Returns an assistant message with this text."""
    return Message("assistant", (Text(text),))
