"""Notes and summaries in a context: Holdfast's own, marked by a frame, and those of other tools, by their opening.

A frame is a suffix with a digest of the text: without a session, only the text itself shows that a message is a note.
The digest tells a real note from a pasted look-alike; it guards against accidents, not against forgery. A summary is a
record of the conversation: it is carried on, and is neither the user's words nor a message to cut. A turn starts at the
user's own words or media: at none of these, and at nothing else that programs put on the user's side.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from .parts import Message, Opaque, Role, Text

FRAME_START = "\n[holdfast:"
"""How the frame begins that ends a note."""
_MARK = re.compile(re.escape(FRAME_START) + r"([b-t]{8})\]")
_LETTERS = str.maketrans("0123456789abcdef", "bcdfghjklmnpqrst")
"""The digest uses letters only: digits would look like an id from the conversation."""


def add_frame(text: str, *, aside: bool = False) -> str:
    """Returns the text with its frame."""
    return f"{text}{FRAME_START}{_digest(text, aside)}]"


def is_framed(message: Message) -> bool:
    """Whether this is an unchanged note written by Holdfast."""
    parts = message.parts
    if len(parts) != 1 or type(only := parts[0]) is not Text or only.text[-1:] != "]":
        return False
    return _is_framed_text(only.text)


def _is_framed_text(framed: str) -> bool:
    text, _, digest = framed.rpartition(FRAME_START)
    return digest[:-1] in (_digest(text), _digest(text, True))


def is_aside(message: Message) -> bool:
    """Whether this note has no content of its own, like a request for a summary or its acknowledgement."""
    return is_framed(message) and message.parts[0] == Text(add_frame(strip_frame(message), aside=True))


def framed_beginning(text: str) -> str:
    """Returns the note that a text begins with; empty if it begins with none."""
    beginnings = (text[: mark.end()] for mark in _MARK.finditer(text))
    return next(filter(_is_framed_text, beginnings), "")


def _digest(text: str, aside: bool = False) -> str:
    hashed = f"{text}\naside" if aside else text
    return hashlib.sha256(hashed.encode(errors="surrogatepass")).hexdigest()[:8].translate(_LETTERS)


def framed_message(text: str, role: Role = "user", *, aside: bool = False) -> Message:
    """Returns a framed message, with the user role unless another one is given."""
    return Message(role, (Text(add_frame(text, aside=aside)),))


def strip_frame(message: Message) -> str:
    """Returns the text of a note without its frame."""
    return message.text.rpartition(FRAME_START)[0]


_SYSTEM_QUOTE = "System message from earlier in the conversation:\n"


def quote_system(message: Message) -> Message:
    """Returns a system message as a framed user message, for a place where its format allows no system message."""
    return framed_message(f"{_SYSTEM_QUOTE}{message.text}")


def is_system_message(message: Message) -> bool:
    """Whether this is a system message of the caller, in its own role or quoted; a summary in that role is none."""
    if message.role == "user":
        return is_framed(message) and message.text.startswith(_SYSTEM_QUOTE)
    return message.role == "system" and not is_note(message)


def system_text(message: Message) -> str:
    """Returns the text of a system message, quoted or not."""
    return message.text if message.role == "system" else strip_frame(message)[len(_SYSTEM_QUOTE) :]


OPENING = framed_message("(The conversation starts before this point.)")
"""Inserted first where a format requires a user message and the history does not start with one."""
CONTINUE = framed_message("(Go on.)")
"""Inserted between two model turns where a format requires a user message."""
ACKNOWLEDGED = Message("assistant", (Text("(Understood.)"),))
"""Inserted between two user turns where roles must alternate. It has no frame: a model would imitate its own."""


def is_filler(message: Message) -> bool:
    """Whether this message was only inserted for a wire format."""
    if message.role == "assistant":
        return message.parts == ACKNOWLEDGED.parts
    return message.role == "user" and message.parts in (OPENING.parts, CONTINUE.parts)


INTERRUPTED_MARK = "[Interrupted by the user.]"
"""End of a reply that the user stopped, so that the model knows."""
CUT_OFF_MARK = "[The reply was cut off here.]"
"""End of a reply whose connection was lost."""


def is_interrupted(message: Message) -> bool:
    """Whether this reply did not end by itself."""
    return message.role == "assistant" and message.text.endswith((INTERRUPTED_MARK, CUT_OFF_MARK))


_BLANK = " \t\r\n"
_STARTS = f"#TA*[{_BLANK}"
"""What the openings of other tools' summaries begin with."""
_OPENINGS = re.compile(
    rf"[{_BLANK}]*(?:#{{1,4}} Session Summary \(Compaction Round \d+\)"
    r"|This session is being continued from a previous conversation"
    r"|Another language model (?:started to solve this problem|worked on this task) and produced a summary"
    r"|\*?The conversation history before this point was compacted into the following summary"
    r"|The following is a summary of a branch that this conversation came back from"
    r"|\[COMPACT SUMMARY\])"
)
"""The openings of the layer document, Claude Code, Codex CLI, pi, for a compaction and for a branch, and Goat."""
_SYSTEM_OPENING = re.compile(rf"[{_BLANK}]*Compacted context summary:")
"""The opening of a workstream's summary, which is a system message."""
OPENCODE_QUESTION = "What did we do so far?"
"""The user message before OpenCode's summary, which is the assistant's reply and has no opening of its own."""
_SUMMARY_QUESTION = re.compile(
    r"(?i)\s*(?:please )?summari[sz]e\b[^\n]{0,60}\b(?:conversation|talked about|discussed|so far)\b[^\n]{0,40}\s*"
)
"""A user message before a summary in the pair of Spring AI Session, whose wording can be set."""
_MAX_ACKNOWLEDGEMENT = 60
"""Characters of the reply that acknowledges Goat's summary."""


def possible_notes(messages: Sequence[Message]) -> list[int]:
    """Returns the indices of user messages that may be notes or summaries, and of messages that begin with no text.

    Looks at one character at each end: the exact tests take five times as long on a list of ten thousand messages.
    """
    return [
        index
        for index, message in enumerate(messages)
        if message.parts
        and (
            type(first := message.parts[0]) is not Text
            or (message.role == "user" and (first.text[-1:] == "]" or first.text[:1] in _STARTS))
        )
    ]


def is_foreign_summary(message: Message) -> bool:
    """Whether another tool wrote this message as a summary of the conversation before it."""
    parts = message.parts
    if not parts or type(first := parts[0]) is not Text or message.role == "tool":
        return False
    opening = _SYSTEM_OPENING if message.role == "system" else _OPENINGS
    return opening.match(first.text) is not None and not message.calls


def foreign_summary_text(message: Message) -> str:
    """Returns the text of another tool's summary without its opening, or without the sentences that it opens with."""
    text, tag = message.text, (_SYSTEM_OPENING if message.role == "system" else _OPENINGS).match(message.text)
    if not tag or tag[0].lstrip().startswith("#"):
        return text
    end = tag.end() if tag[0].endswith(("]", ":")) or "\n" not in text else text.index("\n", tag.end())
    return text[end:].strip()


def is_note(message: Message) -> bool:
    """Whether this message is a note or a summary, written by Holdfast or by another tool."""
    return is_framed(message) or is_foreign_summary(message)


def opening_pair(messages: Sequence[Message]) -> range:
    """Returns the indices of a pair that the context starts with: the summary of OpenCode or Spring AI Session after a
    question, or Goat's before its acknowledgement."""
    first = next((index for index, message in enumerate(messages) if message.role != "system"), len(messages))
    pair = messages[first : first + 2]
    return range(first, first + 2) if len(pair) == 2 and _is_summary_pair(*pair) else range(0)


def _is_summary_pair(question: Message, reply: Message) -> bool:
    if question.role != "user" or reply.role != "assistant" or reply.calls or not reply.text.strip():
        return False
    if is_foreign_summary(question):
        return len(reply.text) <= _MAX_ACKNOWLEDGEMENT
    asked = question.text.strip() == OPENCODE_QUESTION or _SUMMARY_QUESTION.fullmatch(question.text) is not None
    return asked and len(question.parts) == 1


# -- turns ------------------------------------------------------------------------------------------------------------

_BY_PROGRAMS = frozenset(
    (
        "additional_tools",
        "browser_state",
        "compaction_trigger",
        "configuration_update",
        "mcp_approval_response",
        "tool-approval-response",
        "tool_addition",
        "tool_removal",
    )
)
"""Items and blocks on the user's side that a program makes."""


def is_from_user(message: Message) -> bool:
    """Whether this is a message on the user's side, and not only a program's answer to the provider."""
    if message.role != "user":
        return False
    for part in message.parts:
        if type(part) is not Opaque or part.kind not in _BY_PROGRAMS:
            return True
    return not message.parts


def starts_turn(message: Message) -> bool:
    """Whether a turn starts at this message: it holds the user's own words or media, and is no note or summary."""
    return is_from_user(message) and not is_note(message)
