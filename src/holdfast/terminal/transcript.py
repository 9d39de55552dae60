"""The conversation as it is shown: entries in order, those that wait to be heard at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from .entries import Earlier, Entry, Note, Prompt

MOST = 400
"""Entries that are kept on the screen; all of them are in the session."""
_DROPPED = "earlier messages are in the session: /search finds them"


class Transcript:
    """Changed by whoever hears something, drawn by the view: neither waits for the other."""

    def __init__(self, on_change: Callable[[], object] = lambda: None) -> None:
        self.entries: list[Entry] = []
        self.waiting: list[Prompt] = []
        """Said, and not heard yet."""
        self._on_change = on_change
        self._unfolded = False

    def __iter__(self) -> Iterator[Entry]:
        return chain(self.entries, self.waiting)

    def changed(self) -> None:
        self._on_change()

    def add(self, entry: Entry) -> None:
        if self._unfolded:
            entry.fold(False)
        self.entries.append(entry)
        if len(self.entries) > MOST:
            del self.entries[: len(self.entries) - MOST + MOST // 8]
            self.entries.insert(0, Note(_DROPPED))
        self.changed()

    def add_after(self, before: Entry, entry: Entry) -> None:
        """What belongs to an entry, whatever was added behind it meanwhile; at the end if it is gone already."""
        if before in self.entries:
            self.entries.insert(self.entries.index(before) + 1, entry)
            self.changed()
        else:
            self.add(entry)

    def begin_with(self, entries: Sequence[Entry]) -> None:
        """What was there before all this; less what has been said just now, and is shown already."""
        fresh = next((entry.text for entry in self.entries if isinstance(entry, Prompt)), None)
        for place, entry in reversed(list(enumerate(entries))):
            if isinstance(entry, Earlier) and entry.said is not None and entry.said == fresh:
                entries = entries[:place]
                break
        self.entries[:0] = entries
        self.changed()

    def replace(self, old: Entry, new: Entry) -> None:
        """One entry becomes another where it stands; at the end if it is gone already."""
        if old in self.entries:
            if self._unfolded:
                new.fold(False)
            self.entries[self.entries.index(old)] = new
            self.changed()
        else:
            self.add(new)

    def remove(self, entry: Entry) -> None:
        if entry in self.entries:
            self.entries.remove(entry)
            self.changed()

    def clear(self) -> None:
        self.entries.clear()
        self.waiting.clear()
        self.changed()

    # -- what waits ------------------------------------------------------------------------------------

    def wait(self, text: str, why: str) -> None:
        self.waiting.append(Prompt(text, why))
        self.changed()

    def heard(self, text: str) -> None:
        """A prompt takes its place in the conversation."""
        prompt = self.taken_back(text) or Prompt(text)
        prompt.heard()
        self.add(prompt)

    def taken_back(self, text: str) -> Prompt | None:
        """The prompt that waited, which waits no longer."""
        found = next((prompt for prompt in self.waiting if prompt.text == text), None)
        if found is not None:
            self.waiting.remove(found)
            self.changed()
        return found

    # -- folding ---------------------------------------------------------------------------------------

    def toggle(self, entry: Entry) -> None:
        entry.fold(not entry.folded)
        self.changed()

    def toggle_all(self) -> None:
        """Unfold everything, and what comes from now on; or fold it again."""
        self._unfolded = not self._unfolded
        for entry in self:
            entry.fold(not self._unfolded)
        self.changed()
