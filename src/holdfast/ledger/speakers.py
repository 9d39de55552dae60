"""Who speaks in the user's name: programs put their texts there too, in tags or in brackets."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .lines import Line

_PREFACES = 4
"""More messages than this are not looked at for the task."""

_TAG = re.compile(
    r"\s*<((?:local-command|command|bash|ide|system|environment|turn|permissions|user-prompt)[-_][\w-]+"
    r"|task-notification|user_instructions|skill)\b[^<>]*>"
)
"""As agents name theirs; whatever else stands in tags, a person wrote."""
_SKILL = re.compile(r"Base directory for this skill: ")
"""What an agent was told to read, not what anybody said."""
_PREFACE = re.compile(r"# AGENTS\.md instructions for ")
"""Standing rules that an agent puts before what its user asks for."""
_COMMAND = re.compile(r"/[\w:-]+")
"""Said to the program that shows the conversation, not to the agent."""
_SILENCE = "No response requested."
"""What a program puts where the assistant said nothing."""
_BRACKETS = re.compile(r"\s*\[(?:Request interrupted|[Ii]mage)[^\]\n]{0,120}\]\s*$")


def task_in(users: Sequence[Line]) -> Line | None:
    """What the user asked for first, behind any standing rules."""
    asked = (line for line in users[:_PREFACES] if not (_PREFACE.match(line.text) or _COMMAND.fullmatch(line.text)))
    return next(asked, users[0] if users else None)


def is_silent(said: str) -> bool:
    """Did the assistant say nothing, and a program fill its place?"""
    return said.strip() == _SILENCE


def by_speaker(text: str) -> tuple[str, str]:
    """What a person wrote, and what a program put before it."""
    if _BRACKETS.match(text) or _SKILL.match(text):
        return "", text
    at = 0
    while tag := _TAG.match(text, at):
        end = text.find(f"</{tag[1]}>", tag.end())
        if end < 0:
            break
        at = end + len(f"</{tag[1]}>")
    return text[at:].strip(), text[:at]
