"""What an agent had to know by heart for a tool call: not what it newly wrote, but what it referred to."""

from __future__ import annotations

import re
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
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?[^\n]*\n(.*?)\n\s*\1\b", re.DOTALL)
_PATCH = re.compile(r"\*\*\* Begin Patch\n(.*?)\*\*\* End Patch", re.DOTALL)
_PATCHED = re.compile(r"^\*\*\* (?:Update|Delete|Add) File: (.+)$", re.MULTILINE)


def remembered(call: ToolCall) -> Iterator[str]:
    """The texts of a call's arguments that refer to what was there before."""
    found = [(key, value) for key, value in arguments(call, closed=_NEW) if key not in _CHOSEN]
    coding = any(key in _OLD or key in _COMMAND or key in _PATH or key in _SEARCH for key, _ in found)
    for key, value in found:
        if key in _NEW or not value:
            if patch := _PATCH.search(value):
                yield "\n".join(_old_side(patch[1]))
        elif key in _COMMAND:
            yield _without_new_text(value)
        elif key in _OLD or key in _PATH or key in _SEARCH or not coding:
            if patch := _PATCH.search(value):
                yield "\n".join(_old_side(patch[1]))
            elif len(value) <= 400 or key in _OLD:
                yield value


def _without_new_text(command: str) -> str:
    """A command without what it writes into files and messages; of a patch, the side that was there."""
    if patch := _PATCH.search(command):
        return "\n".join(_old_side(patch[1]))
    return _HEREDOC.sub("", command)


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
        elif patch := _PATCH.search(value):
            yield from _telling("\n".join(line[1:] for line in patch[1].splitlines() if line[:1] in ("-", " ")))


def _telling(text: str) -> Iterator[str]:
    """Lines that say more than a bracket."""
    return (line for line in lines_of(text) if len(line) >= 12)


def modified_files(call: ToolCall) -> Iterator[str]:
    found = dict(arguments(call))
    if _OLD & found.keys() or call.name.lower() in ("write", "create", "write_file", "edit", "multiedit"):
        yield from (found[key] for key in ("file_path", "path", "notebook_path", "filePath") if key in found)
    for value in found.values():
        if patch := _PATCH.search(value):
            yield from _PATCHED.findall(patch[1])


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
