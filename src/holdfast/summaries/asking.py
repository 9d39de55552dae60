"""Asking for a summary, and what to try next where that fails: less to read, or a plainer question (P9).

An input that is too long is told with less and less of it; an answer that is none is asked for once more.
Everything else is for the caller to know. The calls are bounded by the steps there are.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile

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
    window, once_more = material.reads, ""
    conversation, call = _fitting(question, material.conversation, material, window)
    smaller = conversation.smaller()
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
            window = answer.window or window
            conversation, call = _fitting(question, less, material, window)
            if conversation is not less:
                smaller = conversation.smaller()
        else:
            return Asked(answer, conversation.left_out)


def answer_within(call: ModelCall, window: int | None) -> ModelCall:
    """The call, with an answer no longer than a window of this size can hold beside the question."""
    if not window or call.max_tokens is None:
        return call
    most = max(1, int(window * _MARGIN * (1 - _LEAST_READ)))
    return msgspec.structs.replace(call, max_tokens=min(call.max_tokens, most))


def _call(question: Question, conversation: Transcript, material: Material, window: int | None) -> ModelCall:
    notes = ""
    if conversation.left_out:
        notes = material.notes_on(min(_NOTES, int(len(conversation.text) * _NOTES_PART)))
    call = msgspec.structs.replace(question(conversation, notes), media=conversation.media)
    return answer_within(call, window)


def _fitting(
    question: Question, conversation: Transcript, material: Material, window: int | None
) -> tuple[Transcript, ModelCall]:
    """As full a telling as a window of this size can take, by estimate: what fails anyway is not sent."""
    call = _call(question, conversation, material, window)
    if not window:
        return conversation, call
    room = int(window * _MARGIN) - (call.max_tokens or 0)
    told = conversation.left_out
    plainer = takewhile(lambda less: less.left_out == told, conversation.smaller())
    while (size := material.measure(call.system) + material.measure(call.prompt)) > room:
        less = next(plainer, None) or conversation.newest(int(len(conversation.text) * room / size * _MARGIN))
        if less == conversation:
            break
        conversation, call = less, _call(question, less, material, window)
    return conversation, call
