"""The working folder: a link put in place of a folder or file after the check leads nowhere."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import InvalidInput
from holdfast.io.working_folder import WorkingFolder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no directory descriptors")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("work/logs", "outside/logs"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "tides.txt").write_text(name)
    return tmp_path


ACTS: dict[str, Callable[[WorkingFolder, Path], Any]] = {
    "read": lambda folder, path: folder.read_text(path, "replace"),
    "compare": lambda folder, path: folder.read_bytes(path),
    "write": lambda folder, path: folder.write(path, b"written"),
    "make": lambda folder, path: folder.write(path.parent / "new" / "file.txt", b"written"),
    "list": lambda folder, path: list(folder._walk(path.parent)),
}


@pytest.mark.parametrize("act", ACTS)
def test_folder_replaced_by_a_link_after_the_check_is_refused(place: Path, act: str) -> None:
    folder = WorkingFolder(place / "work")
    path = folder.resolve("logs/tides.txt")
    (place / "work" / "logs").rename(place / "work" / "before")
    (place / "work" / "logs").symlink_to(place / "outside" / "logs")
    with pytest.raises(InvalidInput, match="was replaced by a link meanwhile: it is not used"):
        ACTS[act](folder, path)
    assert [file.name for file in (place / "outside" / "logs").iterdir()] == ["tides.txt"]
    assert (place / "outside" / "logs" / "tides.txt").read_text() == "outside/logs"


def test_file_replaced_by_a_link_after_the_check_is_not_read_and_not_written_through(place: Path) -> None:
    folder = WorkingFolder(place / "work")
    path = folder.resolve("logs/tides.txt")
    path.unlink()
    path.symlink_to(place / "outside" / "logs" / "tides.txt")
    with pytest.raises(InvalidInput, match="replaced by a link"):
        folder.read_text(path, "replace")
    folder.write(path, b"inside")
    assert path.read_text() == "inside" and not path.is_symlink()
    assert (place / "outside" / "logs" / "tides.txt").read_text() == "outside/logs"


def test_pipes_and_folders_are_no_files(place: Path) -> None:
    folder = WorkingFolder(place / "work")
    os.mkfifo(place / "work" / "pipe")
    for name in ("pipe", "logs"):
        with pytest.raises(InvalidInput, match=f"There is no file {name}"):
            folder.open_text(folder.resolve(name))


def test_write_keeps_permissions_and_leaves_nothing_else(place: Path) -> None:
    folder = WorkingFolder(place / "work")
    path = folder.resolve("logs/tides.txt")
    path.chmod(0o751)
    folder.write(path, b"new")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", 0o751)
    folder.write(folder.resolve("a/b/c.txt"), b"deep")
    assert sorted(str(file.relative_to(place)) for file in (place / "work").rglob("*.txt")) == [
        "work/a/b/c.txt",
        "work/logs/tides.txt",
    ]
    assert not list((place / "work").rglob(".holdfast-*"))


@pytest.mark.parametrize("nameless", [True, False])
def test_write_killed_in_the_middle_leaves_nothing(
    place: Path, monkeypatch: pytest.MonkeyPatch, nameless: bool
) -> None:
    """Where the system has files without a name, not even until they are complete."""
    folder = WorkingFolder(place / "work")
    if not nameless:
        monkeypatch.delattr(os, "O_TMPFILE")
    left: list[list[str]] = []
    monkeypatch.setattr(os, "fsync", lambda _: left.append(sorted(os.listdir(place / "work" / "logs"))))
    for name in ("tides.txt", "new.txt"):
        folder.write(folder.resolve(f"logs/{name}"), b"text")
    assert (left == [["tides.txt"], ["tides.txt"]]) == nameless
    assert sorted(os.listdir(place / "work" / "logs")) == ["new.txt", "tides.txt"]


def test_nothing_outside_is_read_or_written_while_folder_and_link_are_swapped(place: Path) -> None:
    """Another process renames as fast as it can."""
    work, folder, stop = place / "work", WorkingFolder(place / "work"), threading.Event()

    def swap() -> None:
        logs, kept = work / "logs", work / "kept"
        while not stop.is_set():
            logs.rename(kept)
            with suppress(FileExistsError):  # the folder was made meanwhile, to write into it
                logs.symlink_to(place / "outside" / "logs")
            while kept.exists():
                with suppress(OSError):
                    logs.unlink() if logs.is_symlink() else shutil.rmtree(logs)
                    kept.rename(logs)

    swapping = threading.Thread(target=swap)
    swapping.start()
    found = set[str]()
    try:
        for number in range(400):
            with suppress(InvalidInput, OSError):
                path = folder.resolve("logs/tides.txt")
                found.add(folder.read_text(path, "replace"))
                folder.write(path.with_name("written.txt"), f"{number}".encode())
    finally:
        stop.set()
        swapping.join()
    assert "outside/logs" not in found
    assert [file.name for file in (place / "outside" / "logs").iterdir()] == ["tides.txt"]
