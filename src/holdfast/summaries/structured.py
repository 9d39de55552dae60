"""Structured summaries: the sections, how they are rendered, and what of a rendered one is read back.

Sections that a model adds to the template are kept under their own headings, one level deeper than ours. A text that
the reader would take for structure gets a backslash, so that no text of a model can pass for a heading of ours or end
the summary.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import msgspec

from . import structured_headings as headings
from .log_section import LOG_HEADING
from .structured_headings import closing_fence, is_empty, is_empty_value, parse_heading, split_at_headings
from .summarizer import ANY_REASONING_TAG, FENCE

WORKING_ON = "Working on"
LAST_COMPLETED = "Last completed"
NEXT_STEP = "Next step"
LABELS = {"working_on": WORKING_ON, "last_completed": LAST_COMPLETED, "next_step": NEXT_STEP}
"""Labels of the current state, by the field that each names."""
COLUMNS = ("File/Component", "Action", "Description")
UNKNOWN_TASK = "Unknown task"
OVERVIEW = "Overview"
"""Title of text that has no heading of its own."""
EXTRA_LEVEL = 4
"""Level of the headings of added sections."""


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


class ExtraSection(msgspec.Struct, frozen=True):
    """A section outside the template."""

    title: str
    items: tuple[str, ...]
    """Lines as they were written; a code block is one item of several lines."""


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
        f"## {headings.TITLE} (Compaction Round {round})",
        f"### {headings.TASK}\n{_fence_task(task) if task.strip() else UNKNOWN_TASK}",
        render_body(sections),
        f"This summary takes in {_pluralize(round - 1, 'earlier round')}." if round > 1 else "",
    ]
    return "\n\n".join(filter(None, parts))


def render_body(sections: SummarySections) -> str:
    """Renders the sections without title and task; the state of the work comes first, and nothing empty is shown."""
    state = [f"{label}: {escape_item(text)}" for label, text in labelled_state(sections) if one_line(text)]
    rows = [row for row in sections.completed if one_line(row.text)]
    blocks = [
        (headings.STATE, _bullet_list(state)),
        (headings.COMPLETED, _table(rows) if rows else ""),
        (headings.DECISIONS, _bullet_list(sections.decisions)),
        (headings.PENDING, _bullet_list(sections.pending, "- [ ] ")),
        (headings.ERRORS, _bullet_list(sections.errors)),
        (headings.CONSTRAINTS, _bullet_list(sections.constraints)),
        (headings.CONTEXT, _bullet_list(sections.context)),
    ]
    added = ["\n".join([f"{'#' * EXTRA_LEVEL} {one.title}", *map(_added_item, one.items)]) for one in sections.extra]
    parts = [
        *(f"### {title}\n{text}" for title, text in blocks if text),
        *([f"### {headings.OTHER}", *added] if added else ()),
    ]
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


def one_line(text: str) -> str:
    """Joins the lines of a text, since an item is one line."""
    return " ".join(line.strip() for line in text.splitlines()).strip()


def labelled_state(sections: SummarySections) -> list[tuple[str, str]]:
    """Returns the texts of the current state with their labels."""
    labels, texts = LABELS.values(), (sections.working_on, sections.last_completed, sections.next_step)
    return list(zip(labels, texts, strict=True))


# -- texts that look like structure ---------------------------------------------------------------------------------


def escape(text: str, is_structure: Callable[[str], bool]) -> str:
    """Puts a backslash before a text that the reader would take for structure."""
    bare = text.lstrip()
    return f"{text[: len(text) - len(bare)]}\\{bare}" if is_structure(bare.lstrip("\\")) else text


def unescape(text: str, is_structure: Callable[[str], bool]) -> str:
    """Removes the backslash of `escape`."""
    bare = text.lstrip()
    escaped = bare.startswith("\\") and is_structure(bare.lstrip("\\"))
    return text[: len(text) - len(bare)] + bare[1:] if escaped else text


def is_no_item(text: str) -> bool:
    """Returns whether the reader would take an item for "none", a ruler or a count."""
    return is_empty(text) or headings.LEFT_OUT_LINE.fullmatch(text) is not None


def is_no_cell(text: str) -> bool:
    """Returns whether the reader would take a cell for one without a value."""
    return is_empty_value(text) or headings.LEFT_OUT_LINE.fullmatch(text) is not None


def is_no_line(text: str) -> bool:
    """Returns whether the reader would take a line of an added section for something else than its text."""
    heading = parse_heading(text)
    if heading and (heading.section or heading.level <= EXTRA_LEVEL):
        return True
    bare = strip_bullet(text)
    return bool(
        FENCE.match(text)
        or headings.NOISE.match(text)
        or ANY_REASONING_TAG.match(text)
        or headings.CLOSING_LINE.fullmatch(text.strip())
        or headings.LEFT_OUT_LINE.fullmatch(bare)
    )


def escape_item(text: str) -> str:
    """Returns an item on one line, escaped."""
    return escape(one_line(text), is_no_item)


def escape_cell(text: str) -> str:
    """Returns a cell on one line, escaped with its pipes."""
    return re.sub(r"(\\*)\|", r"\1\1\\|", escape(one_line(text), is_no_cell))


def strip_bullet(text: str) -> str:
    """Returns an item without its bullet."""
    return bullet[2].strip() if (bullet := headings.BULLET.match(text)) else text.strip()


def _added_item(item: str) -> str:
    lines = item.splitlines()
    return item if is_code_block(lines) else "\n".join(escape(line, is_no_line) for line in lines)


def is_code_block(lines: Sequence[str]) -> bool:
    """Returns whether a fence opens in the first line and closes in the last one, so that the reader skips the rest."""
    fence = FENCE.match(lines[0]) if lines else None
    return bool(
        fence
        and closing_fence(lines, 1, fence[1]) == len(lines) - 1
        and not any(line.startswith(LOG_HEADING) for line in lines)
    )


# -- reading back ---------------------------------------------------------------------------------------------------

_TITLE_LEVEL = 2


def summary_round(text: str) -> int:
    """Returns the round in the title of a rendered summary; 0 if it has no such title."""
    found = map(parse_heading, text.splitlines()) if headings.OWN_TITLE.search(text) else ()
    titles = (one.title for one in found if one and headings.OWN_TITLE.fullmatch(one.title))
    return int(re.findall(r"\d+", next(titles, "0"))[0])


def rendered_part(text: str) -> str:
    """Returns a rendered summary without the excerpts that follow it: its own sections are deeper than its title."""
    kept, inside, is_ours = list[str](), True, False
    for heading, lines in split_at_headings(text):
        if heading and heading.level <= _TITLE_LEVEL:
            inside = heading.level == _TITLE_LEVEL and headings.OWN_TITLE.fullmatch(heading.title) is not None
            is_ours |= inside
        kept += lines if inside else ()
    return "\n".join(kept) if is_ours else text


def original_task(text: str) -> str:
    """Returns the task that a rendered summary shows verbatim, without the fence around it; empty if it shows none."""
    level, shown = 0, None
    for heading, lines in split_at_headings(text):
        if shown is not None and heading and heading.level <= level:
            break
        if shown is not None:
            shown += lines
        elif heading and not level and headings.OWN_TITLE.fullmatch(heading.title):
            level = heading.level + 1
        elif heading and heading.level == level and heading.title == headings.TASK:
            shown = lines[1:]
    task = "\n".join(shown or ()).strip()
    lines = task.splitlines()
    fence = FENCE.match(lines[0]) if lines else None
    if fence and (end := closing_fence(lines, 1, fence[1])) is not None:
        return "\n".join(lines[1:end])
    return "" if task == UNKNOWN_TASK else task
