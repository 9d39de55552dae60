"""Commands that the user or the project defines: a Markdown file each, whose text is sent as a prompt."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ...errors import InvalidInput
from ...io.files import read_regular_file
from ...settings import user_file
from .base import ChatCommand, CommandResult

if TYPE_CHECKING:
    from ..chat import Chat

_PROJECT_FOLDERS = (".holdfast/commands", ".claude/commands")
_USER_FOLDER = "commands"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_FRONT_MATTER = re.compile(r"\A---\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_PLACEHOLDER = re.compile(r"\$(ARGUMENTS|[1-9])")
_MAX_BYTES = 100_000


class CustomCommand(msgspec.Struct, frozen=True):
    """A command from a file."""

    name: str
    file: Path
    about: str
    hint: str
    """The arguments it takes, for its usage."""
    text: str

    @property
    def command(self) -> ChatCommand:
        usage = f"/{self.name} {self.hint}".strip()
        return ChatCommand(self.name, usage, self.about, partial(_run, self))

    def prompt(self, argument: str) -> str:
        """Returns the text with the arguments in it; at its end if it has no place for them."""
        if not _PLACEHOLDER.search(self.text):
            return f"{self.text}\n\n{argument}".strip()
        try:
            words = shlex.split(argument)
        except ValueError:
            words = argument.split()
        return _PLACEHOLDER.sub(lambda match: _value(match[1], argument, words), self.text)


def _value(placeholder: str, argument: str, words: list[str]) -> str:
    if placeholder == "ARGUMENTS":
        return argument
    return words[int(placeholder) - 1] if int(placeholder) <= len(words) else ""


async def _run(custom: CustomCommand, chat: Chat, argument: str) -> CommandResult:
    if not (prompt := custom.prompt(argument)):
        raise InvalidInput(f"{custom.file} is empty: write the prompt into it.")
    chat.send(prompt)
    return CommandResult("")


def custom_commands(chat: Chat, built_in: Iterable[str]) -> tuple[dict[str, CustomCommand], list[str]]:
    """Returns the custom commands by name, and a note for each that a built-in command of that name hides.

    The files are read each time, so that a new one works at once. Those of the folders closest to the working folder
    take precedence, then those of the folders above it, then the user's own.
    """
    found: dict[str, CustomCommand] = {}
    hidden: list[str] = []
    taken = set(built_in)
    for file, read in _command_files(chat):
        if file.stem.lower() in taken:
            hidden.append(f"{file} is not used: /{file.stem.lower()} is a built-in command. Rename the file.")
        elif file.stem.lower() not in found:
            try:
                found[file.stem.lower()] = _parse(file, (read(file, _MAX_BYTES) or b"").decode(errors="replace"))
            except (OSError, InvalidInput) as problem:
                hidden.append(f"{file} is not used: {getattr(problem, 'strerror', None) or problem}")
    return found, hidden


def _command_files(chat: Chat) -> Iterator[tuple[Path, Callable[[Path, int], bytes | None]]]:
    """Yields the files, each with the function that may read it."""
    places: list[tuple[Path, Callable[[Path, int], bytes | None]]] = []
    if (project := chat.project) is not None:
        places = [(place / folder, project.read) for place in project.folders for folder in _PROJECT_FOLDERS]
    for place, read in (*places, (user_file().with_name(_USER_FOLDER), read_regular_file)):
        with suppress(OSError):
            yield from ((file, read) for file in sorted(place.glob("*.md")) if _NAME.fullmatch(file.stem))


def _parse(file: Path, text: str) -> CustomCommand:
    fields: dict[str, str] = {}
    if front := _FRONT_MATTER.match(text):
        text = text[front.end() :]
        for line in front[1].splitlines():
            key, colon, value = line.partition(":")
            if colon:
                fields[key.strip()] = value.strip().strip("\"'")
    text = text.strip()
    about = fields.get("description") or f"send {file.name}: {text.partition(chr(10))[0]}"
    return CustomCommand(file.stem.lower(), file, about, fields.get("argument-hint", ""), text)
