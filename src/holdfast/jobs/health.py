"""Whether a worker is well: alive, and able to reach what it needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal

import anyio

from ..errors import HoldfastError
from ..models import scrub
from .tally import Tally

EVERY = 5.0
"""Seconds between two looks."""
PATIENCE = 3.0
"""Seconds for each."""

Status = Literal["starting", "ok", "unreachable", "stopping"]


class Health:
    """What is known of a worker. `check` raises where something that it needs cannot be reached."""

    def __init__(self, tally: Tally, check: Callable[[], Awaitable[object]], every: float = EVERY) -> None:
        self._tally = tally
        self._check = check
        self._every = every
        self._why = ""
        self.status: Status = "starting"

    @property
    def well(self) -> bool:
        return self.status in ("ok", "stopping")

    async def look(self) -> None:
        try:
            with anyio.fail_after(PATIENCE):
                await self._check()
            found: Status = "ok"
            self._why = ""
        except (HoldfastError, TimeoutError) as problem:
            found = "unreachable"
            self._why = scrub(str(problem)) or f"no answer in {PATIENCE:g} s"
        if self.status != "stopping":
            self.status = found

    async def keep_looking(self, tell: Callable[[], object]) -> None:
        while True:
            await anyio.sleep(self._every)
            await self.look()
            tell()

    def facts(self) -> dict[str, Any]:
        return {"status": self.status, "why": self._why, **self._tally.facts()}
