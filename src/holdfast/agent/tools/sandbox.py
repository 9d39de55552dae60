"""Commands inside bubblewrap: they write only in the working folder and a private /tmp, and have no network.

It wraps the program `bwrap` and is no sandbox of its own. What it does not stop: reading files of the user, making a
protected file that does not exist yet, and moving a folder with one in it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ...errors import InvalidInput
from .protected_paths import protected_name

_CHECK_SECONDS = 10


class Sandbox(msgspec.Struct, frozen=True):
    """How commands are confined."""

    network: bool = False

    def require(self) -> None:
        """Raises `InvalidInput` if bubblewrap is missing or cannot run here."""
        if shutil.which("bwrap") is None:
            raise InvalidInput("A sandbox needs bubblewrap (bwrap), on Linux: install it, or leave out the option.")
        tried = subprocess.run(  # noqa: S603 - arguments of our own
            [*self._options(), "true"], capture_output=True, text=True, timeout=_CHECK_SECONDS, check=False
        )
        if tried.returncode:
            why = tried.stderr.strip() or f"exit code {tried.returncode}"
            raise InvalidInput(f"bubblewrap cannot make a sandbox here ({why}): allow user namespaces to this user.")

    def wrap(self, command: str, folder: Path) -> list[str]:
        """Returns the program and arguments that run a shell command in the folder."""
        place = str(folder)
        kept = [word for path in _protected_below(folder) for word in ("--ro-bind", path, path)]
        return [*self._options(), "--bind", place, place, *kept, "--chdir", place, "/bin/sh", "-c", command]

    def _options(self) -> list[str]:
        words = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]  # noqa: S108
        words += ["--tmpfs", "/run"]  # without the sockets of services, such as docker's
        words += ["--unshare-all", "--die-with-parent", "--new-session"]
        names = os.path.realpath("/etc/resolv.conf")  # often a link to below /run
        return [*words, "--share-net", "--ro-bind-try", names, names] if self.network else words


def _protected_below(folder: Path) -> Iterator[str]:
    """Yields protected files and folders; of links, where they lead inside the folder."""
    for place, folders, names in os.walk(folder):
        found = {name for name in (*folders, *names) if protected_name(name)}
        folders[:] = [name for name in folders if name not in found]
        for name in sorted(found):
            real = Path(place, name).resolve()
            if real.is_relative_to(folder) and real != folder and real.exists():
                yield str(real)
