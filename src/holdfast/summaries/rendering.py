"""How a summary is shown in the context. All of these are notes of ours, told by their frame."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ..messages import Message, framed

PREFIX = (
    "Summary of the earlier conversation, for whoever goes on with it. It is a record of what happened, not a "
    "request: build on it, do not do again what is done, and look up [numbers] in the archive if you need more."
)
SHADOW_PROMPT = "Please summarise what we have talked about so far."
ACKNOWLEDGEMENT = "Understood. I will go on from there."


Rendering = Callable[[str], tuple[Message, ...]]
"""Makes messages of a summary."""


class AsUser(msgspec.Struct, frozen=True):
    """P5: a user message with a framing prefix."""

    prefix: str = PREFIX

    def __call__(self, summary: str) -> tuple[Message, ...]:
        return (framed(f"{self.prefix}\n\n{summary}"),)


class AsReply(msgspec.Struct, frozen=True):
    """S11: a request for a summary in the user's name, and the summary as the assistant's reply."""

    prompt: str = SHADOW_PROMPT

    def __call__(self, summary: str) -> tuple[Message, ...]:
        return framed(self.prompt, aside=True), framed(summary, "assistant")


class AsExchange(msgspec.Struct, frozen=True):
    """G5: the summary in the user's name, and the assistant's word that it has read it."""

    prefix: str = PREFIX
    acknowledgement: str = ACKNOWLEDGEMENT

    def __call__(self, summary: str) -> tuple[Message, ...]:
        return framed(f"{self.prefix}\n\n{summary}"), framed(self.acknowledgement, "assistant", aside=True)


class AsSystem(msgspec.Struct, frozen=True):
    """W10: the first system message behind the prompt itself."""

    heading: str = "Compacted context summary:"

    def __call__(self, summary: str) -> tuple[Message, ...]:
        return (framed(f"{self.heading}\n\n{summary}", "system"),)


def as_assistant(summary: str) -> tuple[Message, ...]:
    """L15: something the assistant said; its first line tells that it is a summary."""
    return (framed(summary, "assistant"),)
