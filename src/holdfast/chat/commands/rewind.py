"""/rewind: back to any step of the session, in a fork; with the files that tools changed since.

A step is a message of the user, or a reply with the results of its calls. Files stay as they are; git restores them.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ...compaction.breakdown import preview_line
from ...context.events import Event, EventKind, try_message_in
from ...context.references import reference
from ...errors import InvalidInput
from ...io.text import first_line
from ...ledger.tool_calls import classify_call, is_applied
from ...messages import Message, ToolResult, is_framed
from ...recall.passage import resolve_reference
from ...sessions.history import user_message_in
from ...sessions.session_ids import shorten_id
from .base import ChatCommand, Choice, Choices, CommandResult, page, split_arguments

if TYPE_CHECKING:
    from ..chat import Chat

_PREVIEW_CHARS = 2_000
_LISTED_FILES = 3


class Changes(msgspec.Struct):
    """What tools did to files after a step."""

    files: dict[str, int] = {}
    """Times that each was changed, by path, the last changed first."""
    commands: int = 0
    """Commands run, which may have changed others."""

    @property
    def summary(self) -> str:
        names = [Path(path).name for path in self.files]
        more = f" and {len(names) - _LISTED_FILES} more" if len(names) > _LISTED_FILES else ""
        files = f"{_count(len(names), 'file')} changed since: {', '.join(names[:_LISTED_FILES])}{more}" if names else ""
        commands = f"{_count(self.commands, 'command')} run since" if self.commands else ""
        return "; ".join(filter(None, (files, commands))) or "nothing changed since"


class Step(msgspec.Struct, frozen=True):
    """A point of the session to go back to."""

    first: Event
    last: Event
    """Where to fork: the newest result of the step's calls."""
    message: Message
    since: Changes

    @property
    def title(self) -> str:
        if self.message.role == "user":
            return f"you: {first_line(self.message.text) or '(an image or a file)'}"
        words = first_line(self.message.text)
        calls = ", ".join(
            f"{call.name} {first_line(_value(call.arguments_dict))}".strip() for call in self.message.calls
        )
        return calls or words or preview_line(self.message)

    @property
    def preview(self) -> str:
        values = [f"{call.name} {_value(call.arguments_dict)}" for call in self.message.calls]
        text = "\n".join(filter(None, [self.message.text.strip(), *values]))[:_PREVIEW_CHARS]
        listed = [f"  {path}{f', {times} times' if times > 1 else ''}" for path, times in self.since.files.items()]
        return "\n".join([text, "", self.since.summary, *listed])


def _value(arguments: dict[str, object]) -> str:
    return str(next(iter(arguments.values()), ""))


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


async def steps(chat: Chat) -> list[Step]:
    """Returns all steps, oldest first."""
    events = await chat.sessions.events(chat.record.id, kind=EventKind.MESSAGE, lane="")
    messages = [(event, message) for event in events if (message := try_message_in(event)) is not None]
    results = {result.call_id: result for _, message in messages for result in message.results}
    found: list[Step] = []
    since, last = Changes(), None
    for event, message in reversed(messages):
        if message.results and message.role != "assistant":
            last = last or event
        elif message.role == "assistant" and not is_framed(message):
            found.append(Step(event, last or event, message, msgspec.structs.replace(since, files=dict(since.files))))
            _add_changes(since, message, results, chat.folder.root)
            last = None
        elif user_message_in(event) is not None:
            found.append(Step(event, event, message, msgspec.structs.replace(since, files=dict(since.files))))
            last = None
    return found[::-1]


def _add_changes(since: Changes, message: Message, results: dict[str, ToolResult], root: Path) -> None:
    for call in message.calls:
        result = results.get(call.id)
        action = classify_call(call)
        since.commands += action.kind == "run" and result is not None
        for change in action.changes:
            if result is not None and is_applied(change, result, by_command=bool(action.command)):
                path = _below(change.path, root)
                since.files[path] = since.files.get(path, 0) + 1


def _below(path: str, root: Path) -> str:
    return path.removeprefix(f"{root}/")


async def _run_rewind(chat: Chat, argument: str) -> CommandResult:
    written = split_arguments(argument, 1, REWIND.usage)[0]
    found = await steps(chat)
    if not found:
        return CommandResult("This session has no messages yet.")
    if not written:
        return _offer(found)
    chat.require_idle()
    step = await _find_step(chat, found, written)
    left = await shorten_id(chat.sessions, chat.record.id)
    new = await shorten_id(chat.sessions, (await chat.fork(step.last.id)).id)
    ends = "Press Enter to have it answered, or send a message." if step.message.role == "user" else "Send a message."
    return page(f"Now in session {new}, as {left} was after {reference(step.first)}. {ends}", *_files(chat, step.since))


def _files(chat: Chat, since: Changes) -> Iterator[str]:
    """Yields what tools changed since and how git restores it."""
    if not since.files and not since.commands:
        return
    yield ""
    yield f"Files are as they are now; {since.summary}."
    yield from (f"  {path}" for path in since.files)
    if since.files and any((folder / ".git").exists() for folder in (chat.folder.root, *chat.folder.root.parents)):
        names = shlex.join(since.files)
        yield f"See what differs from the last commit: !git diff -- {names}"
        yield f"Take it back to the last commit: !git restore -- {names}"


async def _find_step(chat: Chat, found: Sequence[Step], written: str) -> Step:
    record = await chat.sessions.get(chat.record.id)
    seq = (await resolve_reference(chat.sessions.store, record, written)).first.seq
    step = next((one for one in found if one.first.seq <= seq <= one.last.seq), None)
    if step is None:
        raise InvalidInput(f"{written} is not a step: /rewind lists them.")
    return step


def _offer(found: Sequence[Step]) -> CommandResult:
    items = [
        Choice(reference(one.first), one.title, reference(one.first), one.since.summary, preview=one.preview)
        for one in reversed(found)
    ]
    lines = [f"{item.value} {item.title}: {item.about}" for item in items]
    return CommandResult("\n".join(lines), choices=Choices("Rewind to", items, "/rewind"))


async def _complete_steps(chat: Chat, words: Sequence[str]) -> Iterable[str]:
    return [reference(one.first) for one in await steps(chat)] if len(words) == 1 else ()


REWIND = ChatCommand("rewind", "/rewind [#N]", "choose a step to go back to, in a branch", _run_rewind, _complete_steps)
