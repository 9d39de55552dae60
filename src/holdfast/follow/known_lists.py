"""Recognises a list without reading it: by the caller's own objects, or by the bytes that it begins with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import is_
from typing import Any

_COMPARED = 256
"""Messages compared by identity in each step: so many of the newest, and so many earlier ones in turn."""
_SEPARATORS = (b",", b", ")
_NOTHING = memoryview(b"")


class KnownObjects:
    """The objects of a caller's last list, by which a list that grew is recognised cheaply."""

    def __init__(
        self, objects: Iterable[Any] = (), same: Callable[[Sequence[Any], Sequence[Any]], bool] | None = None
    ) -> None:
        self._objects = list(objects)
        self._same = same
        self._next = 0

    def __len__(self) -> int:
        return len(self._objects)

    def extend(self, objects: Iterable[Any]) -> None:
        """Adds objects at the end."""
        self._objects += objects

    def is_start_of(self, messages: Sequence[Any], first: int = 0) -> bool:
        """Whether a list from `first` on starts with these objects.

        They are compared by `same`, or else by identity in constant work: of a long list the newest each time and the
        others in turn.
        """
        known = len(self._objects)
        if not known or len(messages) - first < known:
            return False
        if self._same is not None:
            return self._same(list(messages[first : first + known]), self._objects)
        start, self._next = self._next, 0 if self._next + _COMPARED >= known else self._next + _COMPARED
        stretches = (max(0, known - _COMPARED), known), (start, min(known, start + _COMPARED))
        return all(
            all(map(is_, messages[first + begin : first + end], self._objects[begin:end])) for begin, end in stretches
        )


class KnownBytes:
    """How a client's last list began, as sent: the next one usually begins with the same bytes."""

    def __init__(self, start: memoryview = _NOTHING, count: int = 0) -> None:
        self._start = start
        self.count = count
        """Messages of the log that the beginning stands for."""

    def __len__(self) -> int:
        return len(self._start)

    @property
    def held_bytes(self) -> int:
        """Bytes of the request that is kept for it."""
        return memoryview(self._start.obj).nbytes

    def rest_of(self, raw: bytes) -> bytes | None:
        """Returns the JSON list of what follows this beginning; None if a list does not begin with it."""
        if not self.count or not raw.startswith(self._start):
            return None
        rest = raw[len(self._start) :].lstrip()
        return b"[" + rest.removeprefix(b",") if rest[:1] in (b",", b"]") else None

    def extended(self, raw: bytes, items: Sequence[bytes], count: int) -> KnownBytes:
        """Returns the beginning of a list up to and with these items, which follow this one; itself if they do not."""
        at = len(self._start)
        added = ((separator if at else b"[") + separator.join(items) for separator in _SEPARATORS)
        end = next((at + len(text) for text in added if items and raw.startswith(text, at)), None)
        return self if end is None else KnownBytes(memoryview(raw)[:end], count)
