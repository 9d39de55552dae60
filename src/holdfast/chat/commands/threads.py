"""/handoff and /reference: what goes from one session to another (P23)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import InvalidInput
from ...messages import framed
from ...recall import Recall
from .command import Command, Page, first_word
from .sessions import session_ids, session_named

if TYPE_CHECKING:
    from ..chat import Chat


async def _handoff(chat: Chat, argument: str) -> Page:
    if not argument:
        raise InvalidInput(f"A handoff needs a goal: {HANDOFF.usage}, and say what the new session is to do.")
    chat.must_be_idle()
    left = chat.record.id
    with chat.stoppable() as abort:
        drafted = await chat.sessions.handoff(left, argument, summarizer=chat.summarizer or chat.model, abort=abort)
    try:
        record = await chat.new(how="handed_off")
    except InvalidInput as problem:  # somebody said something meanwhile
        return Page(f"{problem} Then begin a new session with /clear, and send this.", draft=drafted.message)
    lines = [f"A new session, {record.id}; {left} is kept. Read its first message, change it, and send it."]
    return Page("\n".join([*lines, *(f"- {remark}" for remark in drafted.remarks)]), draft=drafted.message)


async def _reference(chat: Chat, argument: str) -> Page:
    written, question = first_word(argument)
    if not question:
        raise InvalidInput(f"Name a session and ask something: {REFERENCE.usage}, and /sessions lists them.")
    chat.must_be_idle()
    source = await session_named(chat, written)
    with chat.stoppable() as abort:
        found = await Recall(chat.sessions, source.id).reference(
            question, summarizer=chat.summarizer or chat.model, abort=abort
        )
    if not found.sources:
        return Page(f"{found.text}\n\nIt rests on no message of that session: it was not added to this one.")
    try:
        chat.must_be_idle()
    except InvalidInput as problem:
        return Page(f"{found.text}\n\nIt was not added to this session. {problem}")
    text = f"[From session {source.id}, asked: {question}]\n{found.text}"
    await chat.sessions.append(chat.record.id, framed(text, aside=True), aside=True)
    passages = " No model answered: these are the passages." if found.fallback else ""
    return Page(f"{found.text}\n\nFrom session {source.id}, {', '.join(found.sources)}; added to this one.{passages}")


HANDOFF = Command("handoff", "/handoff GOAL", "begin a new session with what matters for a goal", _handoff)
REFERENCE = Command(
    "reference", "/reference SESSION QUESTION", "ask another session, and add its answer here", _reference, session_ids
)
