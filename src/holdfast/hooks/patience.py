"""How long a hook may take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import anyio

from ..errors import InvalidLimit

PATIENCE = 60.0
"""Seconds, unless it is said otherwise."""


class TooSlow(Exception):
    """Its time was over before it was done."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    with anyio.move_on_after(seconds) as scope:
        yield
    if scope.cancelled_caught:
        raise TooSlow(f"it took over {seconds:g} s")


def must_be_seconds(timeout: float, name: str = "timeout") -> None:
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
        raise InvalidLimit(f"{name} must be a number of seconds above 0, not {timeout!r}.")
