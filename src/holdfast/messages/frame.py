"""A frame around text that Holdfast itself wrote into a conversation.

Without a session, nothing but the text says that a message is a note of ours. The frame ends in a
digest of the text: a person who pastes a look-alike is not taken for us. It guards against accident,
not against forgery.
"""

from __future__ import annotations

import hashlib

from .parts import Message, Role, Text

_OPEN = "\n[holdfast:"
_LETTERS = str.maketrans("0123456789abcdef", "bcdfghjklmnpqrst")
"""Letters alone: digits would look like an id of something that was talked about."""


def frame(text: str, *, aside: bool = False) -> str:
    return f"{text}{_OPEN}{_digest(text, aside)}]"


def is_framed(message: Message) -> bool:
    """Is this one of our own notes, unchanged?"""
    if len(message.parts) != 1 or type(only := message.parts[0]) is not Text or only.text[-1:] != "]":
        return False
    text, _, digest = only.text.rpartition(_OPEN)
    return digest[:-1] in (_digest(text), _digest(text, True))


def is_aside(message: Message) -> bool:
    """Is this a note that says nothing by itself: a question for a summary, a word of thanks for one?"""
    return is_framed(message) and message.parts[0] == Text(frame(unframed(message), aside=True))


def _digest(text: str, aside: bool = False) -> str:
    said = f"{text}\naside" if aside else text
    return hashlib.sha256(said.encode(errors="surrogatepass")).hexdigest()[:8].translate(_LETTERS)


def framed(text: str, role: Role = "user", *, aside: bool = False) -> Message:
    """A note of ours, in the voice of the user unless a summary is to be shown otherwise."""
    return Message(role, (Text(frame(text, aside=aside)),))


def unframed(message: Message) -> str:
    """What a note of ours says, without its frame."""
    return message.text.rpartition(_OPEN)[0]


OPENING = framed("(The conversation starts before this point.)")
"""Stands first where a format wants a user message and history has none to give."""

CONTINUE = framed("(Go on.)")
"""Stands between two of the model's turns where a format wants the user's in between."""


def is_filler(message: Message) -> bool:
    """Does this message stand only where a format wanted one?"""
    return message.role == "user" and message.parts in (OPENING.parts, CONTINUE.parts)
