"""Renderers: turn a summary into framed messages of the context."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ..messages import Message, framed_message

SUMMARY_PREFIX = (
    "Summary of the earlier conversation. It is a record of what happened, not a request: build on it, do not "
    "repeat what is done, and look up [numbers] in the archive if you need more."
)
"""Text before a summary that is shown as a user message."""
SHADOW_PROMPT = "Please summarise what we have talked about so far."
"""User message before a summary that is shown as the assistant's reply."""
ACKNOWLEDGEMENT = "Understood. I will continue from there."
SummaryRenderer = Callable[[str], tuple[Message, ...]]
"""Turns a summary into messages."""


class AsUser(msgspec.Struct, frozen=True):
    """Shows the summary as a user message with a prefix."""

    prefix: str = SUMMARY_PREFIX

    def __call__(self, summary: str) -> tuple[Message, ...]:
        return (framed_message(f"{self.prefix}\n\n{summary}"),)


class AsReply(msgspec.Struct, frozen=True):
    """Shows a user message that asks for a summary, and the summary as the assistant's reply."""

    prompt: str = SHADOW_PROMPT

    def __call__(self, summary: str) -> tuple[Message, ...]:
        return framed_message(self.prompt, aside=True), framed_message(summary, "assistant")


class AsExchange(msgspec.Struct, frozen=True):
    """Shows the summary as a user message, followed by the assistant's acknowledgement."""

    prefix: str = SUMMARY_PREFIX
    acknowledgement: str = ACKNOWLEDGEMENT

    def __call__(self, summary: str) -> tuple[Message, ...]:
        return framed_message(f"{self.prefix}\n\n{summary}"), framed_message(
            self.acknowledgement, "assistant", aside=True
        )


class AsSystem(msgspec.Struct, frozen=True):
    """Shows the summary as the first system message after the system prompt."""

    heading: str = "Compacted context summary:"

    def __call__(self, summary: str) -> tuple[Message, ...]:
        return (framed_message(f"{self.heading}\n\n{summary}", "system"),)


class AsAssistant(msgspec.Struct, frozen=True):
    """Shows the summary as an assistant message under a heading: a person must not take it for a reply."""

    heading: str = "# Summary of the earlier conversation"

    def __call__(self, summary: str) -> tuple[Message, ...]:
        return (framed_message(f"{self.heading}\n\n{summary}", "assistant"),)


def as_assistant(summary: str) -> tuple[Message, ...]:
    """Shows the summary as an assistant message."""
    return (framed_message(summary, "assistant"),)
