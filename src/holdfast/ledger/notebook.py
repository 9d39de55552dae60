"""Reading a history once, in order, and noting what a later step may need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

from msgspec.structs import replace

from ..messages import Media, Message, Text, ToolCall, ToolResult, is_framed, media_in_words
from . import bounds
from .alarms import Answer, last_errors
from .answers import did_nothing, has_failed, is_made, is_refused, said_by_user
from .changes import Change
from .deeds import Deed, called, deed_of
from .entries import Command, Ledger
from .file_lines import FileLines
from .lines import Line, Voice, lines_of
from .matches import match_in
from .names import NamesOnce, exact_names_in
from .seen_files import SeenFiles
from .shell_files import shows_versions
from .shortening import BRIEF, clipped
from .sightings import sight, use
from .speakers import by_speaker, is_silent
from .steps import Steps

_USER_KEPT = 4_000
_SYSTEM = "(system) "
"""Before what was said in mid-conversation by whoever builds the agent: it stands as the user's words do."""


class Notebook:
    """Everything noted so far. Reading on adds to it; nothing is read twice."""

    def __init__(self, earlier: Ledger | None = None) -> None:
        known = earlier or Ledger()
        self.time = known.time
        self.depth = known.depth
        self.names = dict(known.names)
        self.named = NamesOnce()
        self.lines = {line.text: line for line in known.lines}
        self.users = list(known.users)
        self.untold, self.untold_from = known.untold, known.untold_from
        self.closings = list(known.closings)
        self.files = SeenFiles(known.files)
        self.commands = {command.text: command for command in known.commands}
        self.errors = {line.text.strip(): line for line in known.errors}
        self.attached = list(known.attached)
        self.steps = Steps(known.plan, known.plan_place, told=known.plan_told)
        self.calls, self.calls_untold = list(known.calls), known.calls_untold
        self._answers: list[Answer] = []
        self._deeds: dict[str, tuple[Deed, int]] = {}
        """Calls that wait for their answer, and where they stand."""
        self._in_files = FileLines(known.lines)
        self._last_said: Line | None = None

    def read(self, messages: Iterable[Message], places: Sequence[int]) -> None:
        """Note what these messages say and do; `places` are their numbers, to point at."""
        for message, place in zip(messages, places, strict=True):
            if is_framed(message):
                continue
            if texts := [part.text for part in message.parts if isinstance(part, Text)]:
                self._say(message.role, texts, place)
            for at, part in enumerate(message.parts):
                if isinstance(part, ToolCall):
                    self._do(part, place)
                elif isinstance(part, ToolResult):
                    self._answer(part, place, at)
                elif isinstance(part, Media):
                    self._attach(part, place)
            if message.role == "assistant" and not message.calls:
                self.time += 1
            if self._is_full():
                self._forget()
        self.errors = last_errors(self._answers, self.errors)
        self._answers.clear()

    def _is_full(self) -> bool:
        return (
            bounds.is_over(self.lines, bounds.LINES)
            or bounds.is_over(self.names, bounds.NAMES)
            or bounds.is_over(self.users, bounds.SAID)
            or bounds.is_over(self.files, bounds.SUBJECTS)
            or bounds.is_over(self.commands, bounds.SUBJECTS)
        )

    def _forget(self) -> None:
        """Let go of what was met longest ago."""
        self.lines = bounds.newest(self.lines, bounds.LINES)
        self.names = bounds.needed(self.names, bounds.NAMES)
        self.users = bounds.ends(self.users, bounds.SAID)
        self.closings = bounds.ends(self.closings, bounds.SAID)
        self.files = SeenFiles(bounds.newest(self.files, bounds.SUBJECTS).values())
        self.commands = bounds.newest(self.commands, bounds.SUBJECTS)
        self.named = NamesOnce()
        self._in_files = FileLines(self.lines.values())

    def ledger(self) -> Ledger:
        """All of it as it stands, apart from what is read from now on."""
        return Ledger(
            time=self.time,
            depth=self.depth,
            users=list(self.users),
            untold=self.untold,
            untold_from=self.untold_from,
            closings=[*self.closings, *([self._last_said] if self._last_said else ())],
            plan=list(self.steps.all),
            plan_place=self.steps.place,
            plan_told=self.steps.told,
            calls=list(self.calls),
            calls_untold=self.calls_untold,
            files=list(map(replace, self.files.values())),
            commands=list(map(replace, self.commands.values())),
            errors=list(self.errors.values()),
            attached=list(self.attached),
            lines=list(self.lines.values()),
            names=dict(zip(self.names, map(replace, self.names.values()), strict=True)),
        )

    def _say(self, role: str, texts: Sequence[str], place: int) -> None:
        if role == "assistant":
            said = "\n\n".join(texts)
            if is_silent(said):
                return
            self._last_said = Line(said[:_USER_KEPT], "said", "", place, 0, self.time)
            self._take(said, "said", "", place)
        elif role != "system" or self.users:
            for text in texts:
                own, others = by_speaker(text)
                if others.strip():
                    self._take(others, "output", "", place)
                if own:
                    self._hear(f"{_SYSTEM}{own}" if role == "system" else own, place)

    def _hear(self, text: str, place: int) -> None:
        if self._last_said is not None:
            self.closings.append(self._last_said)
            self._last_said = None
        self.calls, self.calls_untold = [], 0
        self.users.append(Line(clipped(text, _USER_KEPT), "user", "", place, 0, self.time))
        self._take(text, "user", "", place)

    def _do(self, call: ToolCall, place: int) -> None:
        self.time += 1
        self._last_said = None
        deed = deed_of(call)
        planned = self.steps.follow(deed, place)
        if deed.kind == "progress" and not planned:
            deed = Deed("other", deed.tool, deed.subject)
        if deed.changes:
            deed = replace(deed, changes=tuple(self.files.concerned(deed.changes)))
        self._deeds[call.id] = deed, place
        for change in deed.changes:
            self._touch(change, place)
        if not planned and deed.kind not in ("edit", "write"):
            use(self.names, exact_names_in(clipped(deed.subject, _USER_KEPT)), self.time)
            if deed.kind == "read":
                self.files.meet(deed.subject, place, self.time)
            if command := deed.command.strip():
                note = self.commands[command] = self.commands.pop(command, Command(command))
                note.runs, note.place, note.time = note.runs + 1, place, self.time
            elif deed.kind != "read":
                for number, line, _ in lines_of(deed.subject):
                    if line not in self.lines:
                        self.lines[line] = Line(line, "asked", deed.tool, place, number, self.time, self.depth)

    def _touch(self, change: Change, place: int) -> None:
        """Note what a call refers to; whether it changes anything, its answer says."""
        self.files.meet(change.path, place, self.time)
        use(self.names, exact_names_in(change.path), self.time)
        for _, line, _ in lines_of(change.old):
            use(self.names, self.named.exact(line), self.time)

    def _change(self, change: Change, place: int) -> None:
        note = self.files.meet(change.path, place, self.time)
        note.deleted = change.kind == "deleted"
        note.edits += not note.deleted
        note.written = note.written or change.kind == "whole"
        self._in_files.let_go(change, self.lines)
        self._take(change.new, "wrote", change.path, place)

    def _answer(self, result: ToolResult, place: int, part: int) -> None:
        deed, asked_at = self._deeds.pop(result.call_id, (Deed("other", result.name or ""), place))
        said, refused = said_by_user(result, deed.tool), is_refused(result)
        if said:
            self._hear(said, place)
        if refused:
            self._undo(deed)
        if said or refused:
            return
        text, command = result.text, self.commands.get(deed.command.strip())
        of_file = deed.kind in ("read", "edit", "write")
        source = deed.subject if of_file else deed.subject[: bounds.SOURCE]
        by_command, nothing_done = deed.kind in ("run", "search", "read"), did_nothing(result)
        changed = [change for change in deed.changes if is_made(change, result, by_command=by_command)]
        if deed.kind == "read" and not nothing_done and (seen := self.files.get(deed.subject)):
            seen.reads += 1
        for change in changed:
            self._change(change, asked_at)
        if deed.kind not in ("plan", "step", "progress"):  # the plan itself is noted
            voice: Voice = "file" if of_file and not nothing_done else "output"
            self._take(text, voice, source or deed.tool, place, part, found=deed.kind == "search")
        for change in changed:
            self._in_files.stay_gone(change, self.lines)
        shown = of_file or deed.kind == "search" or shows_versions(deed.command)
        self._answers.append((text, Line("", "file" if shown else "output", source, place, 0, self.time, part=part)))
        for item in result.content:
            if isinstance(item, Media) and not of_file:
                self._attach(item, place)
        if command:
            command.failed = has_failed(result)
        if deed.kind == "other":
            self.calls_untold += len(self.calls) >= bounds.CALLS
            self.calls = [*self.calls[1 - bounds.CALLS :], Line(called(deed, text), "asked", "", place, 0, self.time)]

    def _undo(self, deed: Deed) -> None:
        """What the user refused was not run."""
        if command := self.commands.get(deed.command.strip()):
            command.runs -= 1
            if not command.runs:
                del self.commands[command.text]

    def _attach(self, media: Media, place: int) -> None:
        """A picture cannot be summarised, but what was there can be told, and where (P12)."""
        text = " ".join(media_in_words(media).split())[:BRIEF]
        self.attached = [*self.attached[1 - bounds.ATTACHED :], Line(text, "user", "", place, 0, self.time)]

    def _take(self, text: str, voice: Voice, source: str, place: int, part: int = 0, *, found: bool = False) -> None:
        """Note the lines of a text. In one that was found, each stands in a file of its own."""
        split = lines_of(text)
        lines, depth, time, among = self.lines, self.depth, self.time, len(split)
        naming: list[str] = []
        for number, line, whole in split:
            depth += len(line)
            if found and (match := match_in(line)):
                path, number, line = match
                naming.append(path)
                if not line.strip():
                    continue
                path = self.files.known_as(path)
                self._in_files.note(path, (line,))
                noted = Line(line, "file", path, place, number, time, depth, among, whole, 1, part)
            else:
                noted = Line(line, voice, source, place, number, time, depth, among, whole, 1, part)
            if before := lines.pop(line, None):
                noted.times = before.times + 1
            lines[line] = noted
            naming.append(line)
        self.depth = depth
        if voice in ("file", "wrote"):
            self._in_files.note(source, naming)
        names_of = self.named.spoken if voice in ("said", "user") else self.named.exact
        sight(self.names, Counter(chain.from_iterable(map(names_of, naming))), voice, time, len(text))
