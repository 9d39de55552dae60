"""Reads the FILE argument: a file of messages, another tool's session, a store, or the example."""

from __future__ import annotations

import gzip
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from importlib.resources.abc import Traversable
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from ..compaction.size import Size
from ..context.events import Event, LaneTip, message_in
from ..errors import InvalidInput, InvalidLimit
from ..io.arguments import did_you_mean, unknown_name_message
from ..io.files import write_file_atomically
from ..messages import COMMON, Json, encode_all
from ..messages.codec import decode_payloads
from ..messages.repair import trace_numbers
from ..sessions import BlockingSessionService
from ..tokens import ReportedUsage, Usage
from ..transcripts import Transcript, entry_numbers, live_context, read_transcript
from ..transcripts.examples import example_path
from ..transcripts.files import read_session_bytes
from ..transcripts.plain import is_request_body
from ..transcripts.records import parse_json_values
from ..transcripts.transcript import TranscriptWarnings
from .stores import StoreLocation, find_store, is_store

_MESSAGE_KEYS = ("messages", "input", "contents")
_REQUEST_KEYS = {"openai-responses": ("input", "instructions"), "gemini": ("contents", "systemInstruction")}


class WireShape(msgspec.Struct, frozen=True):
    """A JSON list, JSON lines, or a request body with its messages under `key`."""

    body: Json | None = None
    key: str = "messages"
    lines: bool = False

    def encode(self, messages: list[Json]) -> bytes:
        if self.lines:
            return b"".join(msgspec.json.encode(message) + b"\n" for message in messages)
        value = messages if self.body is None else self.body | {self.key: messages}
        return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def detect_shape(path: str) -> WireShape:
    """Detects the shape of a plain file of messages."""
    values = parse_json_values(read_session_bytes(Path(path)), path, TranscriptWarnings())
    if len(values) > 1:
        return WireShape(lines=True)
    if is_request_body(values[0]):
        return WireShape(values[0], next(key for key in _MESSAGE_KEYS if isinstance(values[0].get(key), list | str)))
    return WireShape()


def request_shape(format: str | None, system: Any, tools: Any, model: str | None) -> WireShape:
    """A request body with the known model, system prompt and tools; a list if none is known."""
    messages, prompt = _REQUEST_KEYS.get(format or "", ("messages", "system"))
    others = {key: value for key, value in (("model", model), (prompt, system), ("tools", tools)) if value}
    return WireShape(others, messages) if others else WireShape()


def check_writable(out: str, source: str | None, *, force: bool) -> None:
    """Raises InvalidInput if OUT cannot be written; called before any work is done."""
    folder = os.path.dirname(os.path.realpath(out))
    if not os.path.isdir(folder):
        raise InvalidInput(f"The folder {folder} does not exist: create it, or choose another output file.")
    if os.path.isdir(out):
        raise InvalidInput(f"{out} is a folder: name a file to write.")
    if is_store(out):
        raise InvalidInput(f"{out} is a Holdfast store, which is never overwritten: choose another output file.")
    if not force and source is not None and os.path.exists(out) and os.path.samefile(out, source):
        raise InvalidInput(f"{out} is the input file: choose another output file, or use --force.")
    if not os.access(out if os.path.exists(out) else folder, os.W_OK):
        raise InvalidInput(f"{out} is not writable: check its permissions, or choose another output file.")


def refuse_existing(out: str, *, force: bool) -> None:
    """Raises InvalidInput if OUT is an existing file."""
    if os.path.isfile(out) and not force:
        raise InvalidInput(f"{out} already exists: choose another output file, or use --force.")


def write_output(out: str, data: bytes) -> None:
    """Writes atomically by replacing the file; compresses names ending in .gz."""
    out = os.path.realpath(out)
    data = gzip.compress(data) if out.endswith(".gz") else data
    if os.path.exists(out) and not os.path.isfile(out):  # write to /dev/null and pipes, never replace them
        with open(out, "wb") as file:
            file.write(data)
        return
    write_file_atomically(out, data, new_mode=0o666 & ~_umask())


def _umask() -> int:
    current = os.umask(0o022)
    os.umask(current)
    return current


DEFAULT_EXAMPLE = "harbor"
_EXAMPLE_NAMES = ("example", "example:support", "example:review", "example:journal")


class EarlierCompaction(msgspec.Struct, frozen=True):
    """A compaction found in the input."""

    time: str | None
    before: int | None
    after: int | None
    summary: str | None
    by: str | None = None


@contextmanager
def name_file_in_errors(source: Source) -> Iterator[None]:
    """Prefixes InvalidInput errors with the file name, except InvalidLimit: limits are options."""
    try:
        yield
    except InvalidLimit:
        raise
    except InvalidInput as problem:
        raise type(problem)(f"{source.path or source.name}: {problem}") from problem


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A context read from any kind of input, and the shape to write it back in."""

    name: str
    kind: str
    messages: list[Json]
    format: str | None
    shape: WireShape
    system: Any = None
    tools: Any = None
    model: str | None = None
    id: str | None = None
    path: str | None = None
    """Input file, protected against accidental overwriting."""
    reported: ReportedUsage | None = None
    reports: tuple[ReportedUsage, ...] = ()
    """All sizes that the provider reported for these messages, oldest first."""
    size: Size | None = None
    """Of a stored session, unless its whole history is read."""
    compacted_at: tuple[int, ...] = ()
    """Indices of the messages before which the context was compacted: sizes across them do not compare."""
    past_compactions: tuple[EarlierCompaction, ...] = ()
    notes: tuple[str, ...] = ()
    logged: int = 0
    """Messages in the whole log, including those no longer in the context."""
    numbers: Sequence[int] | None = None
    """Event numbers of the messages for `holdfast read`, if they are not consecutive."""
    transcript: Transcript | None = None
    """The parsed file, unless the source is a store."""

    @property
    def title(self) -> str:
        """Name for reports."""
        name = "standard input" if self.name == "-" else self.name
        return f"{name}  session {self.id}" if self.kind == "holdfast" else name

    @property
    def arguments(self) -> str:
        """Command-line arguments that select this source, for a command to copy."""
        session = ["--session", self.id] if self.kind == "holdfast" and self.id else []
        return shlex.join([self.name, *session])


def open_source(name: str, *, session: str | None = None, whole: bool = False) -> Source:
    """Reads a context; `whole` ignores compactions and returns the full history."""
    if name == "-":
        return _source_from_stream(sys.stdin.buffer.read(), name, whole)
    if (example := _find_example(name)) is not None:
        with resources.as_file(example) as path:
            return _source_from_file(str(path), name, whole)
    if os.path.exists(name) and not os.path.isfile(name) and not os.path.isdir(name):
        return _source_from_stream(Path(name).read_bytes(), name, whole)
    location = find_store(name)
    if location is not None:
        with location.open() as sessions:
            return source_from_session(sessions, location, session, whole)
    if session is not None:
        raise InvalidInput(f"{name} is not a Holdfast store: leave out --session {session}.")
    require_file(name)
    return _source_from_file(name, name, whole)


def require_file(name: str | Path) -> None:
    """Raises InvalidInput for a missing file; a misspelled bare name may be a bundled session."""
    if os.path.exists(name):
        return
    hint = did_you_mean(str(name), _EXAMPLE_NAMES) if not {".", os.sep} & set(str(name)) else ""
    raise InvalidInput(f"There is no file {name}: {hint or 'check the path.'}")


def is_example(name: str) -> bool:
    """Whether this names a bundled session: `example` or `example:NAME`."""
    return name.partition(":")[0] == "example"


def resolve_example(name: str) -> str | Path:
    """Resolves the name of a bundled session to its path; a file of that name takes precedence."""
    if not is_example(name) or Path(name).exists():
        return name
    example = name.partition(":")[2]
    return example_path(example) if example else example_path()


def _find_example(name: str) -> Traversable | None:
    """Finds a bundled session by its name, `example` or `example:NAME`."""
    if not is_example(name):
        return None
    example = name.partition(":")[2]
    folder = resources.files("holdfast.transcripts.examples")
    entries = folder.iterdir() if folder.is_dir() else ()
    files = {file.name.partition(".")[0]: file for file in entries if ".json" in file.name}
    if (found := files.get(example or DEFAULT_EXAMPLE)) is None:
        raise InvalidInput(unknown_name_message("example", example or DEFAULT_EXAMPLE, sorted(files)))
    return found


def _source_from_stream(data: bytes, name: str, whole: bool) -> Source:
    """Copies a pipe to a temporary file: detecting the format reads it several times."""
    with tempfile.NamedTemporaryFile(prefix="holdfast-") as file:
        file.write(data)
        file.flush()
        try:
            return msgspec.structs.replace(_source_from_file(file.name, name, whole), path=None)
        except InvalidInput as problem:
            label = "standard input" if name == "-" else name
            raise InvalidInput(str(problem).replace(f"The file {file.name}", label).replace(file.name, label)) from None


def _source_from_file(path: str, name: str, whole: bool) -> Source:
    transcript = read_transcript(path)
    plain = transcript.kind == "messages"
    if whole:
        messages, numbers = transcript.messages, entry_numbers(transcript)
        reports = _reported_sizes(transcript, 0)
        reported = reports[-1] if reports and not transcript.compactions else None
        compacted_at = tuple(past.after for past in transcript.compactions)
    else:
        view = live_context(transcript)
        messages, numbers, compacted_at = view.messages, view.numbers, ()
        reports = _reported_sizes(transcript, view.first - len(view.head), _last_compaction_index(transcript))
        reported = reports[-1] if reports else None
    return Source(
        name=name,
        kind=transcript.kind,
        messages=messages,
        format=transcript.format,
        shape=detect_shape(path)
        if plain
        else request_shape(transcript.format, transcript.system, transcript.tools, transcript.model),
        system=transcript.system,
        tools=transcript.tools,
        model=transcript.model,
        id=transcript.id,
        path=path,
        reported=reported,
        reports=reports,
        compacted_at=compacted_at,
        past_compactions=tuple(
            EarlierCompaction(
                _compaction_time(transcript, past.after),
                past.tokens_before,
                past.tokens_after,
                past.summary,
                past.trigger,
            )
            for past in transcript.compactions
        ),
        notes=transcript.warnings,
        logged=len(transcript.entries),
        numbers=None if plain else numbers,
        transcript=transcript,
    )


def _reported_sizes(transcript: Transcript, hidden: int, since: int = 0) -> tuple[ReportedUsage, ...]:
    """Sizes reported from the entry `since` on, for a context in which `hidden` entries are not shown."""
    return tuple(
        ReportedUsage(entry.usage.total, place + 1 - hidden)
        for place, entry in enumerate(transcript.entries)
        if entry.usage is not None and place >= since
    )


def _last_compaction_index(transcript: Transcript) -> int:
    """Index of the last compaction: usage reported before it does not apply to the current context."""
    return transcript.compactions[-1].after if transcript.compactions else 0


def _compaction_time(transcript: Transcript, after: int) -> str | None:
    """Time of a neighbouring entry: compactions have no time of their own."""
    times = [entry.time for entry in (*transcript.entries[after : after + 1], *transcript.entries[:after][-1:])]
    return next((time for time in times if time), None)


def source_from_session(
    sessions: BlockingSessionService, location: StoreLocation, wanted: str | None, whole: bool = False
) -> Source:
    """Reads one session of a store, without changing the store."""
    record = location.choose_session(sessions, wanted)
    context = sessions.context(record.id)
    logged = sessions.events(record.id, kind="message", lane="")
    messages, numbers = context.messages, context.numbers
    if whole:
        decoded = [message_in(event) for event in logged]
        messages = encode_all(decoded, name := context.format or COMMON)
        numbers = trace_numbers(decode_payloads(messages, name), decoded, [event.seq for event in logged])
    if not messages:
        raise InvalidInput(f"The session {record.id!r} of {location.path} holds no messages yet: append some first.")
    current = record.lanes.get("", LaneTip()).epoch
    reports = _session_reports([event for event in logged if whole or event.epoch == current], numbers)
    compactions = [(event.time, event.body) for event in sessions.events(record.id, kind="compaction", lane="")]
    return Source(
        name=location.path,
        kind="holdfast",
        messages=messages,
        format=context.format,
        shape=request_shape(context.format, context.system, context.tools, record.model),
        system=context.system,
        tools=context.tools,
        model=record.model,
        id=record.id,
        path=None,
        reported=ReportedUsage(context.tokens, len(messages)) if context.known and not whole else None,
        size=None if whole else sessions.size(record.id),
        reports=reports,
        compacted_at=_epoch_changes(logged, numbers) if whole else (),
        past_compactions=tuple(
            EarlierCompaction(
                time, body.get("tokens_before"), body.get("tokens_after"), body.get("summary"), body.get("strategy")
            )
            for time, body in compactions
        ),
        logged=len(logged),
        numbers=numbers,
    )


def _session_reports(events: Sequence[Event], numbers: Sequence[int]) -> tuple[ReportedUsage, ...]:
    """Sizes reported with these events, for the messages with these event numbers."""
    ends = {number: place for place, number in enumerate(numbers, 1)}
    found = ((event.body.get("usage"), ends.get(event.seq)) for event in events)
    return tuple(ReportedUsage(msgspec.convert(usage, Usage).total, end) for usage, end in found if usage and end)


def _epoch_changes(events: Sequence[Event], numbers: Sequence[int]) -> tuple[int, ...]:
    """Indices of the first messages after a compaction or an undo."""
    starts = {number: place for place, number in reversed(list(enumerate(numbers)))}
    later = (after.seq for before, after in pairwise(events) if before.epoch != after.epoch)
    return tuple(starts[seq] for seq in later if seq in starts)
