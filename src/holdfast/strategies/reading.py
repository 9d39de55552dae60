"""What a request's history says: the numbers of its messages, their words, and what earlier rounds noted."""

from __future__ import annotations

import msgspec

from ..ledger import READABLE, Ledger, Notebook, is_page, reread
from ..messages import Message, Text, ToolResult
from ..view import Request


def newly_archived(request: Request, cut: int) -> int:
    """How many messages a cut here would make invisible."""
    view = request.view
    stays = {*request.staying(cut), *view.fillers, *view.synthetic}
    left = [shown for shown in view.head if not request.still_first(shown, cut)]
    gone, numbers = [place for place in range(cut) if place not in stays], view.numbers
    return len({numbers[place] for place in gone} if numbers else gone) + len(left)


def places(request: Request, archived: int) -> list[int]:
    """The number of each live message: its event's, the one that it came with, or its place in the whole history."""
    view = request.view
    if numbers := view.numbers:
        return list(numbers)
    passed, lead = view.checkpoint.carry.passed, 0
    if archived and not passed and view.synthetic:  # a page came without its checkpoint: what follows counts on
        passed, lead = archived + view.leading, view.synthetic[0] + 1
    return [*range(1, lead + 1), *range(passed + 1, passed + len(view.messages) - lead + 1)]


def places_of(messages: list[Message], notebook: Notebook) -> set[int]:
    """The numbers under which these are noted as the user's."""
    said = {part.text.strip()[:READABLE] for message in messages for part in message.parts if isinstance(part, Text)}
    return {line.place for line in notebook.users if line.text[:READABLE] in said} if said else set()


def earlier_ledger(request: Request, notes: list[Message]) -> Ledger:
    """What earlier rounds noted: as it was carried along, or as far as their page tells."""
    known = request.view.checkpoint.carry.ledger
    if known is not None:
        return msgspec.convert(known, Ledger)
    pages = [reread(message.text) for message in notes if is_page(message)]
    return pages[-1] if pages else Ledger()


def text_of(message: Message) -> str:
    """All the words of a message, its results' and its calls' among them."""
    said = [part.text for part in message.parts if isinstance(part, Text | ToolResult)]
    given = [value for call in message.calls for value in call.object.values() if isinstance(value, str)]
    return "\n".join([*said, *given])


def everything_said(request: Request, ledger: Ledger) -> str:
    """All that anybody ever said, as far as the context and the notes of earlier rounds tell it."""
    view = request.view
    messages = [*(shown.message for shown in view.head), *view.messages]
    lines = [*ledger.users, *ledger.closings, *ledger.errors, *ledger.lines]
    said = [*map(text_of, messages), *(call.json for message in messages for call in message.calls)]
    said += [*(line.text for line in lines), *(step for step, _ in ledger.plan), *ledger.names]
    said += [*(file.path for file in ledger.files), *(command.text for command in ledger.commands)]
    return "\n".join([*view.beside, *said])
