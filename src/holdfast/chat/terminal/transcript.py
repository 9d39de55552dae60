"""Entries of the conversation in order, with waiting prompts at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from .entries import PromptEntry, SessionHeaderEntry, TerminalEntry
from .history import EarlierEntry, HistoryEntry

MAX_ENTRIES = 2_000
"""Entries kept while the end of the conversation is shown; earlier ones are read again from the session."""


class TerminalTranscript:
    """Ordered entries; the presenter changes them and the view draws them."""

    def __init__(self, on_change: Callable[[], object] = lambda: None) -> None:
        self.entries: list[TerminalEntry] = []
        self.waiting: list[PromptEntry] = []
        """Prompts not delivered to the agent yet."""
        self.earlier: EarlierEntry | None = None
        """Stands for earlier events, if not all are shown."""
        self._on_change = on_change
        self._unfold_new = False
        self._next_number = 0

    def __iter__(self) -> Iterator[TerminalEntry]:
        return chain(self.entries, self.waiting)

    @property
    def text(self) -> str:
        """All entries as they were written, for a program without a screen of its own."""
        return "\n\n".join(text for entry in self.entries if (text := entry.plain_text))

    def notify(self) -> None:
        self._on_change()

    def add(self, entry: TerminalEntry) -> None:
        if self._unfold_new:
            entry.set_folded(False)
        entry.number, self._next_number = entry.number or self._next_number, 0
        self.entries.append(entry)
        self.notify()

    def add_after(self, before: TerminalEntry, entry: TerminalEntry) -> None:
        """Inserts an entry right after another, or at the end if that one was dropped."""
        if before in self.entries:
            self.entries.insert(self.entries.index(before) + 1, entry)
            self.notify()
        else:
            self.add(entry)

    def prepend_history(self, entries: Sequence[TerminalEntry]) -> None:
        """Inserts earlier entries at the top, without the prompt already shown."""
        first_prompt = next((entry.text for entry in self.entries if isinstance(entry, PromptEntry)), None)
        for index, entry in reversed(list(enumerate(entries))):
            if isinstance(entry, HistoryEntry) and entry.prompt_text is not None and entry.prompt_text == first_prompt:
                entries = entries[:index]
                break
        self.entries[:0] = entries
        self._find_earlier()
        self.notify()

    def number_next(self, number: int) -> None:
        """Says which event the next entry begins to show."""
        self._next_number = number

    def insert_earlier(self, place: EarlierEntry, entries: Sequence[TerminalEntry]) -> None:
        """Puts earlier entries in the place of the one that stood for them."""
        if place in self.entries:
            for entry in entries:
                entry.set_folded(not self._unfold_new)
            at = self.entries.index(place)
            self.entries[at : at + 1] = entries
            self._find_earlier()
            self.notify()

    def trim(self) -> None:
        """Drops the oldest of too many entries, where they can be read again from the session."""
        if len(self.entries) <= MAX_ENTRIES:
            return
        header = [entry for entry in self.entries[:1] if isinstance(entry, SessionHeaderEntry)]
        for at in range(len(self.entries) - MAX_ENTRIES * 7 // 8, len(self.entries)):
            number = self.entries[at].number
            if number > 1 and self.entries[at - 1].number != number:
                self.entries[:at] = [*header, EarlierEntry(number)]
                self._find_earlier()
                return

    def _find_earlier(self) -> None:
        self.earlier = next((entry for entry in self.entries if isinstance(entry, EarlierEntry)), None)

    def replace(self, old: TerminalEntry, new: TerminalEntry) -> None:
        """Replaces an entry in place; appends the new one if the old was dropped."""
        if old in self.entries:
            if self._unfold_new:
                new.set_folded(False)
            self.entries[self.entries.index(old)] = new
            self.notify()
        else:
            self.add(new)

    def remove(self, entry: TerminalEntry) -> None:
        if entry in self.entries:
            self.entries.remove(entry)
            self.notify()

    def clear(self) -> None:
        self.entries.clear()
        self.waiting.clear()
        self.earlier = None
        self._next_number = 0
        self.notify()

    # -- waiting -----------------------------------------------------------------------------------

    def add_waiting(self, text: str, why: str) -> None:
        self.waiting.append(PromptEntry(text, why))
        self.notify()

    def deliver(self, text: str) -> None:
        """Moves a waiting prompt into the conversation, or adds a new one."""
        prompt = self.withdraw(text) or PromptEntry(text)
        prompt.mark_delivered()
        self.add(prompt)

    def withdraw(self, text: str) -> PromptEntry | None:
        """Removes and returns the waiting prompt with this text, if any."""
        found = next((prompt for prompt in self.waiting if prompt.text == text), None)
        if found is not None:
            self.waiting.remove(found)
            self.notify()
        return found

    # -- folding ---------------------------------------------------------------------------------------

    def toggle(self, entry: TerminalEntry) -> None:
        entry.set_folded(not entry.folded)
        self.notify()

    def toggle_all(self) -> None:
        """Unfolds all entries and those added later, or folds them again."""
        self._unfold_new = not self._unfold_new
        for entry in self:
            entry.set_folded(not self._unfold_new)
        self.notify()
