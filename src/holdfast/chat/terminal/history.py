"""The conversation before this start of the program: its messages as entries, one line each until unfolded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from rich.text import Text
from textual.strip import Strip

from ...agent.mentions import ATTACHMENT_HEADING
from ...context import Checkpoint
from ...context.events import Event, EventKind, try_message_in
from ...hooks.events import CompactionCompleted
from ...io.text import sanitize, sanitize_input, sanitize_line
from ...messages import Message, ToolCall, ToolResult, is_foreign_summary, is_framed, strip_frame
from ...sessions.history import user_message_in
from ..chat import SHELL_HEADING
from .drawing import (
    MIN_WIDTH,
    indent_lines,
    truncate_text,
    with_marker,
    wrap_plain,
)
from .entries import CompactionEntry, NoteEntry, TerminalEntry
from .markdown import render_markdown
from .reply_entries import ReplyEntry
from .theme import DIM, PLAIN, ChatTheme

if TYPE_CHECKING:
    from ..chat import Chat

_HISTORY_CHARS, _HISTORY_LINE = 600, 60
"""Characters read for the one line of a message; a text longer than the second can be unfolded."""
_UNFOLDED_CHARS = 40_000
"""Shown of an unfolded message."""


class HistoryEntry(TerminalEntry):
    """A message from before this start of the program: one line with its number; unfolded, all of it."""

    tight = True

    def __init__(self, role: str, text: str, number: int = 0, result: str = "", origin: str = "") -> None:
        super().__init__()
        self._role, self._text, self._result = role, text.strip(), result.strip()
        self._line = sanitize_line(_plain_text(text) if role == "assistant" else text[:_HISTORY_CHARS])
        self.number = number
        self._label = f"  #{number}" if number else ""
        self._label += f"  {origin}" if origin else ""
        self.foldable = bool(self._result) or "\n" in self._text or len(self._text) > _HISTORY_LINE
        self.prompt_text = text if role == "user" else None

    @property
    def source(self) -> str | None:
        return None if self._role == "tool" else sanitize_input(self._text)

    def draw(self, width: int, theme: ChatTheme) -> list[Strip]:
        symbols = theme.symbols
        symbol = {"user": symbols.prompt, "tool": symbols.dot}.get(self._role, " ")
        if not self.folded:
            body = indent_lines(self._body(width - 4), "  ")
            return [*with_marker(f"{symbol} ", DIM, wrap_plain(f"{self._role}{self._label}", width - 2, DIM)), *body]
        line = Text(self._line, PLAIN if self._role == "user" else DIM)
        room = width - 2 - len(self._label)
        if line.cell_len > room:
            line.truncate(max(room - len(symbols.ellipsis), 0))
            line.append(symbols.ellipsis, DIM)
        line.append(self._label, DIM)
        return with_marker(f"{symbol} ", DIM, [truncate_text(line, width - 2, symbols.ellipsis)])

    def _body(self, width: int) -> list[Strip]:
        if self._role == "assistant":
            return render_markdown(self._text, max(width, MIN_WIDTH))
        text = "\n".join(filter(None, (self._text, self._result)))
        return wrap_plain(sanitize(text[:_UNFOLDED_CHARS]), width, PLAIN)


def _plain_text(text: str) -> str:
    """Returns the beginning of a reply without the marks of Markdown."""
    return "\n".join(strip.text for strip in render_markdown(text[:_HISTORY_CHARS], _HISTORY_CHARS))


class SummaryEntry(TerminalEntry):
    """The summary that replaces compacted messages; folded."""

    tight = True
    foldable = True

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = sanitize(text).strip()

    def draw(self, width: int, theme: ChatTheme) -> list[Strip]:
        symbols = theme.symbols
        count = self._text.count("\n") + 1
        symbol = symbols.folded if self.folded else symbols.unfolded
        head = f"{symbol} summary of earlier messages, {count} line{'s' * (count != 1)}"
        drawn = wrap_plain(head, width, DIM)
        return (
            drawn
            if self.folded
            else drawn + indent_lines(wrap_plain(self._text, width - 4, DIM), f"  {symbols.gutter} ", DIM)
        )


class EarlierEntry(TerminalEntry):
    """Stands for the events before it, which are shown once it is scrolled into view."""

    def __init__(self, before: int) -> None:
        super().__init__()
        self.before = before

    def draw(self, width: int, theme: ChatTheme) -> list[Strip]:
        count = self.before - 1
        return wrap_plain(f"{count:,} earlier event{'s' * (count != 1)}: PageUp shows more", width, DIM)


_PAGE_EVENTS = 1_000
"""Events shown at a time of what was said before."""
_RESULTS_WITHIN = 50
"""Events after a page that are searched for the results of its last calls."""


async def load_history(chat: Chat, before: int | None = None) -> tuple[list[TerminalEntry], list[str], int]:
    """Returns a page of the conversation as entries, archived messages included, the user's prompts, and its end.

    The newest page, or the one before event number `before`; its end is the number of its newest event.
    """
    read = partial(chat.sessions.events, chat.record.id, lane="")
    events = await read(last=_PAGE_EVENTS, before=before)
    later = [] if before is None else await read(before=before + _RESULTS_WITHIN, last=_RESULTS_WITHIN)
    entries: list[TerminalEntry] = []
    if len(events) == _PAGE_EVENTS and events[0].seq > 1:
        entries.append(EarlierEntry(events[0].seq))
    entries += entries_of(events, later)
    typed = [message.text for event in events if (message := user_message_in(event)) is not None]
    prompts = [text for text in typed if not text.startswith((ATTACHMENT_HEADING, SHELL_HEADING))]
    if before is None:
        entries = _with_last_reply(entries, [found for event in events if (found := try_message_in(event)) is not None])
    return entries, prompts, events[-1].seq if events else 0


def entries_of(events: Sequence[Event], later: Sequence[Event] = (), origin: str = "") -> list[TerminalEntry]:
    """Returns events as entries, with the results that they or later ones have; `origin` says where they come from."""
    results = {result.call_id: result for event in (*events, *later) for result in _results_in(event)}
    entries: list[TerminalEntry] = []
    for event in events:
        if event.kind == EventKind.COMPACTION:
            entries.append(_compaction_entry(event))
        elif event.kind == EventKind.UNDO:
            entries.append(NoteEntry("The compaction was undone."))
        elif (message := try_message_in(event)) is not None:
            entries += _message_entries(message, event.seq, results, origin)
    return entries


def _results_in(event: Event) -> Sequence[ToolResult]:
    return message.results if (message := try_message_in(event)) is not None else ()


def _compaction_entry(event: Event) -> CompactionEntry:
    """Returns a stored compaction, also one that another tool made before the session was imported."""
    done = msgspec.convert(event.body, Checkpoint)
    notes = (item.message for item in done.head if item.kind == "note" and item.message is not None)
    summary = done.summary or "\n\n".join(strip_frame(note) if is_framed(note) else note.text for note in notes)
    completed = CompactionCompleted(
        "",
        "manual",
        tokens_before=done.tokens_before,
        tokens_after=done.tokens_after,
        archived=sum(run.count for run in done.archived),
        kept=0,
        round=done.carry.round,
        fallback=done.fallback or "",
        summary=summary,
        remarks=done.remarks,
    )
    return CompactionEntry(completed)


def _message_entries(
    message: Message, number: int, results: dict[str, ToolResult], origin: str = ""
) -> Iterator[TerminalEntry]:
    if is_foreign_summary(message):
        yield SummaryEntry(message.text)
        return
    if is_framed(message):
        yield HistoryEntry("note", strip_frame(message), number)
        return
    if message.text.strip():
        yield HistoryEntry(message.role, message.text, number, origin=origin)
    for part in message.parts:
        if isinstance(part, ToolCall):
            result = results.get(part.id)
            failed = "failed: " if result is not None and result.is_error else ""
            line = f"{failed}{part.name} {' '.join(map(str, part.arguments_dict.values()))}"
            yield HistoryEntry("tool", line, number, "" if result is None else result.text, origin)


def _with_last_reply(entries: list[TerminalEntry], messages: Sequence[Message]) -> list[TerminalEntry]:
    last = messages[-1] if messages else None
    if last is None or last.role != "assistant" or last.calls or not last.text.strip() or is_framed(last):
        return entries
    at = max(index for index, entry in enumerate(entries) if isinstance(entry, HistoryEntry))
    reply = ReplyEntry(last.text)
    reply.number = entries[at].number
    return [*entries[:at], reply, *entries[at + 1 :]]
