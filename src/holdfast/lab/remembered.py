"""What an agent had to know by heart for a tool call: not what it newly wrote, but what it referred to."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

from ..messages import ToolCall
from .reading import arguments, lines_of

_OLD = frozenset("old_string old_str oldText old_text old search_text".split())
_PATH = frozenset("file_path path notebook_path filePath filename file paths files dir directory workdir cwd".split())
_COMMAND = frozenset("command cmd script".split())
_SEARCH = frozenset("pattern query regex glob include search symbol url".split())
_NEW = frozenset(
    "new_string new_str newText new_text content contents text body prompt description title subject message plan"
    " todos activeForm thought explanation chars input insert_text file_text code".split()
)
_CHOSEN = frozenset("status timeout yield_time_ms max_output_tokens".split())
"""What an agent decides at each call: nobody has to remember it."""
_OPENED = re.compile(r"<<-?\s*+['\"]?(\w++)")
_FIRST_WORD = re.compile(r"^[^\S\n]*+(\w++)", re.MULTILINE)
_PATCHED = re.compile(r"^\*\*\* (?:Update|Delete|Add) File: (.+)$", re.MULTILINE)


def remembered(call: ToolCall) -> Iterator[str]:
    """The texts of a call's arguments that refer to what was there before."""
    found = [(key, value) for key, value in arguments(call, closed=_NEW) if key not in _CHOSEN]
    coding = any(key in _OLD or key in _COMMAND or key in _PATH or key in _SEARCH for key, _ in found)
    for key, value in found:
        if key in _NEW or not value:
            if (patch := _patch(value)) is not None:
                yield "\n".join(_old_side(patch))
        elif key in _COMMAND:
            yield _without_new_text(value)
        elif key in _OLD or key in _PATH or key in _SEARCH or not coding:
            if (patch := _patch(value)) is not None:
                yield "\n".join(_old_side(patch))
            elif len(value) <= 400 or key in _OLD:
                yield value


def _without_new_text(command: str) -> str:
    """A command without what it writes into files and messages; of a patch, the side that was there."""
    if (patch := _patch(command)) is not None:
        return "\n".join(_old_side(patch))
    return "".join(_outside_heredocs(command))


def _outside_heredocs(command: str) -> Iterator[str]:
    """A document goes on to the next line that begins with its word; one that never ends is none."""
    lines: dict[str, list[tuple[int, ...]]] = {}
    for found in _FIRST_WORD.finditer(command):
        lines.setdefault(found[1], []).append(found.span())
    said = line_end = 0
    for opened in _OPENED.finditer(command):
        if line_end < opened.end():
            line_end = command.find("\n", opened.end())
        if line_end < 0:
            break
        ends = lines.get(opened[1], [])
        place = bisect_left(ends, (line_end + 2,))
        if opened.start() >= said and place < len(ends):
            yield command[said : opened.start()]
            said = ends[place][1]
    yield command[said:]


def _patch(text: str) -> str | None:
    """What stands between the marks of a patch."""
    _, _, begun = text.partition("*** Begin Patch\n")
    patch, ended, _ = begun.partition("*** End Patch")
    return patch if ended else None


def _old_side(patch: str) -> Iterator[str]:
    for line in patch.splitlines():
        if line.startswith("*** ") and not line.startswith("*** Add"):
            yield line.partition(": ")[2]
        elif line[:1] in ("-", " "):
            yield line[1:]


def edited_lines(call: ToolCall) -> Iterator[str]:
    """The lines that an edit names as the old text: they must be known exactly."""
    for key, value in arguments(call):
        if key in _OLD:
            yield from _telling(value)
        elif (patch := _patch(value)) is not None:
            yield from _telling("\n".join(line[1:] for line in patch.splitlines() if line[:1] in ("-", " ")))


def _telling(text: str) -> Iterator[str]:
    """Lines that say more than a bracket."""
    return (line for line in lines_of(text) if len(line) >= 12)


def modified_files(call: ToolCall) -> Iterator[str]:
    found = dict(arguments(call))
    if _OLD & found.keys() or call.name.lower() in ("write", "create", "write_file", "edit", "multiedit"):
        yield from (found[key] for key in ("file_path", "path", "notebook_path", "filePath") if key in found)
    for value in found.values():
        if (patch := _patch(value)) is not None:
            yield from _PATCHED.findall(patch)


def read_files(call: ToolCall) -> Iterator[str]:
    found = dict(arguments(call))
    if call.name.lower() in ("read", "view", "read_file", "cat", "open_file"):
        yield from (found[key] for key in ("file_path", "path", "filePath") if key in found)


def command(call: ToolCall) -> str | None:
    """A command of one line, as it was run."""
    for key, value in arguments(call):
        if key in _COMMAND and "\n" not in (said := value.strip()) and said:
            return said
    return None
