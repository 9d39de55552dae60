"""Summaries that other tools put into a context, recognised by the text they begin with.

A summary is a record of the conversation: it is carried on, and is neither the user's words nor a message to cut.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .frame import is_framed
from .parts import Message, Text

_OPENINGS = re.compile(
    r"\s*(?:#{1,4} Session Summary \(Compaction Round \d+\)"
    r"|This session is being continued from a previous conversation"
    r"|Another language model (?:started to solve this problem|worked on this task) and produced a summary"
    r"|\*?The conversation history before this point was compacted into the following summary"
    r"|The following is a summary of a branch that this conversation came back from)"
)
"""The openings of the layer document, Claude Code, Codex CLI, and pi, for a compaction and for a branch."""
OPENCODE_QUESTION = "What did we do so far?"
"""The user message before OpenCode's summary, which is the assistant's reply and has no opening of its own."""


def is_foreign_summary(message: Message) -> bool:
    """Whether another tool wrote this message as a summary of the conversation before it."""
    parts = message.parts
    if not parts or type(first := parts[0]) is not Text or message.role not in ("user", "assistant"):
        return False
    return _OPENINGS.match(first.text) is not None and not message.calls


def is_note(message: Message) -> bool:
    """Whether this message is a note or a summary, written by Holdfast or by another tool."""
    return is_framed(message) or is_foreign_summary(message)


def opening_pair(messages: Sequence[Message]) -> range:
    """Returns the indices of OpenCode's question and summary, if the context starts with them."""
    first = next((index for index, message in enumerate(messages) if message.role != "system"), len(messages))
    pair = messages[first : first + 2]
    return range(first, first + 2) if len(pair) == 2 and _is_summary_pair(*pair) else range(0)


def _is_summary_pair(question: Message, reply: Message) -> bool:
    asked = question.role == "user" and question.text.strip() == OPENCODE_QUESTION and len(question.parts) == 1
    return asked and reply.role == "assistant" and bool(reply.text.strip()) and not reply.calls
