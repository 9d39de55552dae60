"""From what stands on the command line to something that can be searched and read: a store, or any file of messages."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from ..messages import decode_all
from ..recall import BlockingRecall, remember
from ..service import BlockingSessionService, SessionService
from ..stores import MemoryStore
from ..transcripts import import_transcript
from .sources import Source, about, open_source
from .stores import Place, find_store


class Opened(msgspec.Struct, frozen=True):
    """What was opened, and how to name it again."""

    recall: BlockingRecall
    name: str
    session: str | None
    """The session that it is about; None if it is about all of a store."""
    is_store: bool

    def arguments(self, session: str | None) -> str:
        """The file and the session in a command, to be copied."""
        return shlex.join([self.name, *(["--session", session] if self.is_store and session else [])])


@contextmanager
def open_recall(name: str, session: str | None, *, one: bool = False) -> Iterator[Opened]:
    """Open a store or a file; with `one`, a single session of it must be meant."""
    place = store_named(name)
    if place is not None:
        with place.open() as sessions:
            chosen = session or place.only
            if one or chosen is not None:
                chosen = place.choose(sessions, session).id
            yield Opened(BlockingRecall(sessions, chosen), place.path, chosen, True)
        return
    source = open_source(name, session=session, whole=True)
    with BlockingSessionService(MemoryStore()) as sessions:
        id = sessions.call(lambda service: remember_source(service, source))
        yield Opened(BlockingRecall(sessions, id), source.name, id, False)


def store_named(name: str) -> Place | None:
    return None if name == "-" or name.partition(":")[0] == "example" else find_store(name)


async def remember_source(service: SessionService, source: Source) -> str:
    """What is in no store as a session of ours, for as long as the command runs; returns its id."""
    read, id = source.read, source.id or source.name
    assert read is not None
    with about(source):
        if read.kind != "messages":
            return (await import_transcript(service, read, id)).id
        messages, format = decode_all(read.messages, read.format)
    return await remember(service.store, messages, format, session_id=id)
