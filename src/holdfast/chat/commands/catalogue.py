"""All commands, and the two that are about them: /help and /quit."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...errors import InvalidInput
from .automatic import AUTOCOMPACT
from .branching import BRANCH, EDIT
from .choosing import MODEL, PRESET
from .command import Command, Page, words_of
from .compacting import COMPACT, UNDO
from .context import CONTEXT
from .export import EXPORT
from .layout import table
from .recalling import PIN, RECALL, SEARCH
from .sessions import CLEAR, SESSIONS, TREE
from .threads import HANDOFF, REFERENCE

if TYPE_CHECKING:
    from ..chat import Chat

_SAYING = "Everything else is said to the agent; what begins with // is said with one slash."


async def _help(chat: Chat, argument: str) -> Page:
    name = words_of(argument, 1, HELP.usage)[0].removeprefix("/")
    if name:
        command = command_named(name)
        return Page(f"{command.usage}: {command.about}.")
    return Page("\n".join([*table([(command.usage, command.about) for command in COMMANDS]), "", _SAYING]))


async def _quit(chat: Chat, argument: str) -> Page:
    words_of(argument, 0, QUIT.usage)
    return Page(f"Session {chat.record.id} is kept.", quit=True)


async def _names(chat: Chat, words: Sequence[str]) -> Iterable[str]:
    return [command.name for command in COMMANDS] if len(words) == 1 else ()


HELP = Command("help", "/help [COMMAND]", "say what can be done, or how", _help, _names)
QUIT = Command("quit", "/quit", "leave; the session is kept", _quit)
COMMANDS = (
    COMPACT,
    AUTOCOMPACT,
    UNDO,
    CONTEXT,
    BRANCH,
    EDIT,
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
    EXPORT,
    HELP,
    QUIT,
)
_BY_NAME = {command.name: command for command in COMMANDS}


def command_named(name: str) -> Command:
    """The command of this name; else the complaint says which was probably meant."""
    if (found := _BY_NAME.get(name.lower())) is not None:
        return found
    near = difflib.get_close_matches(name.lower(), _BY_NAME, 1)
    hint = f"did you mean /{near[0]}?" if near else "/help lists them all, and // in front says it to the agent."
    raise InvalidInput(f"There is no command /{name}: {hint}")
