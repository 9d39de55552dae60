"""Registry of all commands: dispatch of a typed line, completion, /help and /quit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from ...errors import HoldfastError, InvalidInput
from ...io.arguments import closest_name
from ...sessions.session_ids import shorten_id
from .archived import ARCHIVED
from .base import PAGE_WIDTH, ChatCommand, CommandResult, Table, format_page, page, split_arguments, split_first_word
from .choices import EXPORT, MODE, MODEL, PERMISSIONS, PRESET
from .compaction import AUTOCOMPACT, COMPACT, CONTEXT, UNDO
from .copying import COPY, VIEW
from .custom import custom_commands
from .recall import HANDOFF, PIN, RECALL, REFERENCE, SEARCH
from .rewind import REWIND
from .sessions import BRANCH, CLEAR, EDIT, SESSIONS, TREE
from .status import COST, MCP

if TYPE_CHECKING:
    from ..chat import Chat


_HELP_FOOTER = (
    "!COMMAND runs a shell command and adds its output to the conversation. @PATH in a message attaches a file. Any "
    "other line is sent to the agent; start with // to send a leading slash."
)
_MAX_OUTPUT_LINES = 60
"""Shown of the output of a shell command; the conversation has more."""


async def _run_help(chat: Chat, argument: str) -> CommandResult:
    name = split_arguments(argument, 1, HELP.usage)[0].removeprefix("/")
    if name:
        command = find_command(name, chat)
        return CommandResult(f"{command.usage}: {command.about}.")
    custom, hidden = custom_commands(chat, _COMMANDS_BY_NAME)
    rows = [(command.usage, command.about) for command in (*COMMANDS, *(one.command for one in custom.values()))]
    return page(Table(rows, labels=False), *hidden, "", _HELP_FOOTER)


async def _run_quit(chat: Chat, argument: str) -> CommandResult:
    split_arguments(argument, 0, QUIT.usage)
    return CommandResult(f"Session {await shorten_id(chat.sessions, chat.record.id)} is kept.", quit=True)


async def _complete_command_names(chat: Chat, words: Sequence[str]) -> Iterable[str]:
    return [command.name for command in all_commands(chat)] if len(words) == 1 else ()


HELP = ChatCommand("help", "/help [COMMAND]", "list commands, or explain one", _run_help, _complete_command_names)
QUIT = ChatCommand("quit", "/quit", "quit; the session is kept", _run_quit)
COMMANDS = (
    COMPACT,
    AUTOCOMPACT,
    UNDO,
    ARCHIVED,
    CONTEXT,
    COST,
    BRANCH,
    EDIT,
    REWIND,
    TREE,
    SESSIONS,
    CLEAR,
    HANDOFF,
    REFERENCE,
    SEARCH,
    RECALL,
    PIN,
    MODEL,
    PRESET,
    MODE,
    PERMISSIONS,
    MCP,
    COPY,
    VIEW,
    EXPORT,
    HELP,
    QUIT,
)
_COMMANDS_BY_NAME = {command.name: command for command in COMMANDS}


def all_commands(chat: Chat) -> list[ChatCommand]:
    """Returns the built-in commands and those that the user and the project define."""
    custom, _ = custom_commands(chat, _COMMANDS_BY_NAME)
    return [*COMMANDS, *(one.command for one in custom.values())]


def hidden_command_notes(chat: Chat) -> list[str]:
    """Returns a note for each custom command that a built-in one hides."""
    return custom_commands(chat, _COMMANDS_BY_NAME)[1]


def find_command(name: str, chat: Chat) -> ChatCommand:
    """Returns the command with this name; raises `InvalidInput` with the closest match."""
    if (found := _COMMANDS_BY_NAME.get(name.lower())) is not None:
        return found
    known = {command.name: command for command in all_commands(chat)}
    if name.lower() in known:
        return known[name.lower()]
    near = closest_name(name, known, 0.6)
    hint = f"did you mean /{near}?" if near else "/help lists all commands; start with // to send it to the agent."
    raise InvalidInput(f"There is no command /{name}: {hint}")


EMPTY_RESULT = CommandResult("")


async def run_command(chat: Chat, line: str, *, width: int = PAGE_WIDTH) -> CommandResult:
    """Runs a typed line and returns its output, wrapped to the width; errors become output, too."""
    try:
        result = await _dispatch_line(chat, line.encode(errors="replace").decode())
    except HoldfastError as problem:
        result = CommandResult(str(problem))
    except OSError as problem:
        about = f" ({problem.filename})" if problem.filename else ""
        result = CommandResult(f"{problem.strerror or problem}{about}.")
    return result if result.is_verbatim else msgspec.structs.replace(result, text=format_page(result.text, width))


async def _dispatch_line(chat: Chat, line: str) -> CommandResult:
    if not line.strip():
        return await _continue_if_unanswered(chat)
    if line.startswith("!") and (command := line[1:].strip()):
        return CommandResult(_clip_lines(await chat.run_shell(command)), is_verbatim=True)
    if not line.startswith("/") or line.startswith("//"):
        chat.send(line[1:] if line.startswith("//") else line)
        return EMPTY_RESULT
    name, argument = split_first_word(line[1:])
    return await find_command(name or "help", chat).run(chat, argument)


def _clip_lines(text: str) -> str:
    """Returns the last lines of an output."""
    lines = text.split("\n")
    left = len(lines) - _MAX_OUTPUT_LINES
    return "\n".join([f"… {left:,} earlier lines", *lines[left:]]) if left > 0 else text


async def _continue_if_unanswered(chat: Chat) -> CommandResult:
    """On Enter alone, continues unfinished work."""
    if chat.activity == "idle" and await chat.is_unfinished():
        chat.continue_run()
    return EMPTY_RESULT


async def complete_line(chat: Chat, text: str) -> list[str]:
    """Returns whole lines that complete the last word of this one."""
    if not text.startswith("/") or text.startswith("//") or "\n" in text:
        return []
    name, blank, argument = text[1:].partition(" ")
    if not blank:
        return [f"/{command.name}" for command in all_commands(chat) if command.name.startswith(name.lower())]
    command = next((command for command in all_commands(chat) if command.name == name.lower()), None)
    if command is None or command.complete is None:
        return []
    words = [*argument.split(" ")]
    try:
        found = await command.complete(chat, [word for word in words[:-1] if word] + words[-1:])
    except (HoldfastError, OSError):
        return []
    typed = text[: len(text) - len(words[-1])]
    return [typed + word for word in found if word.startswith(words[-1])]
