"""From what stands on the command line to messages: a file, another tool's session, a store, the example."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import msgspec

from ..compaction import numbers_in, read_back
from ..errors import InvalidInput, InvalidLimit
from ..messages import COMMON, Json, decode_one, encode_all
from ..service import BlockingSessionService
from ..transcripts import Transcript, in_view, numbers_of, read_transcript
from .names import not_one_of
from .shape import Shape, request_shape, shape_of
from .stores import Place, find_store

EXAMPLE = "harbor"


class Past(msgspec.Struct, frozen=True):
    """A compaction that was done before."""

    time: str | None
    before: int | None
    after: int | None
    summary: str | None
    by: str | None = None


class Reported(msgspec.Struct, frozen=True):
    """What the provider counted, and how many of the messages that covers."""

    tokens: int
    covers: int


@contextmanager
def about(source: Source) -> Iterator[None]:
    """Name the file in what is wrong with its messages; limits are not its fault."""
    try:
        yield
    except InvalidLimit:
        raise
    except InvalidInput as problem:
        raise type(problem)(f"{source.path or source.name}: {problem}") from problem


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A context, wherever it came from, and how to write it back."""

    name: str
    kind: str
    messages: list[Json]
    format: str | None
    shape: Shape
    system: Any = None
    tools: Any = None
    model: str | None = None
    id: str | None = None
    path: str | None = None
    """The file that must not be overwritten by accident."""
    reported: Reported | None = None
    past: tuple[Past, ...] = ()
    notes: tuple[str, ...] = ()
    logged: int = 0
    """How many messages the whole log has, where earlier ones are no longer in the context."""
    numbers: Sequence[int] | None = None
    """The numbers by which `holdfast read` knows the messages, where it does not just count them."""
    read: Transcript | None = None
    """The whole file, where it is one of messages or of another tool."""

    @property
    def title(self) -> str:
        """What to call it in a report."""
        name = "standard input" if self.name == "-" else self.name
        return f"{name}  session {self.id}" if self.kind == "holdfast" else name

    @property
    def arguments(self) -> str:
        """How to name it in a command, to be copied."""
        session = ["--session", self.id] if self.kind == "holdfast" and self.id else []
        return shlex.join([self.name, *session])


def open_source(name: str, *, session: str | None = None, whole: bool = False) -> Source:
    """Read a context. With `whole`, all that was ever said, as if nothing had been compacted before."""
    if name == "-":
        return _from_stream(sys.stdin.buffer.read(), name, whole)
    if (example := _example(name)) is not None:
        with resources.as_file(example) as path:
            return _from_file(str(path), name, whole)
    if os.path.exists(name) and not os.path.isfile(name) and not os.path.isdir(name):
        return _from_stream(Path(name).read_bytes(), name, whole)
    place = find_store(name)
    if place is not None:
        with place.open() as sessions:
            return from_session(sessions, place, session, whole)
    if session is not None:
        raise InvalidInput(f"{name} is no Holdfast store, so --session {session} names nothing: leave it out.")
    return _from_file(name, name, whole)


def _example(name: str) -> Traversable | None:
    """A session that ships with the package, by its word: the first command needs no file."""
    word, _, which = name.partition(":")
    if word != "example":
        return None
    folder = resources.files("holdfast") / "examples"
    entries = folder.iterdir() if folder.is_dir() else ()
    files = {file.name.partition(".")[0]: file for file in entries if ".json" in file.name}
    if (found := files.get(which or EXAMPLE)) is None:
        raise InvalidInput(not_one_of("example", which or EXAMPLE, sorted(files)))
    return found


def _from_stream(data: bytes, name: str, whole: bool) -> Source:
    """A pipe can be read once, and telling one kind of session from another takes several looks."""
    with tempfile.NamedTemporaryFile(prefix="holdfast-") as file:
        file.write(data)
        file.flush()
        try:
            return msgspec.structs.replace(_from_file(file.name, name, whole), path=None)
        except InvalidInput as problem:
            said = "standard input" if name == "-" else name
            raise InvalidInput(str(problem).replace(f"The file {file.name}", said).replace(file.name, said)) from None


def _from_file(path: str, name: str, whole: bool) -> Source:
    read = read_transcript(path)
    plain = read.kind == "messages"
    if whole:
        messages, numbers = read.messages, numbers_of(read)
        reported = None if read.compactions else _reported(read, 0, 0)
    else:
        view = in_view(read)
        messages, numbers, reported = view.messages, view.numbers, _reported(read, view.first, len(view.head))
    return Source(
        name=name,
        kind=read.kind,
        messages=messages,
        format=read.format,
        shape=shape_of(path) if plain else request_shape(read.format, read.system, read.tools, read.model),
        system=read.system,
        tools=read.tools,
        model=read.model,
        id=read.id,
        path=path,
        reported=reported,
        past=tuple(
            Past(_time(read, past.after), past.tokens_before, past.tokens_after, past.summary, past.trigger)
            for past in read.compactions
        ),
        notes=read.notes,
        logged=len(read.entries),
        numbers=None if plain else numbers,
        read=read,
    )


def _reported(read: Transcript, first: int, before: int) -> Reported | None:
    counted = [place for place, entry in enumerate(read.entries) if entry.usage is not None and place >= _since(read)]
    if not counted:
        return None
    usage = read.entries[counted[-1]].usage
    assert usage is not None
    return Reported(usage.total, before + counted[-1] + 1 - first)


def _since(read: Transcript) -> int:
    """Usage from before a compaction says nothing about the context after it."""
    return read.compactions[-1].after if read.compactions else 0


def _time(read: Transcript, after: int) -> str | None:
    """Compactions carry no time of their own; what follows them does."""
    times = [entry.time for entry in (*read.entries[after : after + 1], *read.entries[:after][-1:])]
    return next((time for time in times if time), None)


def from_session(sessions: BlockingSessionService, place: Place, wanted: str | None, whole: bool = False) -> Source:
    """One session of a store; the store itself is only read."""
    record = place.choose(sessions, wanted)
    context = sessions.context(record.id)
    said = sessions.events(record.id, kind="message", lane="")
    messages, numbers = context.messages, context.numbers
    if whole:
        decoded = [decode_one(event.body["message"], event.body.get("format")) for event in said]
        messages = encode_all(decoded, name := context.format or COMMON)
        numbers = numbers_in(read_back(messages, name), decoded, [event.seq for event in said])
    if not messages:
        raise InvalidInput(f"The session {record.id!r} of {place.path} holds no messages yet: append some first.")
    compactions = [(event.time, event.body) for event in sessions.events(record.id, kind="compaction", lane="")]
    return Source(
        name=place.path,
        kind="holdfast",
        messages=messages,
        format=context.format,
        shape=request_shape(context.format, context.system, context.tools, record.model),
        system=context.system,
        tools=context.tools,
        model=record.model,
        id=record.id,
        path=None,
        reported=Reported(context.tokens, len(messages)) if context.known and not whole else None,
        past=tuple(
            Past(time, body.get("tokens_before"), body.get("tokens_after"), body.get("summary"), body.get("strategy"))
            for time, body in compactions
        ),
        logged=len(said),
        numbers=numbers,
    )
