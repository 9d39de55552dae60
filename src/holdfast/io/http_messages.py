"""What both ends of a proxy read of HTTP: header lines as they were sent, and bodies as they arrive."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence

from ..errors import InvalidInput

HeaderLines = Sequence[tuple[bytes, bytes]]
Pieces = list[bytes]
"""A body as it arrived: joining a large one would stop the event loop."""
_MOST_WAITING = 2**18
"""Bytes of a body that wait to be read before its sender is paused."""


class Headers:
    """Header lines in their order with odd bytes and duplicates, and their values by name."""

    __slots__ = ("_values", "lines")

    def __init__(self, lines: HeaderLines) -> None:
        self.lines = lines
        self._values: dict[str, list[str]] = {}
        for name, value in lines:
            self._values.setdefault(name.decode("latin-1").lower(), []).append(value.decode(errors="surrogateescape"))

    def get(self, name: str, default: str = "") -> str:
        """Returns the first value of a header."""
        found = self._values.get(name.lower())
        return found[0] if found else default

    def getall(self, name: str) -> Sequence[str]:
        """Returns all values of a header."""
        return self._values.get(name.lower(), ())

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._values

    def items(self) -> Iterator[tuple[str, str]]:
        """Yields names in lower case with their first values."""
        return ((name, values[0]) for name, values in self._values.items())


class BodyTooLarge(InvalidInput):
    """A body that is longer than its reader takes."""


class BodyStream:
    """A body as it arrives; its sender is paused while much of it waits to be read."""

    __slots__ = ("_chunks", "_hold", "_is_held", "_problem", "_waiter", "_waiting", "ended")

    def __init__(self, hold: Callable[[bool], None]) -> None:
        """`hold` pauses (True) or resumes the connection that the body comes from."""
        self.ended = False
        """Whether nothing more will arrive."""
        self._hold, self._is_held = hold, False
        self._chunks: list[bytes] = []
        self._waiting = 0
        self._problem: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None

    @property
    def has_waiting(self) -> bool:
        """Whether a read returns at once."""
        return bool(self._chunks) or self.ended

    @property
    def is_whole(self) -> bool:
        """Whether nothing more will arrive, and nothing was lost."""
        return self.ended and self._problem is None

    @property
    def is_held(self) -> bool:
        """Whether its sender is paused."""
        return self._is_held

    def feed(self, chunk: bytes) -> None:
        """Takes the next bytes."""
        self._chunks.append(chunk)
        self._waiting += len(chunk)
        if self._waiting > _MOST_WAITING and not self._is_held:
            self._is_held = True
            self._hold(True)
        self._wake()

    def end(self, problem: Exception | None = None) -> None:
        """Ends the body; with a problem, it broke off."""
        if not self.ended:
            self.ended, self._problem = True, problem
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def read_any(self) -> bytes:
        """Returns what has arrived, empty at the end."""
        while not self._chunks:
            if self.ended:
                if self._problem is not None:
                    raise self._problem
                return b""
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        chunk = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks.clear()
        self._waiting = 0
        if self._is_held:
            self._is_held = False
            self._hold(False)
        return chunk

    async def read(self, limit: int) -> bytes:
        """Returns the whole body; raises BodyTooLarge if it is longer than `limit`."""
        return b"".join(await self.read_pieces(limit))

    async def read_pieces(self, limit: int) -> Pieces:
        """As `read`, in the pieces that arrived."""
        pieces, size = Pieces(), 0
        while piece := await self.read_any():
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                raise BodyTooLarge(f"The body is larger than {limit:,} bytes.")
        return pieces


def join_head(first: str, lines: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Returns a request or status line with header lines, as they are sent."""
    head = (first.encode(errors="surrogateescape"), *(name + b": " + value for name, value in lines))
    return b"\r\n".join(head) + b"\r\n\r\n"
