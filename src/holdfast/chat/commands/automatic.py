"""/autocompact: whether a conversation is compacted by itself, and by which numbers (P2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...errors import HoldfastError, InvalidInput
from ...presets import SIZED
from ...settings import load_settings, save_setting
from . import windows
from .command import Command, Page, words_of
from .layout import table

if TYPE_CHECKING:
    from ..chat import Chat

ENABLED = "compaction.enabled"
_NUMBERS = ("reserve_tokens", "keep_recent_tokens")


async def _autocompact(chat: Chat, argument: str) -> Page:
    word = words_of(argument, 1, AUTOCOMPACT.usage)[0].lower()
    if word not in ("", "on", "off"):
        raise InvalidInput(f"Automatic compaction is on or off, not {word!r}: {AUTOCOMPACT.usage}.")
    wanted = word == "on" if word else not chat.auto
    chat.use(auto=wanted)
    text = f"Automatic compaction is {'on' if wanted else 'off'}. {_saved(chat, wanted)}"
    return Page("\n".join([text, "", *table(_figures(chat))]))


def _saved(chat: Chat, wanted: bool) -> str:
    """Keep it for later conversations, and say whether that worked."""
    try:
        file = save_setting(ENABLED, wanted)
        later = load_settings(chat.folder.root)
    except HoldfastError as problem:
        return f"It holds for this conversation alone: {problem}"
    if later.compaction.enabled is wanted:
        return f"It is saved in {file}."
    return f"It is saved in {file}, but {later.origins[ENABLED]} says otherwise and wins the next time."


def _figures(chat: Chat) -> list[Sequence[str]]:
    due = windows.threshold(chat)
    rows: list[Sequence[str]] = [
        ("preset", chat.preset.name, f"compacts {chat.preset.figures['compacts']}"),
        ("window", f"{windows.size(chat):,}", windows.said_by(chat)),
        ("threshold", "–" if due is None else f"{due:,}", "where it compacts, by this preset and window"),
    ]
    if chat.preset.name not in SIZED:
        return [*rows, ("keeps", "–", chat.preset.figures["keeps"])]
    settings = windows.settings_of(chat)
    for name in _NUMBERS:
        key = f"compaction.{name}"
        rows.append((name, f"{settings.value(key):,}", settings.origins.get(key, "default")))
    return rows


async def _on_off(chat: Chat, words: Sequence[str]) -> Iterable[str]:
    return ("on", "off") if len(words) == 1 else ()


AUTOCOMPACT = Command(
    "autocompact",
    "/autocompact [on|off]",
    "compact by itself or not; shows the numbers",
    _autocompact,
    _on_off,
)
