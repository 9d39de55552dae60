"""One request as a server got it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from .say import Say

_READ = ("messages", "input", "contents", "system", "instructions", "systemInstruction", "tools")
_APART = frozenset(
    "type role id call_id tool_call_id tool_use_id signature thoughtSignature encrypted_content status data".split()
)
"""What nobody reads."""
_MEDIA = frozenset(("media_type", "mimeType", "mime_type"))
_PICTURE = 4_800
"""A picture costs what so many characters do."""


@dataclass
class Request:
    protocol: str
    """openai-chat, openai-responses, anthropic, gemini, or models for the list of models."""
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: dict[str, Any] = field(default_factory=dict)
    prompt: str = ""
    """The text of what the user said."""
    system: str = ""
    sent: int = 0
    """Pieces that went out."""
    disconnected: threading.Event = field(default_factory=threading.Event)
    """The client hung up before it had the whole answer."""

    number: int = 0
    """Which request of the server's it is, so that ids are never given twice."""

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def size(self) -> int:
        """Tokens of the prompt: a quarter of all the characters in messages, system prompt and tools, and one more."""
        return sum(map(_characters, (self.body.get(field) for field in _READ))) // 4 + 1

    def tokens(self, said: Say) -> tuple[int, int]:
        """Input and output, as given or guessed."""
        spoken = len(said.text) + len(said.thinking) + sum(len(call.name + said.written(call)) for call in said.called)
        return (
            self.size if said.input is None else said.input,
            spoken // 4 + 1 if said.output is None else said.output,
        )


def _characters(value: Any) -> int:
    if isinstance(value, str):
        return min(len(value), _PICTURE) if value.startswith("data:") else len(value)
    if isinstance(value, dict) and "data" in value and _MEDIA & value.keys():
        return _PICTURE
    if isinstance(value, dict):
        return sum(_characters(item) for key, item in value.items() if key not in _APART)
    return sum(map(_characters, value)) if isinstance(value, list) else 0


def texts_of(content: Any) -> str:
    """The text in a message's content, as a string or as a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part["text"]) for part in parts if isinstance(part, dict) and "text" in part)
