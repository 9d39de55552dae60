"""/copy and /view: a reply, a block of code, a message or the whole conversation, as it was written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
from markdown_it import MarkdownIt

from ...context.events import Event, EventKind, try_message_in
from ...errors import InvalidInput, UnknownEvent
from ...io.text import sanitize_input
from ...messages import Message, ToolCall, is_framed
from ...recall.passage import resolve_reference
from .base import ChatCommand, CommandResult, split_arguments

if TYPE_CHECKING:
    from ..chat import Chat

_ALL = "all"
_CHOICE = "N for a block of the last reply, #M for message M, or all"
_PARSER = MarkdownIt("commonmark", {"html": False})
_RECENT_EVENTS = 200
"""Events searched for the last reply before all are."""


class Copied(msgspec.Struct, frozen=True):
    """A text and what it is."""

    text: str
    name: str
    note: str = ""


def code_blocks(text: str) -> list[str]:
    """Returns the code of each block of a text, as written; also of blocks in lists and quotes."""
    return [token.content.removesuffix("\n") for token in _PARSER.parse(text) if token.type in ("fence", "code_block")]


async def find_text(chat: Chat, written: str) -> Copied:
    """Returns the last reply, its code block n, the message #n, or the conversation; control characters are shown."""
    found = await _find(chat, written)
    return msgspec.structs.replace(found, text=sanitize_input(found.text))


async def _find(chat: Chat, written: str) -> Copied:
    if written == _ALL:
        events = await chat.sessions.events(chat.record.id, kind=EventKind.MESSAGE, lane="")
        return Copied("\n\n".join(_sections(events)), "the conversation")
    if written and not written.isdecimal():
        try:
            place = await resolve_reference(chat.sessions.store, await chat.sessions.get(chat.record.id), written)
        except UnknownEvent:
            raise InvalidInput(f"There is no message {written}: give {_CHOICE}.") from None
        if (message := try_message_in(place.first)) is None:
            raise InvalidInput(f"{written} is not a message: /search finds messages.")
        return Copied("\n\n".join(_texts(message)), f"message {written}")
    reply = await _last_reply(chat)
    blocks = code_blocks(reply)
    if not written:
        count = f"block{'s' if len(blocks) != 1 else ''} of code"
        note = f" It has {len(blocks)} {count}: /copy 1{'' if len(blocks) == 1 else ', /copy 2'} copies one."
        return Copied(reply, "the last reply", note if blocks else "")
    if not 1 <= int(written[:9]) <= len(blocks):
        have = f"{len(blocks)} block{'s' * (len(blocks) != 1)} of code" if blocks else "no code"
        raise InvalidInput(f"There is no block {written}: the last reply has {have}.")
    return Copied(blocks[int(written) - 1], f"block {written} of the last reply")


async def _last_reply(chat: Chat) -> str:
    for last in (_RECENT_EVENTS, None):
        for event in reversed(await chat.sessions.events(chat.record.id, kind=EventKind.MESSAGE, lane="", last=last)):
            message = try_message_in(event)
            if message is not None and message.role == "assistant" and message.text.strip() and not is_framed(message):
                return message.text.strip("\n")
    raise InvalidInput("There is no reply yet.")


def _sections(events: Iterable[Event]) -> Iterator[str]:
    for event in events:
        if (message := try_message_in(event)) is not None and (texts := list(_texts(message))):
            yield "\n\n".join([f"## {message.role} #{event.seq}", *texts])


def _texts(message: Message) -> Iterator[str]:
    if message.text.strip():
        yield message.text.strip("\n")
    for part in message.parts:
        if isinstance(part, ToolCall):
            yield f"{part.name} {' '.join(map(str, part.arguments_dict.values()))}"
    yield from (result.text for result in message.results)


async def _run_copy(chat: Chat, argument: str) -> CommandResult:
    found = await find_text(chat, split_arguments(argument, 1, COPY.usage)[0])
    lines = found.text.count("\n") + 1
    report = f"Copied {found.name}, {lines:,} line{'s' * (lines != 1)}.{found.note}"
    return CommandResult(report, copied=found.text)


async def _run_view(chat: Chat, argument: str) -> CommandResult:
    found = await find_text(chat, split_arguments(argument, 1, VIEW.usage)[0])
    return CommandResult("", opened=found.text)


async def _complete_texts(chat: Chat, words: Sequence[str]) -> Iterable[str]:
    if len(words) != 1:
        return ()
    blocks = code_blocks(await _last_reply(chat))
    return [*(str(number) for number, _ in enumerate(blocks, 1)), _ALL]


COPY = ChatCommand(
    "copy", "/copy [N|#M|all]", "copy the last reply, its block N, or message M", _run_copy, _complete_texts
)
VIEW = ChatCommand("view", "/view [N|#M|all]", "open the same in your editor", _run_view, _complete_texts)
