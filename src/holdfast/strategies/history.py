"""Accessors to a request's history: message numbers, message text, and the notes of earlier rounds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ..context import Request, View
from ..ledger import READABLE_CHARS, HistoryExtractor, Ledger, clip, is_ledger_page
from ..messages import Message, Text, ToolResult, framed_message, is_framed, strip_frame
from ..tokens import Estimator

_CLEARABLE = ("function", "custom", "function_call")
"""Results of built-in tools have their own structure, which text cannot replace."""


def count_newly_archived(request: Request, cut: int) -> int:
    """Returns how many messages a cut would newly archive."""
    view = request.view
    stays = {*request.plan.kept_before(cut), *view.fillers, *view.synthetic}
    left = [shown for shown in view.head if not request.plan.stays_in_head(shown, cut)]
    gone, numbers = [place for place in range(cut) if place not in stays], view.numbers
    return len({numbers[place] for place in gone} if numbers else gone) + len(left)


def message_numbers(request: Request, archived: int) -> list[int]:
    """Returns the number of each live message: its event's or given number, else its position in the whole history."""
    view = request.view
    if numbers := view.numbers:
        return list(numbers)
    passed, lead = view.checkpoint.carry.before_boundary, 0
    opening = view.messages[view.synthetic[0]] if view.synthetic and not passed else None
    if opening and (archived or is_ledger_page(opening)):  # a page without its checkpoint: continue its count
        passed, lead = archived + view.leading_system_count, view.synthetic[0] + 1
    return [*range(1, lead + 1), *range(passed + 1, passed + len(view.messages) - lead + 1)]


def user_message_numbers(messages: list[Message], history: HistoryExtractor) -> set[int]:
    """Returns the numbers of these user messages in the extracted history."""
    texts = {
        part.text.strip()[:READABLE_CHARS] for message in messages for part in message.parts if isinstance(part, Text)
    }
    return {line.place for line in history.users if line.text[:READABLE_CHARS] in texts} if texts else set()


def previous_ledger(request: Request) -> Ledger:
    """Returns the ledger of earlier rounds."""
    known = request.view.checkpoint.carry.ledger
    return Ledger() if known is None else msgspec.convert(known, Ledger)


def read_history(history: HistoryExtractor, request: Request, numbers: Sequence[int], start: int, end: int) -> None:
    """Extracts notes from these live messages; notes and summaries among them are no one's words."""
    notes = program_messages(request.view)
    indices = [index for index in range(start, end) if index not in notes]
    history.read([request.messages[index] for index in indices], [numbers[index] for index in indices])


def program_messages(view: View) -> set[int]:
    """Returns the indices of messages in the user's voice that a program wrote: synthetic events and plain asides."""
    asides = {index for index in view.fillers if not is_framed(view.messages[index])}
    return asides.union(view.synthetic)


def message_text(message: Message) -> str:
    """Returns all text of a message, including tool results and string arguments of calls."""
    return "\n".join(message_texts(message))


def message_texts(message: Message) -> list[str]:
    """Returns the texts of a message, its tool results and the string arguments of its calls, each apart."""
    texts = [part.text for part in message.parts if isinstance(part, Text | ToolResult)]
    return texts + [value for call in message.calls for value in call.arguments_dict.values() if isinstance(value, str)]


def message_tokens(messages: Iterable[Message], estimator: Estimator) -> int:
    """Returns the tokens of these messages together."""
    return estimator.tokens(sum(map(estimator.measure, messages)))


def shorten_notes(notes: Sequence[Message], most: int, estimator: Estimator) -> list[Message]:
    """Returns the notes as they are, or each shortened to its share if together they take more than `most` tokens."""
    total = message_tokens(notes, estimator)
    if total <= most:
        return list(notes)
    return [_shorten(note, most * message_tokens([note], estimator) // total, estimator) for note in notes]


def _shorten(note: Message, most: int, estimator: Estimator) -> Message:
    framed, characters, shortened = is_framed(note), len(note.text), note
    text = strip_frame(note) if framed else note.text
    while (used := message_tokens([shortened], estimator)) > most and characters > READABLE_CHARS:
        characters = int(characters * max(0.5, min(0.95, most / used)))
        cut = clip(text, characters)
        shortened = framed_message(cut, note.role) if framed else Message(note.role, (Text(cut),))
    return shortened


def full_history_text(request: Request, ledger: Ledger) -> str:
    """Returns all text of the context and of the notes of earlier rounds."""
    view = request.view
    messages = [*(shown.message for shown in view.head), *view.messages]
    lines = [*ledger.users, *ledger.closings, *ledger.errors, *ledger.lines]
    texts = [*map(message_text, messages), *(call.arguments_json for message in messages for call in message.calls)]
    texts += [*(line.text for line in lines), *(step for step, _ in ledger.plan), *ledger.names]
    texts += [*(file.path for file in ledger.files), *(command.text for command in ledger.commands)]
    prompt = (part if isinstance(part, str) else message_text(part) for part in view.prompt_overhead)
    return "\n".join([*prompt, *texts])


def is_clearable(result: ToolResult) -> bool:
    """Whether a placeholder text may replace this result."""
    return result.kind in _CLEARABLE
