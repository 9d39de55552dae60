"""Fixture for a chat in a terminal that is closed after the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from terminal_harness import TerminalChat
from terminal_screens import Screen

from providers.fixtures import serve

__all__ = ["serve"]


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Callable[..., TerminalChat]]:
    """Makes a chat that is not started yet."""
    with ExitStack() as open_ones:

        def make(screen: Screen | None = None) -> TerminalChat:
            made = TerminalChat(tmp_path, screen)
            open_ones.callback(made.screen.close)
            return made

        yield make
