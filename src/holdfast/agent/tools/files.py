"""The agent's tools: read, search, edit and write files of one folder, and run commands in it."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TextIO

import anyio
import anyio.to_thread
import msgspec

from ...errors import InvalidInput
from ...io.files import write_file_atomically
from ...io.processes import run_shell
from ...messages import Json, Tool

_IGNORED_FOLDERS = frozenset((".git", ".hg", ".venv", "node_modules", "__pycache__"))
_SNIFF_BYTES = 8_192
"""Bytes read to detect binary files."""


class WorkingFolder:
    """The one folder that the agent may use; resolves paths and rejects those, or links, that lead outside."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root).resolve()
        if not self.root.is_dir():
            raise InvalidInput(f"{root} is not a folder: name an existing one to work in.")

    def resolve(self, path: str) -> Path:
        """Returns the real path; raises `InvalidInput` if it is outside the folder."""
        try:
            found = (self.root / Path(path).expanduser()).resolve()
        except (OSError, RuntimeError, ValueError) as problem:
            raise InvalidInput(f"{path!r} is not a valid path ({problem}).") from None
        if found != self.root and self.root not in found.parents:
            raise InvalidInput(f"{path} is outside the working folder: only files in {self.root} can be used.")
        return found

    def display_name(self, path: Path) -> str:
        """Returns the relative path; bytes that are not UTF-8 are escaped as in a shell, e.g. caf\\xe9."""
        return os.fsencode(path.relative_to(self.root).as_posix()).decode(errors="backslashreplace")

    def files(self, path: str, pattern: str) -> Iterator[Path]:
        """Yields the files below a path that match a pattern, sorted, without `_IGNORED_FOLDERS` and links.

        An empty pattern matches every file.
        """
        start = self.resolve(path)
        if start.is_file():
            yield start
            return
        if not start.is_dir():
            raise InvalidInput(f"There is no {path} in the working folder.")
        wanted = pattern if Path(pattern).parts else "*"
        for place, folders, names in os.walk(start):
            folders[:] = sorted(name for name in folders if name not in _IGNORED_FOLDERS)
            for name in sorted(names):
                found = Path(place) / name
                if found.match(wanted) and not found.is_symlink():
                    yield found

    def read_text(self, path: Path, errors: str) -> str:
        """Returns the whole text; `errors` handles bytes that are not UTF-8."""
        self._require_text_file(path)
        return path.read_bytes().decode(errors=errors)

    def open_text(self, path: Path) -> TextIO:
        """Opens a file for reading line by line, with its line endings unchanged."""
        self._require_text_file(path)
        return path.open(encoding="utf-8", errors="replace", newline="\n")

    def _require_text_file(self, path: Path) -> None:
        if not path.is_file():
            raise InvalidInput(f"There is no file {self.display_name(path)}: list the files to find it.")
        with path.open("rb") as file:
            if b"\0" in file.read(_SNIFF_BYTES):
                raise InvalidInput(f"{self.display_name(path)} is not a text file: it cannot be read with this tool.")


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


class AgentTool(msgspec.Struct, frozen=True):
    """A tool: name, description, argument type and function."""

    name: str
    about: str
    arguments: type[ToolArguments]
    run: Callable[[Any], Awaitable[str]]
    """Takes the arguments, or the change that `plan` made of them."""
    changes: bool = False
    """Whether it changes something, so that the user is asked first."""
    plan: Callable[[Any], Awaitable[PlannedChange]] | None = None
    """Makes the change of a file that the arguments ask for, without writing it."""

    @property
    def definition(self) -> Tool:
        """The tool definition to send to a model."""
        return Tool(self.name, self.about, _schema(self.arguments))


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
        return await anyio.to_thread.run_sync(_read, folder, given, abandon_on_cancel=True)

    async def list_(given: ListFiles) -> str:
        return await anyio.to_thread.run_sync(_list, folder, given, abandon_on_cancel=True)

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


def _read(folder: WorkingFolder, given: ReadFile) -> str:
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


def _list(folder: WorkingFolder, given: ListFiles) -> str:
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
    before = _content(path)
    done = f"{'Wrote' if before is None else 'Replaced'} {given.path}."
    return PlannedChange(path, folder.display_name(path), before, given.content.encode(), done)


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _write_change(folder: WorkingFolder, change: PlannedChange) -> str:
    """Writes the file if it is still as it was shown to the user."""
    if folder.resolve(str(change.path)) != change.path or _content(change.path) != change.before:
        raise InvalidInput(f"{change.name} has changed since the user was asked, and was not written: read it again.")
    change.path.parent.mkdir(parents=True, exist_ok=True)
    write_file_atomically(change.path, change.after)
    return change.done


MAX_COMMAND_SECONDS = 600


class RunCommand(ToolArguments, frozen=True):
    command: Annotated[str, msgspec.Meta(description="A line for the shell.", min_length=1)]
    seconds: Annotated[int, msgspec.Meta(description="How long it may take.", ge=1, le=MAX_COMMAND_SECONDS)] = 120


def command_tool(folder: WorkingFolder) -> AgentTool:
    """Returns a tool that runs shell commands in the folder."""

    async def run(given: RunCommand) -> str:
        if folder.root.resolve() != folder.root:
            raise InvalidInput("The working folder was replaced by a link, so nothing was run.")
        with anyio.move_on_after(given.seconds):
            result = await run_shell(given.command, cwd=folder.root)
            output = _clip_output("\n".join(filter(None, (result.stdout, result.stderr))))
            return f"{output}\n[exit code {result.exit_code}]".strip()
        raise InvalidInput(
            f"The command took longer than {given.seconds} s and was stopped, with all processes that it started."
        )

    about = "Run a command in the working folder and read what it prints. It cannot ask anything back."
    return AgentTool("run_command", about, RunCommand, run, changes=True)


def _clip_output(text: str) -> str:
    """Keeps the head and the tail: errors are usually at the end."""
    if len(text) <= MAX_CHARACTERS:
        return text
    half = MAX_CHARACTERS // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[-half:]}"
