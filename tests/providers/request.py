"""One request as a server got it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from .faults import Say


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

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    def tokens(self, said: Say) -> tuple[int, int]:
        """Input and output, as given or guessed."""
        read = (len(self.prompt) + len(self.system)) // 4 + 1 if said.input is None else said.input
        return read, len(said.text) // 4 + 1 if said.output is None else said.output


def texts_of(content: Any) -> str:
    """The text in a message's content, as a string or as a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part["text"]) for part in parts if isinstance(part, dict) and "text" in part)
