"""Reading, searching, editing and writing the files of one folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import anyio.to_thread
import msgspec

from ...errors import InvalidInput
from ...files import replace_file
from .folder import Folder
from .tool import AgentTool, Arguments

MOST = 30_000
"""Characters of one answer."""
_HITS = 100
_LISTED = 300
_WIDEST = 300
_NAMED = 5
_LARGEST = 2_000_000
"""Bytes of a file that is still searched."""
_KEPT = "surrogateescape"
"""Bytes that are no UTF-8 are as they were after an edit elsewhere in the file."""
Path_ = Annotated[str, msgspec.Meta(description="A path in the working folder.")]
Pattern = Annotated[str, msgspec.Meta(description="Names of files, as in *.py; all of them unless said otherwise.")]


class ReadFile(Arguments, frozen=True):
    path: Path_
    first_line: Annotated[int, msgspec.Meta(description="Where to start.", ge=1)] = 1
    lines: Annotated[int, msgspec.Meta(description="How many lines.", ge=1)] = 1_000
    first_character: Annotated[int, msgspec.Meta(description="Where to start in a first line that is long.", ge=1)] = 1


class ListFiles(Arguments, frozen=True):
    path: Path_ = "."
    pattern: Pattern = "*"


class SearchFiles(Arguments, frozen=True):
    text: Annotated[str, msgspec.Meta(description="What to look for, word for word.", min_length=1)]
    path: Path_ = "."
    pattern: Pattern = "*"


class EditFile(Arguments, frozen=True):
    path: Path_
    old: Annotated[str, msgspec.Meta(description="The text to replace, exactly as it stands there; it must be unique.")]
    new: Annotated[str, msgspec.Meta(description="What to put in its place.")]


class WriteFile(Arguments, frozen=True):
    path: Path_
    content: Annotated[str, msgspec.Meta(description="The whole new content.")]


def file_tools(folder: Folder) -> list[AgentTool]:
    """The tools for one folder. None of them leaves it."""

    async def read(given: ReadFile) -> str:
        return await anyio.to_thread.run_sync(_read, folder, given, abandon_on_cancel=True)

    async def listed(given: ListFiles) -> str:
        return await anyio.to_thread.run_sync(_listed, folder, given, abandon_on_cancel=True)

    async def search(given: SearchFiles) -> str:
        return await anyio.to_thread.run_sync(_search, folder, given, abandon_on_cancel=True)

    async def edit(given: EditFile) -> str:
        return await anyio.to_thread.run_sync(_edit, folder, given)

    async def write(given: WriteFile) -> str:
        return await anyio.to_thread.run_sync(_write, folder, given)

    return [
        AgentTool("read_file", "Read a text file, or some of its lines.", ReadFile, read),
        AgentTool("list_files", "List the files below a folder.", ListFiles, listed),
        AgentTool("search_files", "Find the lines of files that hold a text.", SearchFiles, search),
        AgentTool("edit_file", "Replace one piece of a file.", EditFile, edit, changes=True),
        AgentTool("write_file", "Write a file, new or in place of the old one.", WriteFile, write, changes=True),
    ]


def _read(folder: Folder, given: ReadFile) -> str:
    """Some of a file, however large it is."""
    start = (given.first_line, given.first_character)
    shown, size, line, more = list[str](), 0, 0, ""
    for line, place, piece in _pieces(folder, folder.inside(given.path)):
        if (line, place + len(piece)) < start:
            continue
        if not shown and line > given.first_line:
            break
        if line >= given.first_line + given.lines or (shown and size + len(piece) > MOST):
            more = _more(given, line, place)
            break
        shown.append(piece[max(0, given.first_character - 1 - place) :] if line == given.first_line else piece)
        size += len(shown[-1])
    if not shown and start != (1, 1):
        short = f"{given.path} has {line} lines: start at one of them."
        narrow = f"Line {given.first_line} of {given.path} has fewer than {given.first_character} characters."
        raise InvalidInput(short if line < given.first_line else narrow)
    return "".join(shown) + more or "(The file is empty.)"


def _pieces(folder: Folder, path: Path) -> Iterator[tuple[int, int, str]]:
    """A file's lines by number; a long one comes in pieces, each with the characters of the line before it."""
    number, place = 1, 0
    with folder.opened(path) as file:
        while piece := file.readline(MOST):
            yield number, place, piece
            number, place = (number + 1, 0) if piece.endswith("\n") else (number, place + len(piece))


def _more(given: ReadFile, line: int, place: int) -> str:
    if place:
        return f"\n[line {line} is longer: go on with first_line={line}, first_character={place + 1}]"
    return f"\n[lines {given.first_line}-{line - 1}: go on with first_line={line}]"


def _listed(folder: Folder, given: ListFiles) -> str:
    found: list[str] = []
    for path in folder.files(given.path, given.pattern):
        if len(found) == _LISTED:
            return "\n".join([*found, f"[and more: name a folder or a pattern; {_LISTED} are shown]"])
        found.append(folder.name(path))
    return "\n".join(found) or "(No such files.)"


def _search(folder: Folder, given: SearchFiles) -> str:
    found, large = list[str](), list[str]()
    for path in folder.files(given.path, given.pattern):
        with suppress(InvalidInput, OSError), folder.opened(path) as file:
            if os.fstat(file.fileno()).st_size > _LARGEST:
                large.append(folder.name(path))
                continue
            for number, line in enumerate(file, 1):
                if given.text not in line:
                    continue
                if len(found) == _HITS:
                    return "\n".join([*found, f"[and more: say it more exactly; {_HITS} are shown]"])
                found.append(f"{folder.name(path)}:{number}: {_around(given.text, line)}")
    if large:
        found.append(f"[too large to be searched: {', '.join(large[:_NAMED])}{', …' if large[_NAMED:] else ''}]")
    return "\n".join(found) or "(Nowhere.)"


def _around(text: str, line: str) -> str:
    """The line; of a long one, what stands around the text."""
    place = line.find(text)
    start = 0 if place + len(text) <= _WIDEST else max(0, place - _WIDEST // 2)
    end = start + _WIDEST
    return f"{'…' if start else ''}{line[start:end].strip()}{'…' if line[end:].strip() else ''}"


def _edit(folder: Folder, given: EditFile) -> str:
    path = folder.inside(given.path)
    text = folder.text(path, _KEPT)
    count = text.count(given.old) if given.old else 0
    if count != 1:
        why = "does not occur" if not count else f"occurs {count} times: add what stands around it"
        raise InvalidInput(f"The text to replace {why} in {given.path}.")
    replace_file(path, text.replace(given.old, given.new).encode(errors=_KEPT))
    return f"Edited {given.path}."


def _write(folder: Folder, given: WriteFile) -> str:
    path = folder.inside(given.path)
    if path.is_dir():
        raise InvalidInput(f"{given.path} is a folder: name a file.")
    known = path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, given.content.encode())
    return f"{'Replaced' if known else 'Wrote'} {given.path}."
