"""/export: the session as a file, for another tool or another place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from anyio import to_thread

from ...errors import InvalidInput
from ...transcripts.exporting import FORMATS, ExportFormat, export_session
from .command import Command, Page, words_of

if TYPE_CHECKING:
    from ..chat import Chat

_ENDINGS = {"messages": "json"}


async def _export(chat: Chat, argument: str) -> Page:
    written, format = words_of(argument, 2, EXPORT.usage)
    if written in FORMATS and not format:
        written, format = "", written
    format = format or FORMATS[0]
    file = _place(chat, written or f"{chat.record.id}.{_ENDINGS.get(format, 'jsonl')}")
    exported = await export_session(chat.sessions, chat.record.id, cast("ExportFormat", format))
    await to_thread.run_sync(_write, file, exported.data)
    said = f"Written to {file}, {len(exported.data):,} bytes in the format {format}."
    return Page("\n".join([said, *(f"- {note}" for note in exported.notes)]))


def _place(chat: Chat, written: str) -> Path:
    """A path as a person means it: from the folder of the chat on."""
    try:
        return (chat.folder.root / Path(written).expanduser()).absolute()
    except RuntimeError as problem:
        raise InvalidInput(f"{written!r} is no path here ({problem}): name a file.") from None


def _write(file: Path, data: bytes) -> None:
    """A file that is there already is left alone."""
    try:
        with file.open("xb") as out:
            out.write(data)
    except FileExistsError:
        raise InvalidInput(f"{file} is there already, and is not overwritten: name another file.") from None
    except ValueError as problem:
        raise InvalidInput(f"{str(file)!r} is no path ({problem}): name a file.") from None


async def _places(chat: Chat, words: Sequence[str]) -> Iterable[str]:
    """Folders to write into, since files that are there are not overwritten; then formats."""
    if len(words) != 1:
        return FORMATS if len(words) == 2 else ()
    above = words[0][: words[0].rfind("/") + 1]
    found = await to_thread.run_sync(lambda: [place.name for place in _place(chat, above).iterdir() if place.is_dir()])
    return [*FORMATS, *(f"{above}{name}/" for name in sorted(found) if not name.startswith("."))]


EXPORT = Command("export", "/export [FILE] [FORMAT]", "write the session to a new file", _export, _places)
