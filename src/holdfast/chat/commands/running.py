"""From a line that was typed to what a person is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ...errors import HoldfastError
from ...messages import decode_all, is_framed
from .catalogue import command_named
from .command import Page, first_word
from .layout import shown

if TYPE_CHECKING:
    from ..chat import Chat

NOTHING = Page("")


async def run_command(chat: Chat, line: str) -> Page:
    """Do what a line says, whatever it is: a command, a prompt, or nothing but Enter. All that goes wrong is a page."""
    try:
        page = await _done(chat, line.encode(errors="replace").decode())
    except HoldfastError as problem:
        page = Page(str(problem))
    except OSError as problem:
        about = f" ({problem.filename})" if problem.filename else ""
        page = Page(f"{problem.strerror or problem}{about}.")
    return msgspec.structs.replace(page, text=shown(page.text))


async def _done(chat: Chat, line: str) -> Page:
    if not line.strip():
        return await _entered(chat)
    if not line.startswith("/") or line.startswith("//"):
        chat.say(line[1:] if line.startswith("//") else line)
        return NOTHING
    name, argument = first_word(line[1:])
    return await command_named(name or "help").run(chat, argument)


async def _entered(chat: Chat) -> Page:
    """Enter alone has answered what waits for an answer, as at the end of a branch."""
    if (await chat.state()).activity != "idle":
        return NOTHING
    context = await chat.sessions.context(chat.record.id)
    messages, _ = decode_all(context.messages, context.format)
    last = next((message for message in reversed(messages) if not is_framed(message)), None)
    if last is not None and last.role in ("user", "tool"):
        chat.go_on()
    return NOTHING
