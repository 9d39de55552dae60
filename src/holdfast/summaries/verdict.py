"""Is this a summary? What is blank, cut off, a call, a refusal, or longer than what it is about, is none (H3)."""

from __future__ import annotations

import re
from collections.abc import Callable

from ..calls import Reply
from .readable import readable
from .thoughts import without_thoughts

"""Some models leave out the opening tag."""
_WRAPPED = re.compile(r"\A\s*<(summary|state_snapshot)>\s*(.*?)\s*</\1>\s*\Z", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"\A```[\w-]*\n(.*)\n```\s*\Z", re.DOTALL)
_CALL = re.compile(r"\A\s*(?:<tool_call>|<function_calls?>|<invoke\b|\{\s*\"(?:name|tool|function)\"\s*:)")
_REFUSAL = re.compile(
    r"(?i)\A\W*(?:i['’]?m sorry|sorry|i am sorry|unfortunately|i can(?:['’]|no)t|i am unable|i['’]?m unable|as an ai)\b"
)
_LONGEST_REFUSAL = 400


def text_of(reply: Reply) -> str:
    """What a model wrote, without its thoughts and its wrapping; a tag inside a line is something that it quotes."""
    text = without_thoughts(readable(reply.text)).strip()
    if (fence := _FENCE.match(text)) and not _ends_first(fence[1]):
        text = fence[1].strip()
    if wrapped := _WRAPPED.match(text):
        text = wrapped[2].strip()
    return text


def _ends_first(inside: str) -> bool:
    """Does the block that a text begins with end before the text does? Then it is no wrapping of the whole."""
    return next((line.strip() == "```" for line in inside.splitlines() if line.startswith("```")), False)


def flaw(reply: Reply, longest: int, measure: Callable[[str], int]) -> str:
    """Why this answer is not to be used, in words; empty if it is."""
    if reply.finish == "length":
        return "the answer was cut off at its limit"
    if reply.finish == "tool_call":
        return "it called a tool instead of answering"
    if reply.finish == "refused":
        return "the provider withheld the answer"
    text = text_of(reply)
    if not text:
        return "the answer is blank"
    if _CALL.match(text):
        return "it wrote a tool call instead of an answer"
    if len(text) <= _LONGEST_REFUSAL and _REFUSAL.match(text):
        return "it refused"
    if measure(text) > longest:
        return "the answer is longer than what it is about"
    return ""
