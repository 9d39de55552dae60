"""Project instructions: `AGENTS.md` and `CLAUDE.md` of the user and of the working folder, for the system prompt."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from xml.sax.saxutils import quoteattr

import msgspec

from ..errors import InvalidInput
from ..io.files import read_regular_file
from ..io.text import sanitize_line
from ..summaries.prompts import delimiter_tag
from ..trust import Project

INSTRUCTION_FILES = ("AGENTS.md", "CLAUDE.md")
MAX_FILE_CHARACTERS = 32_000
"""Of one file."""
MAX_CHARACTERS = 64_000
"""Of all files together."""
_MAX_BYTES = 1_000_000
"""Read of one file."""
_MIN_CHARACTERS = 200
"""Less than this is not worth sending of a file that does not fit."""
_HEADING = (
    "Project instructions follow, written by the user and the project's authors; they apply to all work in the "
    "working folder. Where two of them disagree, the later one is closer to the folder and takes precedence."
)


class InstructionFile(msgspec.Struct, frozen=True):
    """A file of instructions as it is sent to the model."""

    path: str
    text: str
    """As sent: without the end if the file is too long."""
    characters: int
    """Of the whole file."""

    @property
    def is_cut(self) -> bool:
        return len(self.text) < self.characters

    @property
    def summary(self) -> str:
        """Name and size, and whether it was cut."""
        size = f"{len(self.text):,} of {self.characters:,}" if self.is_cut else f"{self.characters:,}"
        return f"{self.path} ({size} characters{', cut' if self.is_cut else ''})"


def read_instructions(
    own: Path, project: Project | None, limit: int = MAX_CHARACTERS
) -> tuple[tuple[InstructionFile, ...], tuple[str, ...]]:
    """Reads the files of the user's folder `own`, then those of a trusted project, from the outermost folder inwards.

    Returns the files, at most `limit` characters together, and a note for each file that was cut or left out. The
    files closest to the working folder are cut last.
    """
    limit = min(limit, MAX_CHARACTERS)
    found, notes = _read_all(own, project)
    kept: list[InstructionFile] = []
    for file in reversed(found):
        room = min(MAX_FILE_CHARACTERS, limit - sum(len(one.text) for one in kept))
        if file.characters <= room:
            kept.insert(0, file)
            continue
        sent = file.text[:room] if room >= _MIN_CHARACTERS else ""
        if sent:
            kept.insert(0, msgspec.structs.replace(file, text=sent))
        what = f"only the first {len(sent):,} are sent" if sent else "it is left out"
        notes.append(f"{file.path} has {file.characters:,} characters of instructions: {what}.")
    return tuple(kept), tuple(notes)


def _read_all(own: Path, project: Project | None) -> tuple[list[InstructionFile], list[str]]:
    """Returns the files without repeated ones: `CLAUDE.md` is often a link to `AGENTS.md`."""
    files: dict[str, InstructionFile] = {}
    notes: list[str] = []
    folders = project.folders if project is not None else ()
    for folder in (own, *reversed(folders)):
        for path in (folder / name for name in INSTRUCTION_FILES):
            try:
                if not path.exists():
                    continue
                read = read_regular_file if project is None or folder is own else project.read
                data = read(path, _MAX_BYTES)
            except (OSError, InvalidInput) as problem:
                notes.append(f"{path} was not read: {getattr(problem, 'strerror', None) or problem}")
                continue
            if text := (data or b"").decode(errors="replace").strip():
                name = path.name if folders and folder == folders[0] else str(path)
                files.setdefault(text, InstructionFile(name, text, len(text)))
    return list(files.values()), notes


def with_instructions(system: str, files: Iterable[InstructionFile]) -> str:
    """Returns the system prompt followed by the instructions, each under its path, in a tag that it cannot close."""
    sections = []
    for file in files:
        more = f"{file.characters - len(file.text):,} more characters: read {sanitize_line(file.path)}"
        text, tag = file.text + f"\n[… {more}]" * file.is_cut, delimiter_tag("instructions", file.text)
        sections.append(f"<{tag} path={quoteattr(file.path)}>\n{text}\n</{tag}>")
    return "\n\n".join([system, _HEADING, *sections]) if sections else system
