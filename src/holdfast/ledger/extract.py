"""Extracts a ledger from a history: reads each message once, in order, and notes what a later step may need."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice

from msgspec.structs import replace

from ..messages import (
    Media,
    Message,
    Text,
    ToolCall,
    ToolResult,
    calls_command,
    describe_media,
    examples_end,
    is_note,
    split_program_text,
)
from . import entries
from .commands import SEVERAL_FOLDERS
from .entries import CommandRecord, Ledger, count_mentions, count_uses
from .files import FileIndex, FileLines
from .headings import REJECTED
from .lines import (
    EMPTY_REPLY,
    FILE_KINDS,
    LedgerLine,
    LineKind,
    ToolOutput,
    latest_error_lines,
    shows_no_error,
    split_lines,
    split_reminders,
)
from .names import NameCache, find_exact_names
from .plan import ApprovalTracker, PlanTracker
from .shell_files import FileChange, parse_match, shows_file_versions
from .text import BRIEF_CHARS, clip
from .tool_calls import (
    ToolAction,
    are_alike,
    classify_call,
    describe_call,
    describe_step,
    had_no_effect,
    has_failed,
    is_applied,
    is_finished,
    is_rejected_by_user,
    user_reply_in,
)

_MAX_MESSAGE_CHARS = 4_000


Step = tuple[list[str], list[ToolCall], int, int]
"""The words of a reply and its calls, with its message number and its time."""


def _describe_steps(steps: Sequence[Step]) -> Iterator[LedgerLine]:
    """Yields the steps, shortened; of like steps in a row the newest is longer, the others show what differs."""
    before, after = [(), *(step[1] for step in steps)], [*(step[1] for step in steps[1:]), ()]
    for (texts, calls, place, time), older, newer in zip(steps, before, after, strict=False):
        form = are_alike(older, calls) and not are_alike(calls, newer)
        yield LedgerLine(describe_step(texts, calls, newer, form=form), "asked", "", place, 0, time)


class HistoryExtractor:
    """Notes extracted so far. Incremental: `read` adds the next messages, and nothing is read twice."""

    def __init__(self, previous: Ledger | None = None) -> None:
        known = previous or Ledger()
        self.time = known.time
        """Clock of the notes: about one tick a tool call."""
        self.offset = known.offset
        """Characters read so far."""
        self._counted = known.counted
        listed = (*(file.path for file in known.files), *(command.text for command in known.commands))
        self._listed = frozenset(listed if known.counted else ())
        """Files and commands that a page lists."""
        self.names = dict(known.names)
        self.name_cache = NameCache()
        self.lines = {line.text: line for line in known.lines}
        self.users = list(known.users)
        self.omitted_users, self.omitted_from = known.omitted_users, known.omitted_from
        self.closings = list(known.closings)
        self.files = FileIndex(known.files)
        self.commands = {command.text: command for command in known.commands}
        self.errors = {line.text.strip(): line for line in known.errors}
        self.attached = list(known.attached)
        self.plan = PlanTracker(known.plan, known.plan_place, known.counted, from_page=known.plan_from_page)
        self._approvals = ApprovalTracker(known.approved)
        self.calls, self.omitted_calls = list(known.calls), known.omitted_calls
        self.steps = list(known.steps)
        self._outputs: list[ToolOutput] = []
        self._pending_calls: dict[str, tuple[ToolAction, int]] = {}
        """Calls without a result yet, with their message numbers."""
        self._last_outputs: dict[str, str] = {}
        """The output of the last run of each command that has ended."""
        self._rejected: set[int] = set()
        """Numbers of messages with calls that the user rejected."""
        self._file_lines = FileLines(known.lines)
        self._last_reply: LedgerLine | None = None
        self._runs_command = False
        """Whether a command was called whose own text comes next."""

    def read(self, messages: Iterable[Message], places: Sequence[int]) -> None:
        """Extracts notes from these messages; `places` are their numbers, used for citations."""
        steps: deque[Step] = deque(maxlen=entries.MAX_STEPS)
        messages = list(messages)
        examples = 0 if self.users or self.offset else examples_end(messages)
        for message, place in islice(zip(messages, places, strict=True), examples, None):
            if is_note(message):
                continue
            if texts := {at: part.text for at, part in enumerate(message.parts) if isinstance(part, Text)}:
                self._read_text(message.role, texts, place)
            called: list[tuple[ToolCall, ToolAction]] = []
            for at, part in enumerate(message.parts):
                if isinstance(part, ToolCall):
                    called.append((part, self._read_call(part, place)))
                elif isinstance(part, ToolResult):
                    self._read_result(part, place, at)
                elif isinstance(part, Media):
                    self._note_attachment(part, place)
            if called:
                if listed := [call for call, action in called if action.kind != "other"]:
                    steps.append((list(texts.values()), listed, place, self.time))
            elif message.role == "assistant":
                self.time += 1
            if self._is_full():
                self._drop_oldest()
        new = list(_describe_steps(list(steps)))
        self.steps = [
            replace(step, text=f"{step.text}\n{REJECTED}") if step.place in self._rejected else step
            for step in [*self.steps, *new][-entries.MAX_STEPS :]
        ]
        self._rejected.clear()
        self.errors = latest_error_lines(self._outputs, self.errors)
        self._outputs.clear()

    def _is_full(self) -> bool:
        return (
            entries.exceeds_bound(self.lines, entries.MAX_LINES)
            or entries.exceeds_bound(self.names, entries.MAX_NAMES)
            or entries.exceeds_bound(self.users, entries.MAX_MESSAGES)
            or entries.exceeds_bound(self.files, entries.MAX_SUBJECTS)
            or entries.exceeds_bound(self.commands, entries.MAX_SUBJECTS)
        )

    def _drop_oldest(self) -> None:
        self.lines = entries.keep_newest(self.lines, entries.MAX_LINES)
        self.names = entries.keep_used_names(self.names, entries.MAX_NAMES)
        self.users = entries.keep_first_and_newest(self.users, entries.MAX_MESSAGES)
        self.closings = entries.keep_first_and_newest(self.closings, entries.MAX_MESSAGES)
        self.files = FileIndex(entries.keep_newest(self.files, entries.MAX_SUBJECTS).values())
        self.commands = entries.keep_newest(self.commands, entries.MAX_SUBJECTS)
        self.name_cache = NameCache()
        self._file_lines = FileLines(self.lines.values())

    @property
    def approved_plan(self) -> LedgerLine | None:
        """The plan that the user approved, unless every step of a to-do list that was kept since is finished."""
        plan, steps = self._approvals.approved, self.plan.steps
        if plan and steps and self.plan.place > plan.place and all(is_finished(status) for _, status in steps):
            return None
        return plan

    def ran_without_errors(self, command: CommandRecord) -> bool:
        """Whether the last run of a command is known to have ended without a failure, and printed no error."""
        output = self._last_outputs.get(command.text)
        return output is not None and not command.failed and shows_no_error(output)

    def ledger(self) -> Ledger:
        """Returns a snapshot that later reads do not change."""
        return Ledger(
            time=self.time,
            offset=self.offset,
            users=list(self.users),
            omitted_users=self.omitted_users,
            omitted_from=self.omitted_from,
            counted=self._counted,
            closings=[*self.closings, *([self._last_reply] if self._last_reply else ())],
            plan=list(self.plan.steps),
            plan_place=self.plan.place,
            approved=self.approved_plan,
            plan_from_page=self.plan.from_page,
            calls=list(self.calls),
            omitted_calls=self.omitted_calls,
            steps=list(self.steps),
            files=list(map(replace, self.files.values())),
            commands=list(map(replace, self.commands.values())),
            errors=list(self.errors.values()),
            attached=list(self.attached),
            lines=list(self.lines.values()),
            names=dict(zip(self.names, map(replace, self.names.values()), strict=True)),
        )

    def _read_text(self, role: str, texts: Mapping[int, str], place: int) -> None:
        """Reads the texts of a message, by the indices of their parts."""
        if role == "assistant":
            self._runs_command = False
            reply = "\n\n".join(texts.values())
            if reply.strip() == EMPTY_REPLY:
                return
            self._approvals.read_reply(reply, place)
            self._last_reply = LedgerLine(reply[:_MAX_MESSAGE_CHARS], "said", "", place, 0, self.time)
            self._add_lines(reply, "said", "", place)
        elif role != "system":  # system messages stay in the context
            for part, text in texts.items():
                own, program = ("", text) if self._runs_command else split_program_text(text)
                self._runs_command = self._runs_command or calls_command(text)
                if program.strip():
                    self._add_lines(program, "output", "", place, part)
                if own:
                    self._read_user_text(own, place, part)

    def _read_user_text(self, text: str, place: int, part: int) -> None:
        if self._last_reply is not None:
            self.closings.append(self._last_reply)
            self._last_reply = None
        self._approvals.read_user_text(text, place)
        self.calls, self.omitted_calls = [], 0
        self.users.append(LedgerLine(clip(text, _MAX_MESSAGE_CHARS), "user", "", place, 0, self.time))
        self._add_lines(text, "user", "", place, part)

    def _read_call(self, call: ToolCall, place: int) -> ToolAction:
        self.time += 1
        self._last_reply = None
        action = classify_call(call)
        self._approvals.read_call(call, place)
        planned = self.plan.update(action, place)
        if action.kind == "progress" and not planned:
            action = ToolAction("other", action.tool, action.subject)
        if action.changes:
            action = replace(action, changes=tuple(self.files.relevant_changes(action.changes)))
        self._pending_calls[call.id] = action, place
        for change in action.changes:
            self._note_reference(change, place)
        if not planned and action.kind not in ("edit", "write"):
            count_uses(self.names, find_exact_names(clip(action.subject, _MAX_MESSAGE_CHARS)), self.time)
            if action.kind == "read":
                self.files.touch(action.subject, place, self.time)
            if command := action.command.strip():
                note = self.commands[command] = self.commands.pop(command, CommandRecord(command))
                note.runs, note.place, note.time = note.runs + self._is_news(command, place), place, self.time
                if note.folder != action.folder:
                    note.folder = action.folder if note.runs == 1 else SEVERAL_FOLDERS
                self._last_outputs.pop(command, None)
            elif action.kind != "read":
                for number, line, _ in split_lines(action.subject):
                    if line not in self.lines:
                        self.lines[line] = LedgerLine(line, "asked", action.tool, place, number, self.time, self.offset)
        return action

    def _note_reference(self, change: FileChange, place: int) -> None:
        """Notes the file and names that a call refers to; its result tells whether the change was applied."""
        self.files.touch(change.path, place, self.time)
        count_uses(self.names, find_exact_names(change.path), self.time)
        for _, line, _ in split_lines(change.old):
            count_uses(self.names, self.name_cache.find_exact(line), self.time)

    def _apply_change(self, change: FileChange, place: int, *, is_news: bool) -> None:
        note = self.files.touch(change.path, place, self.time)
        note.deleted = change.kind == "deleted"
        note.edits += not note.deleted and is_news
        note.written = note.written or change.kind == "whole"
        self._file_lines.remove_changed(change, self.lines)
        self._approvals.read_change(change, place)
        self._add_lines(change.new, "wrote", change.path, place)

    def _read_result(self, result: ToolResult, place: int, part: int) -> None:
        self._approvals.read_result(result, place)
        action, called_at = self._pending_calls.pop(result.call_id, (ToolAction("other", result.name or ""), place))
        reply, rejected = user_reply_in(result, action.tool), is_rejected_by_user(result)
        if reply:
            self._read_user_text(reply, place, part)
        if rejected:
            self._undo_rejected(action, called_at)
        if reply or rejected:
            return
        text, reminders = split_reminders(result.text)
        command = self.commands.get(action.command.strip())
        of_file = action.kind in ("read", "edit", "write")
        source = action.subject if of_file else action.subject[: entries.MAX_SOURCE_CHARS]
        by_command, no_effect = action.kind in ("run", "search", "read"), had_no_effect(result)
        changed = [change for change in action.changes if is_applied(change, result, by_command=by_command)]
        if action.kind == "read" and not no_effect and (seen := self.files.get(action.subject)):
            seen.reads += self._is_news(action.subject, place)
        for change in changed:
            self._apply_change(change, called_at, is_news=self._is_news(change.path, place))
        if action.kind not in ("plan", "step", "progress"):  # the plan is stored as such
            kind: LineKind = "file" if of_file and not no_effect else "output"
            self._add_lines(text, kind, source or action.tool, place, part, found=action.kind == "search")
        if reminders:
            self._add_lines(reminders, "output", "", place, part)
        for change in changed:
            self._file_lines.remove_replaced(change, self.lines)
        shown = of_file or action.kind == "search" or (action.command and shows_file_versions(action.command))
        self._outputs.append(
            (text, LedgerLine("", "file" if shown else "output", source, place, 0, self.time, part=part))
        )
        for item in result.content:
            if isinstance(item, Media) and not of_file:
                self._note_attachment(item, place)
        if command:
            command.failed = has_failed(result)
            self._last_outputs[command.text] = text
        if action.kind == "other":
            self.omitted_calls += len(self.calls) >= entries.MAX_CALLS
            self.calls = [
                *self.calls[1 - entries.MAX_CALLS :],
                LedgerLine(describe_call(action, text), "asked", "", place, 0, self.time),
            ]

    def _is_news(self, subject: str, place: int) -> bool:
        """Whether what this message did to a file or command is not yet in the count that a page states."""
        return place > self._counted or subject not in self._listed

    def _undo_rejected(self, action: ToolAction, place: int) -> None:
        """Takes back the run of a command that the user rejected, and marks the step."""
        self._rejected.add(place)
        if command := self.commands.get(action.command.strip()):
            command.runs, command.place = command.runs - 1, 0
            if not command.runs:
                del self.commands[command.text]

    def _note_attachment(self, media: Media, place: int) -> None:
        """Notes the description and message number of an image or file."""
        text = " ".join(describe_media(media).split())[:BRIEF_CHARS]
        self.attached = [
            *self.attached[1 - entries.MAX_ATTACHMENTS :],
            LedgerLine(text, "user", "", place, 0, self.time),
        ]

    def _add_lines(
        self, text: str, kind: LineKind, source: str, place: int, part: int = 0, *, found: bool = False
    ) -> None:
        """Adds the lines of a text. `found`: search output, where each line may belong to a file of its own."""
        split = split_lines(text)
        lines, offset, time, batch_size = self.lines, self.offset, self.time, len(split)
        name_sources: list[str] = []
        for number, line, whole in split:
            offset += len(line)
            of, under = kind, source
            if found and (match := parse_match(line)):
                path, number, line = match
                name_sources.append(path)
                if not line.strip():
                    continue
                of, under = "file", self.files.resolve(path)
                self._file_lines.add(under, (line,))
            noted = LedgerLine(line, of, under, place, number, time, offset, batch_size, whole, 1, part)
            if before := lines.pop(line, None):
                noted.occurrences = before.occurrences + 1
            lines[line] = noted
            name_sources.append(line)
        self.offset = offset
        if kind in FILE_KINDS:
            self._file_lines.add(source, name_sources)
        find_names = self.name_cache.find_all if kind in ("said", "user") else self.name_cache.find_exact
        count_mentions(self.names, Counter(chain.from_iterable(map(find_names, name_sources))), kind, time, len(text))
