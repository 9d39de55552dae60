"""Writing a page into the room there is."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from .choose import Choice
from .headings import COMMANDS, SAID, USER
from .lines import Line
from .page import TITLES, Part, Writer, archived, in_order, of_files, part_of
from .shortening import BRIEF, CITED, READABLE, quoted, shortened
from .speakers import task_in

_USERS, _CLOSINGS = 0.20, 0.05
"""What part of the room may be what was said."""
_ALIKE = 0.8
"""With less of the room that lines were chosen for, what they were chosen beside is no longer the same."""


class Page(msgspec.Struct, frozen=True):
    """The written ledger, and lines that go into parts of messages which stay."""

    text: str
    beside: dict[Part, list[Line]]


class Sheet:
    """A page in the making, with nothing on it that is visible anyway: how much room it has is tried out.

    `visible` is the text that stays beside the page, `staying` the numbers of the messages it stands in,
    `cut_short` the parts of them, results, of which only chosen lines are shown.
    """

    def __init__(
        self,
        writer: Writer,
        visible: str = "",
        staying: Collection[int] = (),
        cut_short: Collection[Part] = (),
        intro: str = "",
    ) -> None:
        self._writer = writer
        self._visible, self._staying, self._cut_short, self._intro = visible, staying, cut_short, intro
        self._choice: Choice | None = None
        self._room = 0

    def write(self, room: int) -> Page:
        """At most about so many characters. With a little less room than before, fewer of the same lines."""
        writer, notebook, visible, staying = self._writer, self._writer.notebook, self._visible, self._staying
        task = task_in(notebook.users)
        asked = archived((line for line in notebook.users if line is not task), staying)
        users = shortened(asked, int(room * _USERS), READABLE)
        concluded = shortened(archived(notebook.closings, staying), int(room * _CLOSINGS), 2 * BRIEF)
        wrong = writer.last_errors(room, visible)
        opening = [self._intro, *writer.task(room, staying)]
        fixed = [*writer.plan(room), *writer.calls(room, staying), *writer.errors(wrong), *writer.files(room, staying)]
        in_files, again = of_files(wrong), writer.run_again(room, visible)
        left = room - sum(len(section) + 2 for section in opening + fixed) - TITLES
        left -= sum(len(text) + CITED for text in [*again, *(line.text for line in in_files)])
        left -= sum(len(text) + CITED for _, text in users + concluded)
        if self._choice is None or not _ALIKE * self._room < room <= self._room:
            told = [*opening, *fixed, *again, *(line.text for line in in_files)]
            known = "\n".join([visible, *told, *(text for _, text in users + concluded)])
            self._choice, self._room = writer.choice(left, known, staying, self._cut_short, in_files), room
        chosen = in_order([*in_files, *self._choice.within(left)])
        apart = [line for line in chosen if part_of(line) not in self._cut_short]
        of_task = [line for line in apart if task and line.voice == "user" and line.place == task.place]
        opening[-1] = "\n".join([opening[-1], *(quoted(line.text) for line in of_task)])
        apart = [line for line in apart if line not in of_task]
        users += [(line.place, quoted(line.text.strip())) for line in apart if line.voice == "user"]
        concluded += [(line.place, quoted(line.text.strip())) for line in apart if line.voice == "said"]
        again += [line.text for line in apart if line.source == COMMANDS]
        fixed = [*opening, *writer.told(USER, users, writer.untold(asked, users)), *fixed]
        fixed += [*writer.commands(again), *writer.told(SAID, concluded)]
        fixed += writer.at_hand(
            [line for line in apart if line.voice not in ("user", "said") and line.source != COMMANDS]
        )
        return Page("\n\n".join(fixed), _by_part(line for line in chosen if part_of(line) in self._cut_short))


def _by_part(lines: Iterable[Line]) -> dict[Part, list[Line]]:
    found: dict[Part, list[Line]] = {}
    for line in sorted(lines, key=lambda line: line.number):
        found.setdefault(part_of(line), []).append(line)
    return found
