"""Real terminals to run the chat in: tmux where it is installed, else a pseudo-terminal with an emulator.

Both take the same keys, in tmux's names, and return the screen as text. Waiting polls the screen until a generous
time-out.
"""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import pyte

TIMEOUT = 30.0
"""Seconds."""
_POLL_INTERVALS = (0.01, 0.1)
"""Seconds between two looks at the screen: short at first, since most texts appear at once, then longer."""
_KEYS = {
    "Enter": "\r",
    "Escape": "\x1b",
    "Tab": "\t",
    "BTab": "\x1b[Z",
    "Up": "\x1b[A",
    "Down": "\x1b[B",
    "PageUp": "\x1b[5~",
    "PageDown": "\x1b[6~",
    "M-Enter": "\x1b\r",
    "M-Up": "\x1b[1;3A",
    "BSpace": "\x7f",
}
_UNSUPPORTED_SEQUENCES = re.compile(rb"\x1b\[(?:[<>=][0-9;]*[A-Za-z]|\?[0-9;]*\$p)")
"""Queries of newer terminals, which the emulator would print."""


class Screen(Protocol):
    def start(self, command: Sequence[str], environ: Mapping[str, str], size: tuple[int, int]) -> None: ...
    def press(self, *keys: str) -> None:
        """Keys by their names: Enter, Escape, C-c, Up, …"""
        ...

    def type(self, text: str) -> None: ...
    def paste(self, text: str) -> None: ...
    def text(self) -> str: ...
    def has_colours(self) -> bool: ...
    def resize(self, columns: int, rows: int) -> None: ...
    def close_window(self) -> None:
        """Closes the window under the running program."""
        ...

    def close(self) -> None: ...

    @property
    def pid(self) -> int: ...


class Tmux:
    """A window of a private tmux server with its own socket."""

    def __init__(self) -> None:
        self._place = tempfile.TemporaryDirectory(prefix="screen-")
        self.pid = 0

    def start(self, command: Sequence[str], environ: Mapping[str, str], size: tuple[int, int]) -> None:
        line = shlex.join(["env", "-i", *(f"{name}={value}" for name, value in environ.items()), *command])
        columns, rows = map(str, size)
        keep = ["set", "-g", "remain-on-exit", "on", ";", "set", "-g", "escape-time", "0"]
        self._tmux("new-session", "-d", "-x", columns, "-y", rows, f"exec {line}", ";", *keep)
        self.pid = int(self._tmux("display-message", "-p", "#{pane_pid}"))

    def press(self, *keys: str) -> None:
        self._tmux("send-keys", *keys)

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-l", "--", text)

    def paste(self, text: str) -> None:
        self._tmux("set-buffer", "--", text)
        self._tmux("paste-buffer", "-p", "-r")

    def text(self) -> str:
        return _tidy(self._tmux("capture-pane", "-p", "-S", "-").split("\n"))

    def has_colours(self) -> bool:
        return bool(re.search(r"\x1b\[(?:\d+;)*(?:3[0-7]|4[0-7]|9[0-7]|38;)", self._tmux("capture-pane", "-p", "-e")))

    def resize(self, columns: int, rows: int) -> None:
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def close_window(self) -> None:
        self._tmux("kill-pane")

    def close(self) -> None:
        subprocess.run(["tmux", "-S", self._socket, "kill-server"], capture_output=True, check=False)
        self._place.cleanup()

    @property
    def _socket(self) -> str:
        return f"{self._place.name}/tmux"

    def _tmux(self, *words: str) -> str:
        command = ["tmux", "-u", "-S", self._socket, "-f", os.devnull, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, encoding="utf-8", errors="replace")
        assert done.returncode == 0, f"tmux {words[0]}: {done.stderr}"
        return done.stdout


class EmulatedTerminal:
    """A pseudo-terminal read by an emulator; `raw` keeps all output."""

    def __init__(self) -> None:
        self.raw = bytearray()
        self._lock = threading.Lock()
        self._rest = b""

    def start(self, command: Sequence[str], environ: Mapping[str, str], size: tuple[int, int]) -> None:
        self._main, other = os.openpty()
        self._screen = pyte.Screen(*size)
        self._stream = pyte.ByteStream(self._screen)
        self._set_size(*size)
        self._process = subprocess.Popen(
            list(command),
            stdin=other,
            stdout=other,
            stderr=other,
            env=dict(environ),
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(other)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def press(self, *keys: str) -> None:
        for key in keys:
            control = chr(ord(key[2:].upper()) & 0x1F) if key.startswith("C-") else key
            os.write(self._main, _KEYS.get(key, control).encode())

    def type(self, text: str) -> None:
        os.write(self._main, text.encode())

    def paste(self, text: str) -> None:
        self.type(f"\x1b[200~{text}\x1b[201~")

    def text(self) -> str:
        with self._lock:
            return _tidy(self._screen.display)

    def has_colours(self) -> bool:
        with self._lock:
            cells = [cell for row in self._screen.buffer.values() for cell in row.values()]
        return any((cell.fg, cell.bg) != ("default", "default") for cell in cells)

    def resize(self, columns: int, rows: int) -> None:
        with self._lock:
            self._screen.resize(rows, columns)
        self._set_size(columns, rows)

    def close_window(self) -> None:
        os.close(self._main)
        self._main = -1

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        if self._main >= 0:
            self._reader.join()
            os.close(self._main)

    def _set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._main, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _read(self) -> None:
        try:
            while data := os.read(self._main, 65536):
                with self._lock:
                    self.raw += data
                    self._feed(data)
        except OSError:
            return  # the program has process_ended, or the window is closed

    def _feed(self, data: bytes) -> None:
        """Feeds the emulator without sequences it does not know; keeps incomplete sequences for later."""
        data = self._rest + data
        cut = data.rfind(b"\x1b")
        whole = cut < 0 or re.match(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|[^\[])", data[cut:])
        self._rest = b"" if whole else data[cut:]
        self._stream.feed(_UNSUPPORTED_SEQUENCES.sub(b"", data if whole else data[:cut]))


def _tidy(lines: Sequence[str]) -> str:
    return "\n".join(line.rstrip() for line in lines).rstrip("\n")


SCREEN_TYPES: dict[str, Callable[[], Screen]] = {"emulated": EmulatedTerminal}
if shutil.which("tmux"):
    SCREEN_TYPES = {"tmux": Tmux, **SCREEN_TYPES}


def default_screen() -> Screen:
    return next(iter(SCREEN_TYPES.values()))()


def wait_until(screen: Screen, holds: Callable[[str], object], what: str) -> str:
    """Polls the screen until the condition holds; returns the screen text."""
    shown = ""
    for _ in _polls():
        shown = screen.text()
        if holds(shown):
            return shown
    raise AssertionError(f"{what} was not seen; the screen is\n{shown}")


def process_ended(pid: int) -> bool:
    """Waits for a process to exit; kills it and returns False after the time-out."""
    for _ in _polls():
        try:
            os.kill(pid, 0)
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except (ProcessLookupError, FileNotFoundError):
            return True
    os.kill(pid, signal.SIGKILL)
    return False


def _polls() -> Iterator[None]:
    """Yields until the time-out, at intervals that grow."""
    end, (interval, longest) = time.monotonic() + TIMEOUT, _POLL_INTERVALS
    while time.monotonic() < end:
        yield
        time.sleep(interval)
        interval = min(longest, interval * 1.5)
    yield
