"""Tools that read, search, edit and write files of one folder."""

from __future__ import annotations

import difflib
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import anyio.to_thread
import msgspec

from ...errors import InvalidInput
from ...io.working_folder import WorkingFolder
from ...messages import Json, Tool
from ...recall.tools import ToolAnswer


class ToolArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of a tool: each field is a parameter; the first one describes the call in a line."""


class PlannedChange(msgspec.Struct, frozen=True):
    """A change of one file, made before the user is asked, so that what is shown is what is written."""

    path: Path
    """The real path, links resolved."""
    name: str
    """The path in the working folder."""
    before: bytes | None
    """None for a new file."""
    after: bytes
    done: str
    """Tells the model that the change was made."""

    @property
    def diff(self) -> str:
        """The change as a unified diff; bytes that are not UTF-8 are shown as escapes."""
        before, after = (_diff_lines(data or b"") for data in (self.before, self.after))
        old = "/dev/null" if self.before is None else f"a/{self.name}"
        return "".join(difflib.unified_diff(before, after, old, f"b/{self.name}"))


def _diff_lines(data: bytes) -> list[str]:
    """Returns the lines with their ends, and the remark of diff for a last one without."""
    lines = [f"{line}\n" for line in data.decode(errors="backslashreplace").split("\n")]
    last = lines.pop()
    return lines if last == "\n" else [*lines, f"{last}\\ No newline at end of file\n"]


class AgentTool(msgspec.Struct, frozen=True):
    """A tool: name, description, argument type and function."""

    name: str
    about: str
    arguments: type[ToolArguments] | Json
    """A struct, or a JSON schema; of a schema the arguments are passed on unchecked, as an object."""
    run: Callable[..., Awaitable[str | ToolAnswer]]
    """Takes the arguments, or the change that `plan` made of them; see `streams`."""
    changes: bool = False
    """Whether it changes something, so that the user is asked first."""
    plan: Callable[[Any], Awaitable[PlannedChange]] | None = None
    """Makes the change of a file that the arguments ask for, without writing it."""
    streams: bool = False
    """Whether `run` also takes a function that is called with pieces of the output as they come."""

    @property
    def definition(self) -> Tool:
        """The tool definition to send to a model."""
        return Tool(self.name, self.about, self.schema)

    @property
    def schema(self) -> Json:
        """The JSON schema of the arguments."""
        return self.arguments if isinstance(self.arguments, dict) else _schema(self.arguments)


@cache
def _schema(kind: type[ToolArguments]) -> Json:
    _, parts = msgspec.json.schema_components([kind])
    schema: Json = parts[kind.__name__]
    return {name: schema[name] for name in ("type", "properties", "required") if name in schema}


MAX_CHARACTERS = 30_000
"""Of one tool result."""
_MAX_HITS = 100
_MAX_LISTED = 300
_MAX_LINE = 300
_MAX_NAMED = 5
_MAX_SEARCH_BYTES = 2_000_000
"""Larger files are not searched."""
_DECODE_ERRORS = "surrogateescape"
"""Keeps bytes that are not UTF-8 unchanged through an edit."""
PathArgument = Annotated[str, msgspec.Meta(description="A path in the working folder.")]
PatternArgument = Annotated[str, msgspec.Meta(description="Names of files, as in *.py; all of them by default.")]


class ReadFile(ToolArguments, frozen=True):
    path: PathArgument
    first_line: Annotated[int, msgspec.Meta(description="Where to start.", ge=1)] = 1
    lines: Annotated[int, msgspec.Meta(description="How many lines.", ge=1)] = 1_000
    first_character: Annotated[int, msgspec.Meta(description="Where to start in a first line that is long.", ge=1)] = 1


class ListFiles(ToolArguments, frozen=True):
    path: PathArgument = "."
    pattern: PatternArgument = "*"


class SearchFiles(ToolArguments, frozen=True):
    text: Annotated[str, msgspec.Meta(description="What to look for, word for word.", min_length=1)]
    path: PathArgument = "."
    pattern: PatternArgument = "*"


class EditFile(ToolArguments, frozen=True):
    path: PathArgument
    old: Annotated[str, msgspec.Meta(description="The text to replace, exactly as in the file; it must be unique.")]
    new: Annotated[str, msgspec.Meta(description="What to put in its place.")]


class WriteFile(ToolArguments, frozen=True):
    path: PathArgument
    content: Annotated[str, msgspec.Meta(description="The whole new content.")]


def file_tools(folder: WorkingFolder) -> list[AgentTool]:
    """Returns the file tools for one folder; none of them accesses files outside it."""

    async def read(given: ReadFile) -> str:
        return await anyio.to_thread.run_sync(read_lines, folder, given, abandon_on_cancel=True)

    async def list_(given: ListFiles) -> str:
        return await anyio.to_thread.run_sync(list_folder, folder, given, abandon_on_cancel=True)

    async def search(given: SearchFiles) -> str:
        return await anyio.to_thread.run_sync(_search, folder, given, abandon_on_cancel=True)

    async def plan_edit(given: EditFile) -> PlannedChange:
        return await anyio.to_thread.run_sync(_plan_edit, folder, given)

    async def plan_write(given: WriteFile) -> PlannedChange:
        return await anyio.to_thread.run_sync(_plan_write, folder, given)

    async def write(change: PlannedChange) -> str:
        return await anyio.to_thread.run_sync(_write_change, folder, change)

    return [
        AgentTool("read_file", "Read a text file, or some of its lines.", ReadFile, read),
        AgentTool("list_files", "List the files below a folder.", ListFiles, list_),
        AgentTool("search_files", "Find the lines of files that hold a text.", SearchFiles, search),
        AgentTool("edit_file", "Replace one piece of a file.", EditFile, write, changes=True, plan=plan_edit),
        AgentTool("write_file", "Write a file, new or in place of the old one.", WriteFile, write, True, plan_write),
    ]


def read_lines(folder: WorkingFolder, given: ReadFile) -> str:
    """Reads some lines without loading the whole file."""
    start = (given.first_line, given.first_character)
    shown, size, line, more = list[str](), 0, 0, ""
    for line, place, piece in _pieces(folder, folder.resolve(given.path)):
        if (line, place + len(piece)) < start:
            continue
        if not shown and line > given.first_line:
            break
        if line >= given.first_line + given.lines or (shown and size + len(piece) > MAX_CHARACTERS):
            more = _continuation_note(given, line, place)
            break
        shown.append(piece[max(0, given.first_character - 1 - place) :] if line == given.first_line else piece)
        size += len(shown[-1])
    if not shown and start != (1, 1):
        short = f"{given.path} has {line} lines: start at one of them."
        narrow = f"Line {given.first_line} of {given.path} has fewer than {given.first_character} characters."
        raise InvalidInput(short if line < given.first_line else narrow)
    return "".join(shown) + more or "(The file is empty.)"


def _pieces(folder: WorkingFolder, path: Path) -> Iterator[tuple[int, int, str]]:
    """Yields (line number, offset in the line, text); a long line comes in several pieces."""
    number, place = 1, 0
    with folder.open_text(path) as file:
        while piece := file.readline(MAX_CHARACTERS):
            yield number, place, piece
            number, place = (number + 1, 0) if piece.endswith("\n") else (number, place + len(piece))


def _continuation_note(given: ReadFile, line: int, place: int) -> str:
    if place:
        return f"\n[line {line} is longer: go on with first_line={line}, first_character={place + 1}]"
    return f"\n[lines {given.first_line}-{line - 1}: go on with first_line={line}]"


def list_folder(folder: WorkingFolder, given: ListFiles) -> str:
    """Returns the paths of the files below a folder, one a line."""
    found: list[str] = []
    for path in folder.files(given.path, given.pattern):
        if len(found) == _MAX_LISTED:
            return "\n".join([*found, f"[and more: name a folder or a pattern; {_MAX_LISTED} are shown]"])
        found.append(folder.display_name(path))
    return "\n".join(found) or "(No such files.)"


def _search(folder: WorkingFolder, given: SearchFiles) -> str:
    found, large = list[str](), list[str]()
    for path in folder.files(given.path, given.pattern):
        with suppress(InvalidInput, OSError), folder.open_text(path) as file:
            if os.fstat(file.fileno()).st_size > _MAX_SEARCH_BYTES:
                large.append(folder.display_name(path))
                continue
            for number, line in enumerate(file, 1):
                if given.text not in line:
                    continue
                if len(found) == _MAX_HITS:
                    return "\n".join([*found, f"[and more: use a more specific text; {_MAX_HITS} are shown]"])
                found.append(f"{folder.display_name(path)}:{number}: {_excerpt(given.text, line)}")
    if large:
        found.append(f"[too large to search: {', '.join(large[:_MAX_NAMED])}{', …' if large[_MAX_NAMED:] else ''}]")
    return "\n".join(found) or "(No matches.)"


def _excerpt(text: str, line: str) -> str:
    """Returns the line; of a long line, the part around the text."""
    place = line.find(text)
    start = 0 if place + len(text) <= _MAX_LINE else max(0, place - _MAX_LINE // 2)
    end = start + _MAX_LINE
    return f"{'…' if start else ''}{line[start:end].strip()}{'…' if line[end:].strip() else ''}"


def _plan_edit(folder: WorkingFolder, given: EditFile) -> PlannedChange:
    path = folder.resolve(given.path)
    text = folder.read_text(path, _DECODE_ERRORS)
    count = text.count(given.old) if given.old else 0
    if count != 1:
        why = "does not occur" if not count else f"occurs {count} times: add the text around it"
        raise InvalidInput(f"The text to replace {why} in {given.path}.")
    before, after = (one.encode(errors=_DECODE_ERRORS) for one in (text, text.replace(given.old, given.new)))
    return PlannedChange(path, folder.display_name(path), before, after, f"Edited {given.path}.")


def _plan_write(folder: WorkingFolder, given: WriteFile) -> PlannedChange:
    path = folder.resolve(given.path)
    if path.is_dir():
        raise InvalidInput(f"{given.path} is a folder: name a file.")
    if path.exists() and not path.is_file():
        raise InvalidInput(f"{given.path} is a device or a pipe: name a file.")
    before = folder.read_bytes(path)
    done = f"{'Wrote' if before is None else 'Replaced'} {given.path}."
    return PlannedChange(path, folder.display_name(path), before, given.content.encode(), done)


def _write_change(folder: WorkingFolder, change: PlannedChange) -> str:
    """Writes the file if it is still as it was shown to the user."""
    if folder.resolve(str(change.path)) != change.path or folder.read_bytes(change.path) != change.before:
        raise InvalidInput(f"{change.name} has changed since the user was asked, and was not written: read it again.")
    folder.write(change.path, change.after)
    return change.done
