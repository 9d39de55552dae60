"""Structured summaries: the sections, and how they are rendered."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import msgspec

from .structured_extra import ExtraSection, render_extra
from .structured_headings import (
    COMPLETED,
    CONSTRAINTS,
    CONTEXT,
    DECISIONS,
    ERRORS,
    LEFT_OUT_LINE,
    PENDING,
    STATE,
    TASK,
    TITLE,
    is_empty,
    is_empty_value,
    parse_heading,
)
from .summarizer import ANY_REASONING_TAG, FENCE

WORKING_ON = "Working on"
LAST_COMPLETED = "Last completed"
NEXT_STEP = "Next step"
COLUMNS = ("File/Component", "Action", "Description")
UNKNOWN_TASK = "Unknown task"


class CompletedWork(msgspec.Struct, frozen=True):
    """A row of the table of completed work."""

    subject: str
    action: str = ""
    description: str = ""

    @property
    def text(self) -> str:
        """The row as one line."""
        return " – ".join(filter(None, (self.subject, self.action, self.description)))


class RemovedItem(msgspec.Struct, frozen=True):
    """An item that the model removed, and its reason."""

    item: str
    reason: str


class SummarySections(msgspec.Struct, frozen=True, kw_only=True):
    """A structured summary without its task, which code adds."""

    completed: tuple[CompletedWork, ...] = ()
    decisions: tuple[str, ...] = ()
    working_on: str = ""
    last_completed: str = ""
    next_step: str = ""
    pending: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    context: tuple[str, ...] = ()
    extra: tuple[ExtraSection, ...] = ()
    """Sections that the model added, in its order."""
    removed: tuple[RemovedItem, ...] = ()
    """Only in a model's answer; never rendered."""
    left_out: int = 0
    """Items dropped for lack of room, over all rounds."""


def render_sections(sections: SummarySections, *, task: str, round: int) -> str:
    """Renders the whole summary: title, verbatim task, sections, and a line that counts earlier rounds."""
    parts = [
        f"## {TITLE} (Compaction Round {round})",
        f"### {TASK}\n{_fence_task(task) if task.strip() else UNKNOWN_TASK}",
        render_body(sections),
        f"This summary takes in {_pluralize(round - 1, 'earlier round')}." if round > 1 else "",
    ]
    return "\n\n".join(filter(None, parts))


def render_body(sections: SummarySections) -> str:
    """Renders the sections without title and task; the state of the work comes first, and nothing empty is shown."""
    state = (
        (WORKING_ON, sections.working_on),
        (LAST_COMPLETED, sections.last_completed),
        (NEXT_STEP, sections.next_step),
    )
    rows = [row for row in sections.completed if one_line(row.text)]
    blocks = [
        (STATE, _bullet_list(f"{label}: {escape_item(text)}" for label, text in state if one_line(text))),
        (COMPLETED, _table(rows) if rows else ""),
        (DECISIONS, _bullet_list(sections.decisions)),
        (PENDING, _bullet_list(sections.pending, "- [ ] ")),
        (ERRORS, _bullet_list(sections.errors)),
        (CONSTRAINTS, _bullet_list(sections.constraints)),
        (CONTEXT, _bullet_list(sections.context)),
    ]
    parts = [*(f"### {title}\n{text}" for title, text in blocks if text), render_extra(sections.extra)]
    if sections.left_out:
        parts.append(f"… and {_pluralize(sections.left_out, 'earlier item')}: see the archive")
    return "\n\n".join(filter(None, parts))


def _pluralize(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number > 1 else ''}"


def _fence_task(task: str) -> str:
    """Puts a task with headings, fences or reasoning tags into a code fence, so that the parser ignores them."""
    if not any(parse_heading(line) or FENCE.match(line) or ANY_REASONING_TAG.match(line) for line in task.splitlines()):
        return task
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", task) or [""]))
    return f"{fence}\n{task}\n{fence}"


def _bullet_list(items: Iterable[str], bullet: str = "- ") -> str:
    return "\n".join(bullet + escape_item(item) for item in items if one_line(item))


def _table(rows: Iterable[CompletedWork]) -> str:
    lines = [
        COLUMNS,
        *((escape_cell(row.subject), escape_cell(row.action), escape_cell(row.description)) for row in rows),
    ]
    head, *written = [f"| {' | '.join(cells)} |" for cells in lines]
    return "\n".join([head, "|---" * len(COLUMNS) + "|", *written])


def escape_cell(text: str) -> str:
    return re.sub(r"(\\*)\|", r"\1\1\\|", escape_item(text, is_empty_value))


def one_line(text: str) -> str:
    """Joins the lines of a text, since an item is one line."""
    return " ".join(line.strip() for line in text.splitlines()).strip()


def escape_item(text: str, empty: Callable[[str], bool] = is_empty) -> str:
    """Puts a backslash before an item that the parser would take for "none", a ruler or a count."""
    text = one_line(text)
    return f"\\{text}" if _is_structure(text.lstrip("\\"), empty) else text


def unescape_item(text: str, empty: Callable[[str], bool] = is_empty) -> str:
    return text[1:] if text.startswith("\\") and _is_structure(text.lstrip("\\"), empty) else text


def _is_structure(text: str, empty: Callable[[str], bool]) -> bool:
    return bool(empty(text) or LEFT_OUT_LINE.fullmatch(text))
