"""/compact and /undo: make room by hand, and take it back (P1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .command import Command, Page, words_of

if TYPE_CHECKING:
    from ..chat import Chat
    from ..compacted import Compacted


async def _compact(chat: Chat, argument: str) -> Page:
    return Page(told(await chat.compact(argument or None)))


def told(done: Compacted) -> str:
    """What came of a compaction, in words."""
    if done.tokens_after == done.tokens_before and not done.archived:
        words = f"Nothing was changed: {done.why or done.outcome.replace('_', ' ')}."
    else:
        words = (
            f"Compacted: {done.tokens_before:,} → {done.tokens_after:,} tokens. {done.archived:,} "
            f"message{'s were' if done.archived != 1 else ' was'} archived, {done.kept:,} kept as they are; /undo "
            "takes it back, and /search finds what went."
        )
        words += f" It is still too large: {done.why}." if done.why else ""
        words += f" No model wrote a summary: the {done.fallback} stands in for it." if done.fallback else ""
    return words + (" The work that was interrupted goes on." if done.continued else "")


async def _undo(chat: Chat, argument: str) -> Page:
    words_of(argument, 0, UNDO.usage)
    before = (await chat.sessions.context(chat.record.id)).tokens
    await chat.undo()
    after = (await chat.sessions.context(chat.record.id)).tokens
    return Page(
        f"The last compaction is undone: {before:,} → {after:,} tokens. Nothing is compacted by itself until you "
        "have said something."
    )


COMPACT = Command("compact", "/compact [INSTRUCTIONS]", "replace what is older by a summary, as instructed", _compact)
UNDO = Command("undo", "/undo", "step back over the last compaction", _undo)
