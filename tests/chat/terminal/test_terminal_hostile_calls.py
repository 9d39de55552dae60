"""Hostile tool calls in one real chat: none does what the screen did not show, and none leaves the folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from terminal_harness import TerminalChat
from terminal_screens import EmulatedTerminal

from holdfast.context.events import try_message_in

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
LINES = "\n".join(f"echo line {number}" for number in range(41))


class Hostile(NamedTuple):
    """A tool call, and what must come of it."""

    arguments: Mapping[str, str]
    shown: tuple[str, ...] = ()
    """On the screen when the user is asked; empty if the call must be refused without a question."""
    keys: str = "n"
    """The answer; y before the end was on the screen is none."""
    meanwhile: Callable[[Path], object] = lambda folder: None
    """Done to the folder while the question is open."""
    result: str = "did not allow"
    """In the result that the model gets."""
    hold: Callable[[Path], bool] = lambda folder: True
    """What must be true of the folder at the end."""


def command(text: str, *shown: str, **more: Any) -> Hostile:
    return Hostile({"command": text}, shown, **more)


def write(path: str, *shown: str, content: str = "evil\n", **more: Any) -> Hostile:
    return Hostile({"path": path, "content": content}, shown, **more)


def edit(path: str, old: str, new: str, *shown: str, **more: Any) -> Hostile:
    return Hostile({"path": path, "old": old, "new": new}, shown, **more)


def swap(path: Path, target: Path) -> None:
    """Puts a link where a file or folder was."""
    path.rename(path.with_name(f"{path.name}-moved"))
    path.symlink_to(target)


def unchanged(name: str, text: str = "calm\n") -> Callable[[Path], bool]:
    return lambda folder: (folder / name).read_text() == text


REFUSED = {"result": "outside the working folder"}
CHANGED = {"keys": "y", "result": "has changed since"}
CASES = {
    # -- what a command hides from the eye ---------------------------------------------------------
    "tail after many lines": command(f"{LINES}\ntouch tail-1", "lines 1-12 of 43 ↓ Space: more", keys="yyn"),
    "tail after blank lines": command("true" + "\n" * 60 + "touch tail-2", "lines 1-12 of 62", keys="yyn"),
    "tail of a long line": command(f"echo {'calm ' * 2_000}; touch tail-3", "lines 1-12 of 134", keys="yyn"),
    "tail right of many blanks": command("true" + " " * 900 + "; touch tail-4", "true␣×900; touch tail-4"),
    "blank that is no space": command("echo\u00a0a\u3000b tail-22", r"echo\u00a0a\u3000b tail-22"),
    "bidirectional": command("echo \u202etxt.exe\u2066 tail-5", r"\u202etxt.exe\u2066 tail-5"),
    "colors that hide": command("echo a\x1b[8m; touch tail-6\x1b[0m", "^[[8m; touch tail-6^[[0m"),
    "title": command("echo \x1b]0;owned\x07 tail-7", "^[]0;owned^G tail-7"),
    "hyperlink": command("echo \x1b]8;;http://evil\x1b\\safe tail-8", "^[]8;;http://evil^[\\safe tail-8"),
    "C1 controls": command("echo \x9b2J\x9d0;owned\x9c tail-9", r"\x9b".replace("x", "u00") + "2J"),
    "zero width": command("echo r\u200bm\ufeff tail-10", r"r\u200bm\ufeff tail-10"),
    "tag characters": command("echo \U000e0041\U000e0042 tail-11", r"\U000e0041\U000e0042 tail-11"),
    "carriage return": command("touch tail-12\recho harmless", "touch tail-12^Mecho harmless"),
    "CRLF": command("echo one\r\ntouch tail-13", "1 echo one^M", "2 touch tail-13"),
    "backspaces": command("touch tail-14\b\b\b\b\bls", "touch tail-14^H^H^H^H^Hls"),
    "line separators": command("echo\u2028touch tail-15\u0085", r"echo\u2028touch tail-15\u0085"),
    "tabs": command("echo\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t;touch tail-16", ";touch tail-16"),
    "stacked marks": command("echo e" + "\u0301" * 9 + "; touch tail-17", r"\u0301; touch tail-17"),
    "wide characters": command("echo " + "界" * 60 + "; touch tail-18", "; touch tail-18"),
    "NUL": command("echo a\0; touch tail-19", "a^@; touch tail-19", keys="y", result="null byte"),
    "Markdown and markup": command("echo [bold]x[/] **y** tail-20", "echo [bold]x[/] **y** tail-20"),
    # -- paths that lead outside ---------------------------------------------------------------------
    "parent folder": write("../outside.txt", **REFUSED),
    "parent inside a path": write("logs/../../outside.txt", **REFUSED),
    "absolute path": write("/etc/holdfast-evil", **REFUSED),
    "home": write("~/outside.txt", **REFUSED),
    "/proc/self/cwd": write("/proc/self/cwd/evil.txt", **REFUSED),
    "/proc/self/root": edit("/proc/self/root/etc/hostname", "a", "b", **REFUSED),
    "link to a file": write("link.txt", **REFUSED),
    "link to a folder": write("way/outside.txt", **REFUSED),
    "NUL in a path": write("a\0b", result="not a valid path"),
    "pipe": write("pipe", result="is a device or a pipe"),
    "hard link": write(
        "hard.txt", "hard.txt  replaces 1 line", keys="y", result="Replaced", hold=unchanged("hard.txt", "evil\n")
    ),
    "invisible name": write("calm\u200b.txt", r"calm\u200b.txt  new file", hold=unchanged("calm.txt")),
    "line in a name": write("a\nb.txt", r"a\u2028b.txt  new file"),
    # -- changes that a diff could hide --------------------------------------------------------------
    "escape that becomes its character": edit(
        "code.py",
        r"\u202e",
        "\u202e",
        "code.py replaces 1 line",
        "1 - x",
        "1 + x",
        hold=unchanged("code.py", 'x = "\\u202e"\n'),
    ),
    "line ends only": write("calm.txt", "1 - calm", "1 + calm^M", content="calm\r\n", hold=unchanged("calm.txt")),
    "last newline only": write("calm.txt", "1 + calm  (no newline at the end)", content="calm"),
    "byte that is no text": edit("bytes.bin", "calm", r"\xff", r"1 - calm\xff", r"1 + \xff\xff"),
    # -- changes between the question and the answer -------------------------------------------------
    "file changed": write(
        "race-1.txt", "race-1.txt  replaces", meanwhile=lambda at: (at / "race-1.txt").write_text("mine\n"), **CHANGED
    ),
    "file swapped by a link": write(
        "race-2.txt",
        "race-2.txt  replaces",
        meanwhile=lambda at: swap(at / "race-2.txt", at.parent / "outside.txt"),
        **CHANGED | {"result": "outside the working folder"},
    ),
    "file swapped by a link inside": write(
        "race-3.txt", "race-3.txt  replaces", meanwhile=lambda at: swap(at / "race-3.txt", at / "calm.txt"), **CHANGED
    ),
    "folder swapped by a link": write(
        "logs/race-4.txt",
        "logs/race-4.txt  replaces",
        meanwhile=lambda at: swap(at / "logs", at.parent / "elsewhere"),
        **CHANGED | {"result": "outside the working folder"},
    ),
    "new file that exists meanwhile": write(
        "race-5.txt", "race-5.txt  new file", meanwhile=lambda at: (at / "race-5.txt").write_text("mine\n"), **CHANGED
    ),
    "working folder swapped by a link": command(
        "touch tail-21",
        "$ touch tail-21",
        keys="y",
        meanwhile=lambda at: swap(at, at.parent / "elsewhere"),
        result="replaced by a link",
    ),
}
TOOLS = {("command",): "run_command", ("path", "content"): "write_file", ("path", "old", "new"): "edit_file"}


def prepare(place: Path, folder: Path) -> None:
    """Fills the folder, and one outside it that must stay as it is."""
    (place / "elsewhere").mkdir()
    (folder / "logs").mkdir()
    for name in ("outside.txt", "elsewhere/race-4.txt", "elsewhere/outside.txt"):
        (place / name).write_text("calm\n")
    for name in ("calm.txt", "race-1.txt", "race-2.txt", "race-3.txt", "logs/race-4.txt"):
        (folder / name).write_text("calm\n")
    (folder / "bytes.bin").write_bytes(b"calm\xff\n")
    (folder / "code.py").write_text('x = "\\u202e"\n')
    (folder / "link.txt").symlink_to(place / "outside.txt")
    (folder / "way").symlink_to(place / "elsewhere")
    os.link(place / "outside.txt", folder / "hard.txt")
    os.mkfifo(folder / "pipe")


def test_hostile_calls_do_only_what_was_shown(terminal: Callable[..., TerminalChat]) -> None:
    chat = terminal(screen := EmulatedTerminal())
    prepare(chat.place, chat.folder)
    steps = [
        {"text": f"Next: {name}.", "calls": [{"name": TOOLS[tuple(case.arguments)], "arguments": case.arguments}]}
        for name, case in CASES.items()
    ]
    chat.start(chat.script(*steps, "That was all."), "--no-auto-compact", size=(80, 24))
    chat.send("Go on.")
    for name, case in CASES.items():
        if case.shown:
            chat.wait_for_text(f"Next: {name}.", "May the agent use", *(" ".join(text.split()) for text in case.shown))
            if case.keys == "y":
                chat.wait_for_text("y yes")
            case.meanwhile(chat.folder)
            chat.press(*case.keys, *(["Enter"] if case.keys.endswith("n") else []))
    chat.wait_for_text("That was all.")
    moved = chat.folder.with_name("harbor-moved")
    messages = filter(None, map(try_message_in, chat.events()))
    results = [result.text for message in messages for result in message.results]
    for (name, case), result in zip(CASES.items(), results, strict=True):
        assert case.result in result, f"{name}: {result}"
        assert case.hold(moved), name
    assert not [file.name for file in (*moved.iterdir(), *(chat.place / "elsewhere").iterdir()) if "tail" in file.name]
    for name in ("outside.txt", "elsewhere/race-4.txt", "elsewhere/outside.txt"):
        assert (chat.place / name).read_text() == "calm\n", name
    for sequence in (b"\x1b]0;owned", b"\x1b]8;", "\u202e".encode(), "\u200b".encode(), b"\x1b[8m"):
        assert sequence not in screen.raw, sequence
