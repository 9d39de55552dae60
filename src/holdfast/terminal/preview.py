"""What a tool would do, as a person can judge it: the change, the command, the file."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from rich.text import Text

from ..agent.tools import Question
from .clean import one_line, shown_as_is
from .look import BAD, BOLD, DIM, GOOD, PLAIN

_AROUND = 2
"""Lines that stay, shown around those that change."""
_FIRST = 12
"""Lines of a new file that are shown."""
_MOST = 20_000


def preview(question: Question) -> Text:
    """In lines, with nothing hidden: control characters are visible, and what was left out is said."""
    given = question.call.object
    match question.tool, given:
        case "edit_file", {"path": str(path), "old": str(old), "new": str(new)}:
            lines = [Text(one_line(path), BOLD), *_change(old, new)]
        case "write_file", {"path": str(path), "content": str(content)}:
            lines = list(_file(path, content))
        case "run_command", {"command": str(command)}:
            lines = [Text(f"$ {shown_as_is(command)[:_MOST]}", BOLD)]
        case _:
            lines = [Text(shown_as_is(f"{name}: {value}")[:_MOST], PLAIN) for name, value in given.items()]
    return Text("\n").join(lines)


def _change(old: str, new: str) -> Iterator[Text]:
    before, after = (shown_as_is(text[:_MOST]).split("\n") for text in (old, new))
    groups = difflib.SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(_AROUND)
    for number, group in enumerate(groups):
        if number:
            yield Text("  ...", DIM)
        for kind, *place in group:
            first, last, new_first, new_last = place
            if kind == "equal":
                yield from (Text(f"  {line}", DIM) for line in before[first:last])
            else:
                yield from (Text(f"- {line}", BAD) for line in before[first:last])
                yield from (Text(f"+ {line}", GOOD) for line in after[new_first:new_last])


def _file(path: str, content: str) -> Iterator[Text]:
    lines = shown_as_is(content).removesuffix("\n").split("\n")
    size = f"{len(lines):,} line{'s' if len(lines) != 1 else ''}, {len(content):,} characters"
    yield Text.assemble((one_line(path), BOLD), (f"  {size}", DIM))
    yield from (Text(f"+ {line[:_MOST]}", GOOD) for line in lines[:_FIRST])
    if (left := len(lines) - _FIRST) > 0:
        yield Text(f"  and {left:,} more lines", DIM)
