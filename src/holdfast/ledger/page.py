"""Renders a ledger as a page of notes that fits a token budget."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from . import headings
from .lines import LedgerLine, find_task
from .sections import (
    CLOSINGS_SHARE,
    HEADING_CHARS,
    MAX_USERS_SHARE,
    USERS_SHARE,
    PartKey,
    SectionRenderer,
    archived_lines,
    only_file_lines,
    part_key,
    sort_by_position,
)
from .select import Selection
from .text import BRIEF_CHARS, CITATION_CHARS, READABLE_CHARS, clip_evenly, quote_structure

_MAX_SECTIONS_SCALE = 2
"""Beside a long trail, the sections are at most so many times larger than on a page without one."""
_REUSE_SHARE = 0.8
"""Two rooms share a selection if the smaller is more than this share of the larger; else the other sections differ too
much."""


class LedgerPage(msgspec.Struct, frozen=True):
    """A rendered page, and the lines that replace shortened tool results among the kept messages."""

    text: str
    result_lines: dict[PartKey, list[LedgerLine]]
    selection: Selection | None = None
    """Where its lines come from, within `room` characters."""
    room: int = 0


class PageRenderer:
    """Renders pages of varying size from one history, without repeating text that stays visible.

    `visible` is the text of the kept messages, `staying` their numbers, `shortened` those of their tool results of
    which only selected lines are shown. The sections' shares are those of the page and of `trail_chars` together.
    """

    def __init__(
        self,
        sections: SectionRenderer,
        visible: str = "",
        staying: Collection[int] = (),
        shortened: Collection[PartKey] = (),
        intro: str = "",
        trail_chars: int = 0,
    ) -> None:
        self._sections = sections
        self._trail_chars = trail_chars
        self._visible, self._staying, self._shortened, self._intro = visible, staying, shortened, intro
        self._selection: Selection | None = None
        self._room = 0

    def render(self, room: int) -> LedgerPage:
        """Renders a page of about `room` characters; slightly less or more room than before reuses the selection."""
        sections, history = self._sections, self._sections.history
        visible, staying = self._visible, self._staying
        whole = min(room + self._trail_chars, _MAX_SECTIONS_SCALE * room)
        task = find_task(history.users)
        requests = archived_lines((line for line in history.users if line is not task), staying)
        users = clip_evenly(
            requests,
            int(whole * USERS_SHARE),
            READABLE_CHARS,
            sections.important_lines,
            most_room=int(whole * MAX_USERS_SHARE),
        )
        conclusions = clip_evenly(
            archived_lines(history.closings, staying), int(whole * CLOSINGS_SHARE), 2 * BRIEF_CHARS
        )
        recent = sections.recent_errors(whole, visible)
        in_results = [line for line in recent if part_key(line) in self._shortened]
        errors = [line for line in recent if part_key(line) not in self._shortened]
        opening = [self._intro, *sections.task(whole, staying)]
        shown = "\n".join([visible, *opening, *(text for _, text in users)])
        fixed = [
            *sections.approved(whole, shown),
            *sections.plan(whole),
            *sections.calls(whole, staying),
            *sections.errors(errors),
            *sections.files(whole, staying),
            *sections.found(whole, visible),
        ]
        steps = sections.steps(whole, staying)
        in_place = [*only_file_lines(errors), *in_results]
        commands = sections.likely_commands(whole, visible, "\n".join(steps))
        left = room - sum(len(section) + 2 for section in opening + fixed + steps) - HEADING_CHARS
        left -= sum(len(text) + CITATION_CHARS for text in [*commands, *(line.text for line in in_place)])
        left -= sum(len(text) + CITATION_CHARS for _, text in users + conclusions)
        if self._selection is None or not _REUSE_SHARE * self._room < room < self._room / _REUSE_SHARE:
            rest = [*fixed, *steps, *commands, *(line.text for line in in_place), *(text for _, text in conclusions)]
            known = "\n".join([shown, *rest])
            self._selection, self._room = sections.select(left, known, staying, self._shortened, in_place), room
        selected = sort_by_position([*in_place, *self._selection.within(left)])
        listed = [line for line in selected if part_key(line) not in self._shortened]
        of_task = [line for line in listed if task and line.kind == "user" and line.place == task.place]
        opening[-1] = "\n".join([opening[-1], *(quote_structure(line.text) for line in of_task)])
        listed = [line for line in listed if line not in of_task]
        users += [(line.place, quote_structure(line.text.strip())) for line in listed if line.kind == "user"]
        conclusions += [(line.place, quote_structure(line.text.strip())) for line in listed if line.kind == "said"]
        commands += [line.text for line in listed if line.source == headings.COMMANDS]
        fixed = [
            *opening,
            *sections.messages(headings.USER_MESSAGES, users, sections.omitted_users(requests, users)),
            *fixed,
        ]
        fixed += [*sections.commands(commands), *sections.messages(headings.CONCLUSIONS, conclusions)]
        fixed += sections.excerpts(
            [line for line in listed if line.kind not in ("user", "said") and line.source != headings.COMMANDS]
        )
        fixed += steps
        result_lines: dict[PartKey, list[LedgerLine]] = {}
        for line in sorted(selected, key=lambda line: line.number):
            if (part := part_key(line)) in self._shortened:
                result_lines.setdefault(part, []).append(line)
        return LedgerPage(
            "\n\n".join(fixed),
            result_lines,
            self._selection,
            left,
        )
