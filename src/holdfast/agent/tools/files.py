"""Reading, searching, editing and writing the files of one folder."""

from __future__ import annotations

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
_KEPT = "surrogateescape"
"""Bytes that are no UTF-8 are as they were after an edit elsewhere in the file."""
Path_ = Annotated[str, msgspec.Meta(description="A path in the working folder.")]
Pattern = Annotated[str, msgspec.Meta(description="Names of files, as in *.py; all of them unless said otherwise.")]


class ReadFile(Arguments, frozen=True):
    path: Path_
    first_line: Annotated[int, msgspec.Meta(description="Where to start.", ge=1)] = 1
    lines: Annotated[int, msgspec.Meta(description="How many lines.", ge=1)] = 1_000


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
        return await anyio.to_thread.run_sync(_read, folder, given)

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
    lines = folder.text(folder.inside(given.path)).splitlines(keepends=True)
    if given.first_line > max(1, len(lines)):
        raise InvalidInput(f"{given.path} has {len(lines)} lines: start at one of them.")
    shown, size = list[str](), 0
    for line in lines[given.first_line - 1 :][: given.lines]:
        if shown and size + len(line) > MOST:
            break
        shown.append(line[:MOST])
        size += len(line)
    end = given.first_line + len(shown) - 1
    more = f"\n[lines {given.first_line}-{end} of {len(lines)}: go on with first_line={end + 1}]"
    return "".join(shown) + (more if end < len(lines) else "") or "(The file is empty.)"


def _listed(folder: Folder, given: ListFiles) -> str:
    found: list[str] = []
    for path in folder.files(given.path, given.pattern):
        if len(found) == _LISTED:
            return "\n".join([*found, f"[and more: name a folder or a pattern; {_LISTED} are shown]"])
        found.append(folder.name(path))
    return "\n".join(found) or "(No such files.)"


def _search(folder: Folder, given: SearchFiles) -> str:
    found: list[str] = []
    for path in folder.files(given.path, given.pattern):
        for number, line in enumerate(folder.searchable(path).splitlines(), 1):
            if given.text in line:
                if len(found) == _HITS:
                    return "\n".join([*found, f"[and more: say it more exactly; {_HITS} are shown]"])
                found.append(f"{folder.name(path)}:{number}: {line.strip()[:_WIDEST]}")
    return "\n".join(found) or "(Nowhere.)"


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
