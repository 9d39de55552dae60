"""What a user asked for, as the title of a session: the first line of a request, and what it announces."""

from __future__ import annotations

import re

from ..io.text import first_line
from ..messages import Message, is_note

_BY_A_TOOL = re.compile(
    r"\s*(?:# AGENTS\.md instructions for |<(?:INSTRUCTIONS|environment_context|user_instructions|system-reminder"
    r"|local-command-|bash-)|Base directory for this skill: |Caveat: The messages below were generated"
    r"|\[Request interrupted by user)"
)
"""What agents add in the user's voice."""
_COMMAND = re.compile(r"<command-name>\s*(/?[^<]*?)\s*</command-name>")
_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)


def request_title(message: Message) -> str:
    """Returns the title of a user's request; empty if a tool wrote the message, or it has no words."""
    text = message.text
    if is_note(message) or _BY_A_TOOL.match(text):
        return ""
    if text.lstrip().startswith("<command-") and (command := _COMMAND.search(text)) is not None:
        arguments = _ARGUMENTS.search(text)
        return first_line(f"{command[1]} {' '.join(arguments[1].split()) if arguments else ''}")
    title = first_line(text)
    if title.endswith(":"):  # the plan, the error or the list that it announces tells more
        lines = (first_line(line.lstrip("#-*> \t`")) for line in text.lstrip().splitlines()[1:])
        title = " ".join(filter(None, (title, next(filter(None, lines), ""))))
    return title
