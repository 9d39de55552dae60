"""Trust in folders: which a person has trusted, and the files of a project that may then be read.

A folder that came with a clone can hold instructions, commands, settings and servers for the agent. None of them is
read before a person has said that the folder is trusted. The decision is remembered with the folder's identity, and
holds for what lies below it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from .errors import InvalidInput
from .io.files import write_file_atomically
from .io.working_folder import WorkingFolder

FILES = (".holdfast", ".claude/commands", ".mcp.json", "AGENTS.md", "CLAUDE.md")
"""What a project may bring for the agent."""
TRUST_HINT = "trust it with holdfast trust, or once with --trust"


class Folder(msgspec.Struct, frozen=True):
    """The identity of a folder: another one put in its place is not this one."""

    path: str
    """The real path, links resolved."""
    device: int
    inode: int
    owner: int


def identify(path: Path) -> Folder:
    """Returns the identity of a folder; raises `InvalidInput` if there is none."""
    try:
        real = path.resolve(strict=True)
        state = real.stat()
    except (OSError, RuntimeError) as problem:
        raise InvalidInput(f"{path} is not a folder ({problem}): name an existing one.") from None
    if not real.is_dir():
        raise InvalidInput(f"{path} is not a folder: name an existing one.")
    return Folder(str(real), state.st_dev, state.st_ino, state.st_uid)


class FolderDecision(msgspec.Struct, frozen=True):
    """What a person said about a folder."""

    folder: Folder
    trusted: bool


class Project(msgspec.Struct, frozen=True):
    """The trusted folders around a working folder. Their files are read here and nowhere else."""

    root: Path
    """The outermost one."""
    folders: tuple[Path, ...]
    """From the working folder up to the root of its repository, at most to `root`."""
    owners: frozenset[int]
    """Whose files are read: the user's, and those of the owner of the trusted folder."""

    def read(self, path: Path, limit: int) -> bytes | None:
        """Returns the beginning of a file; None if there is none.

        Raises `InvalidInput` for a link out of the project, which could name any file of the user, for what is no
        regular file, which may never end, and for a file of somebody else.
        """
        folder = WorkingFolder(self.root)
        real = folder.resolve(str(path))
        data = folder.read_bytes(real, limit, self.owners)
        if data is None and real.exists():
            raise InvalidInput(f"{path} is not a regular file, or belongs to another user.")
        return data


def _own_id() -> int:
    return os.geteuid() if hasattr(os, "geteuid") else 0  # Windows: files have no such owner, all are 0


class TrustedFolders:
    """The decisions of a person, in a file."""

    def __init__(self, file: Path, home: Path) -> None:
        self._file, self._home = file, home

    @property
    def decisions(self) -> list[FolderDecision]:
        """All decisions, in the order in which they were made."""
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=list[FolderDecision])
        except (FileNotFoundError, NotADirectoryError):
            return []
        except (OSError, msgspec.DecodeError) as problem:
            raise InvalidInput(
                f"The file of trusted folders {self._file} cannot be read ({problem}): delete it."
            ) from None

    def decide(self, folder: Path, trusted: bool) -> None:
        """Remembers a decision, in place of the last one about this folder."""
        about = identify(folder)
        self._save([*(one for one in self.decisions if one.folder.path != about.path), FolderDecision(about, trusted)])

    def forget(self, folder: Path) -> None:
        """Forgets the decision about a folder; raises `InvalidInput` if there is none."""
        path = os.path.realpath(folder)
        left = [one for one in self.decisions if one.folder.path != path]
        if len(left) == len(self.decisions):
            raise InvalidInput(f"Nothing was decided about {path}: holdfast trust --list shows what was.")
        self._save(left)

    def _save(self, decisions: Sequence[FolderDecision]) -> None:
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_file_atomically(self._file, msgspec.json.format(msgspec.json.encode(decisions)), new_mode=0o600)

    def decision_for(self, folder: Path) -> FolderDecision | None:
        """Returns the decision that holds for a folder: its own, or that of the nearest folder above with one.

        That of a folder above does not hold below a folder of another user, who could plant files there, nor that of
        the home folder, which holds everything.
        """
        known = {one.folder.path: one for one in self.decisions}
        real = Path(os.path.realpath(folder))
        owners = {_own_id()}
        for place in (real, *real.parents):
            try:
                here = identify(place)
            except InvalidInput:
                return None
            if (found := known.get(here.path)) is not None and found.folder == here:
                is_inherited = place != real
                holds = owners <= {_own_id(), here.owner} and not (is_inherited and self._is_wide(place))
                return found if holds else None
            owners.add(here.owner)
        return None

    def _is_wide(self, place: Path) -> bool:
        return place == self._home or place in self._home.parents

    def project(self, folder: Path, *, trust: bool = False) -> Project | None:
        """Returns the project of a folder; None unless it is trusted. `trust` trusts it without remembering it."""
        if not (real := Path(os.path.realpath(folder))).is_dir():
            return None
        if trust:
            root = self.root_of(real)
        elif (decision := self.decision_for(real)) is not None and decision.trusted:
            root = Path(decision.folder.path)
        else:
            return None
        folders = []
        for place in (real, *real.parents):
            folders.append(place)
            if place == root or (place / ".git").exists():
                break
        return Project(root, tuple(folders), frozenset((_own_id(), root.stat().st_uid)))

    def root_of(self, folder: Path) -> Path:
        """Returns the folder to ask about: the root of the repository, if the user owns all up to it, else this one."""
        real = Path(os.path.realpath(folder))
        for place in (real, *real.parents):
            if identify(place).owner != _own_id() or self._is_wide(place):
                return real
            if (place / ".git").exists():
                return place
        return real


def found_in(folder: Path) -> list[str]:
    """Returns which of `FILES` a folder has, without reading them."""
    return [name for name in FILES if os.path.lexists(folder / name)]
