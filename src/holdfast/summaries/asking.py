"""Asking for a summary, and what to try next where that fails: less to read, or a plainer question (P9).

An input that is too long is told with less and less of it; an answer that is none is asked for once more.
Everything else is for the caller to know. The calls are bounded by the steps there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from ..calls import Answer, Failure, ModelCall, Reply, Steps
from .material import Material
from .transcript import Transcript
from .verdict import flaw, text_of

_MARGIN = 0.85
"""Of a window, what an estimate may fill: it may be another tokenizer's."""
_NOTES, _NOTES_PART = 6_000, 0.15
"""Characters of notes that stand for messages which are left out of the input, and what part of it they may be."""
_ONCE_MORE = (
    "\n\nYour last answer could not be used: {why}. Answer again, with what was asked for and nothing else"
    ", in at most {tokens:,} tokens."
)
_LEAST_READ = 0.5
"""Of a window that is too small for both, what is for the question; the rest is for the answer."""

Question = Callable[[Transcript, str], ModelCall]
"""Makes a call of what is to be told one by one, and notes on what is not."""


class Asked(msgspec.Struct, frozen=True):
    """What came of it, and how much of the input could be told."""

    answer: Answer
    left_out: int = 0
    """Messages that were told by notes alone."""

    @property
    def remarks(self) -> tuple[str, ...]:
        if not self.left_out:
            return ()
        return (f"{self.left_out:,} of the oldest messages were too much to read: the summary has them from notes",)


def ask(question: Question, material: Material, usable: Callable[[str], str] = lambda text: "") -> Steps[Asked]:
    """A usable answer, or the failure that nothing here can help.

    `usable` says what else is wrong with a text, in words, beside what is wrong with any.
    """
    conversation, once_more = material.conversation, ""
    smaller = conversation.smaller()
    call = _call(question, conversation, material, "")
    if material.reads:
        conversation, call = _fitting(question, conversation, material, smaller, material.reads, call)
    while True:
        (answer,) = yield (msgspec.structs.replace(call, prompt=call.prompt + once_more),)
        if isinstance(answer, Reply):
            longest = max(material.measure(call.prompt), 1)
            if not (why := flaw(answer, longest, material.measure) or usable(text_of(answer))):
                return Asked(answer, conversation.left_out)
            if once_more:
                return Asked(Failure("answer", why), conversation.left_out)
            once_more = _ONCE_MORE.format(why=why, tokens=material.room)
        elif answer.kind in ("overflow", "media"):
            less = next(smaller, None)
            if less is None:
                return Asked(answer, conversation.left_out)
            conversation, call = less, _call(question, less, material, _notes(less, material))
            if answer.window:
                conversation, call = _fitting(question, conversation, material, smaller, answer.window, call)
        else:
            return Asked(answer, conversation.left_out)


def _call(question: Question, conversation: Transcript, material: Material, notes: str) -> ModelCall:
    call = question(conversation, notes)
    return msgspec.structs.replace(call, media=conversation.media)


def _notes(conversation: Transcript, material: Material) -> str:
    room = min(_NOTES, int(len(conversation.text) * _NOTES_PART))
    return material.notes_on(room) if conversation.left_out else ""


def _fitting(
    question: Question,
    conversation: Transcript,
    material: Material,
    smaller: Iterator[Transcript],
    window: int,
    call: ModelCall,
) -> tuple[Transcript, ModelCall]:
    """The fullest telling that a window of this size can take, by estimate: what fails anyway is not sent."""
    room = max(int(window * _MARGIN) - (call.max_tokens or 0), int(window * _MARGIN * _LEAST_READ))
    limit = None if call.max_tokens is None else min(call.max_tokens, int(window * _MARGIN) - room)
    call = msgspec.structs.replace(call, max_tokens=limit)

    def fits(one: ModelCall) -> bool:
        return material.measure(one.system) + material.measure(one.prompt) <= room

    while not fits(call):
        less = next(smaller, None)
        if less is None:
            size = max(1, material.measure(call.prompt))
            less = conversation.newest(int(len(conversation.text) * room / size * _MARGIN))
            if less.left_out == conversation.left_out:
                break
        conversation = less
        call = msgspec.structs.replace(
            _call(question, conversation, material, _notes(conversation, material)), max_tokens=limit
        )
    return conversation, call
