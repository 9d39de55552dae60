"""A request as the server received it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tests.providers.reply import Say

_COUNTED = ("messages", "input", "contents", "system", "instructions", "systemInstruction", "tools")
_IGNORED = frozenset(
    "type role id call_id tool_call_id tool_use_id signature thoughtSignature encrypted_content status data".split()
)
"""Fields that do not count as tokens."""
_MEDIA = frozenset(("media_type", "mimeType", "mime_type"))
_IMAGE_CHARACTERS = 4_800
"""Characters that an image counts as."""


@dataclass
class Request:
    protocol: str
    """openai-chat, openai-responses, anthropic, gemini, or models for the list of models."""
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: dict[str, Any] = field(default_factory=dict)
    raw: bytes = b""
    prompt: str = ""
    """Text of the user messages."""
    system: str = ""
    sent: int = 0
    """Pieces that were sent."""
    disconnected: threading.Event = field(default_factory=threading.Event)
    """Set when the client disconnects before the end of the answer."""

    number: int = 0
    """Index of the request, for unique ids."""

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @cached_property
    def size(self) -> int:
        """Prompt tokens: a quarter of all characters in messages, system prompt and tools, plus one."""
        return sum(map(_characters, (self.body.get(field) for field in _COUNTED))) // 4 + 1

    def tokens(self, reply: Say) -> tuple[int, int]:
        """Returns input and output tokens, as given or estimated."""
        output_characters = (
            len(reply.text) + len(reply.thinking) + sum(len(call.name + reply.written(call)) for call in reply.called)
        )
        return (
            self.size if reply.input is None else reply.input,
            output_characters // 4 + 1 if reply.output is None else reply.output,
        )


def _characters(value: Any) -> int:
    if isinstance(value, str):
        return min(len(value), _IMAGE_CHARACTERS) if value.startswith("data:") else len(value)
    if isinstance(value, dict):
        if "data" in value and _MEDIA & value.keys():
            return _IMAGE_CHARACTERS
        return sum([_characters(item) for key, item in value.items() if key not in _IGNORED])
    return sum(map(_characters, value)) if isinstance(value, list) else 0


def texts_of(content: Any) -> str:
    """The text in a message's content, as a string or as a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part["text"]) for part in parts if isinstance(part, dict) and "text" in part)
