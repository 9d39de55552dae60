"""/branch and /edit: go back to something that was said, in a new session (P10, P23)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...errors import InvalidInput
from ...events import Event
from ...messages import Media
from ...references import reference
from ...stores import Slice
from .command import Command, Page, first_word, words_of
from .layout import clipped, table
from .user_messages import UserMessage, user_message, user_messages

if TYPE_CHECKING:
    from ..chat import Chat

_QUOTED = 50


async def _branch(chat: Chat, argument: str) -> Page:
    written = words_of(argument, 1, BRANCH.usage)[0]
    if not written:
        return Page(_listed(await user_messages(chat)))
    chat.must_be_idle()
    chosen, left = await user_message(chat, written), chat.record.id
    record = await chat.fork(chosen.event.id)
    return Page(
        f"Now in session {record.id}, a branch of {left} up to message {chosen.number}, {_quoted(chosen)}. Press "
        "Enter to have it answered, or say something else."
    )


async def _edit(chat: Chat, argument: str) -> Page:
    written, text = first_word(argument)
    if not written:
        raise InvalidInput(f"Say which message: {EDIT.usage}, and /branch lists them.")
    chat.must_be_idle()
    chosen, left = await user_message(chat, written), chat.record.id
    await _go_before(chat, chosen)
    where = f"Now in session {chat.record.id}, with all of {left} before message {chosen.number}."
    if text:
        chat.say(text)
        return Page(where)
    media = any(isinstance(part, Media) for part in chosen.message.parts)
    lost = " Its image or file does not come along: attach it again." if media else ""
    return Page(f"{where} Change what you said, and send it.{lost}", draft=chosen.message.text)


async def _go_before(chat: Chat, chosen: UserMessage) -> None:
    """Where nothing was said before it, there is nothing to fork: a new session that is told the same beside it."""
    sessions, old = chat.sessions, chat.record
    if (before := await _event_before(chat, chosen.event)) is None:
        beside = {name: getattr(old, name) for name in ("system", "tools", "format", "model", "owner", "metadata")}
        fresh = await sessions.create(**beside)
    else:
        fresh = await sessions.fork(old.id, before.id)
        if fresh.lanes[""].epoch != chosen.event.epoch:  # a compaction was undone right before the message
            await sessions.undo(fresh.id, to=chosen.event.epoch)
    await chat.switch(fresh.id, how="forked")


async def _event_before(chat: Chat, event: Event) -> Event | None:
    which = Slice(until=event.seq - 1, limit=1, newest=True)
    found = await chat.sessions.store.read(chat.record.id, which) if event.seq > 1 else []
    return found[0] if found else None


def _listed(messages: Sequence[UserMessage]) -> str:
    if not messages:
        return "Nothing was said in this session yet."
    rows = [(str(one.number), reference(one.event), "archived" if one.archived else "", one.line) for one in messages]
    return "\n".join(
        [*table(rows, right=(0,)), "", "Go back to one in a new session: /branch N, or /edit N before it."]
    )


def _quoted(message: UserMessage) -> str:
    return f"“{clipped(message.line, _QUOTED)}”"


async def _numbers(chat: Chat, words: Sequence[str]) -> Iterable[str]:
    return [str(one.number) for one in await user_messages(chat)] if len(words) == 1 else ()


BRANCH = Command("branch", "/branch [N]", "list what you said; go back to N in a new session", _branch, _numbers)
EDIT = Command("edit", "/edit N [NEW TEXT]", "say message N differently, in a new session", _edit, _numbers)
