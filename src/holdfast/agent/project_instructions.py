"""Project instructions: `AGENTS.md` and `CLAUDE.md` of the user and of the working folder, for the system prompt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

INSTRUCTION_FILES = ("AGENTS.md", "CLAUDE.md")
MAX_FILE_CHARACTERS = 32_000
"""Of one file."""
MAX_CHARACTERS = 64_000
"""Of all files together."""
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
    own: Path, folders: Sequence[Path], limit: int = MAX_CHARACTERS
) -> tuple[tuple[InstructionFile, ...], tuple[str, ...]]:
    """Reads the files of the user's folder `own`, then of `folders`, which are given from the outermost inwards.

    Returns the files, at most `limit` characters together, and a note for each file that was cut or left out. The
    files closest to the working folder are cut last. A link of a project that leads outside of it is not followed:
    it could name any file of the user.
    """
    limit = min(limit, MAX_CHARACTERS)
    found, notes = _read_all(own, folders)
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


def _read_all(own: Path, folders: Sequence[Path]) -> tuple[list[InstructionFile], list[str]]:
    """Returns the files without repeated ones: `CLAUDE.md` is often a link to `AGENTS.md`."""
    files: dict[str, InstructionFile] = {}
    notes: list[str] = []
    for folder in (own, *folders):
        for path in (folder / name for name in INSTRUCTION_FILES):
            try:
                if not path.is_file():
                    continue
                if folder is not own and not path.resolve().is_relative_to(folders[0].resolve()):
                    notes.append(f"{path} is a link out of the project, and was not read.")
                    continue
                text = path.read_text(encoding="utf-8", errors="replace").strip()
            except OSError as problem:
                notes.append(f"{path} cannot be read ({problem.strerror}).")
                continue
            if text:
                files.setdefault(text, InstructionFile(_display_path(path, folders), text, len(text)))
    return list(files.values()), notes


def _display_path(path: Path, folders: Sequence[Path]) -> str:
    """Returns the name of a file of the working folder, which is the last of `folders`; else the whole path."""
    return path.name if folders and path.parent == folders[-1] else str(path)


def with_instructions(system: str, files: Iterable[InstructionFile]) -> str:
    """Returns the system prompt followed by the instructions, each under its path."""
    sections = []
    for file in files:
        cut = f"\n[… {file.characters - len(file.text):,} more characters: read {file.path}]" if file.is_cut else ""
        sections.append(f'<instructions path="{file.path}">\n{file.text}{cut}\n</instructions>')
    return "\n\n".join([system, _HEADING, *sections]) if sections else system
