"""What a command is, and what it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from ...errors import InvalidInput

if TYPE_CHECKING:
    from ..chat import Chat

    Run = Callable[[Chat, str], Awaitable["Page"]]
    """Takes what stands behind the name."""
    Complete = Callable[[Chat, Sequence[str]], Awaitable[Iterable[str]]]
    """Takes the words behind the name, the last of them unfinished, and says what that may become."""


class Page(msgspec.Struct, frozen=True):
    """What a person is shown."""

    text: str
    draft: str | None = None
    """What to put into the input, to be changed and sent."""
    quit: bool = False


class Command(msgspec.Struct, frozen=True):
    name: str
    """Without its slash."""
    usage: str
    about: str
    run: Run
    complete: Complete | None = None


def words_of(argument: str, most: int, usage: str) -> list[str]:
    """The words of an argument, padded with empty ones; more than there may be are refused."""
    words = argument.split()
    if len(words) > most:
        raise InvalidInput(f"{words[most]!r} is one word too many: the command is {usage}.")
    return words + [""] * (most - len(words))


def first_word(argument: str) -> tuple[str, str]:
    """The first word, and what follows it as it was written."""
    word, rest = [*argument.split(None, 1), "", ""][:2]
    return word, rest.strip()
