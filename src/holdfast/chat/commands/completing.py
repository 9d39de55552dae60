"""What a line that is being typed may become."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import HoldfastError
from .catalogue import COMMANDS

if TYPE_CHECKING:
    from ..chat import Chat


async def completions(chat: Chat, text: str) -> list[str]:
    """Whole lines that begin with this one, up to the end of the word that is being typed."""
    if not text.startswith("/") or text.startswith("//") or "\n" in text:
        return []
    name, blank, argument = text[1:].partition(" ")
    if not blank:
        return [f"/{command.name}" for command in COMMANDS if command.name.startswith(name.lower())]
    command = next((command for command in COMMANDS if command.name == name.lower()), None)
    if command is None or command.complete is None:
        return []
    words = [*argument.split(" ")]
    try:
        found = await command.complete(chat, [word for word in words[:-1] if word] + words[-1:])
    except (HoldfastError, OSError):
        return []
    typed = text[: len(text) - len(words[-1])]
    return [typed + word for word in found if word.startswith(words[-1])]
