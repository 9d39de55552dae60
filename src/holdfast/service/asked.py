"""Asking a model for a text that is handed out and written nowhere."""

from __future__ import annotations

from typing import TypeVar

from ..calls import Steps
from ..compaction import Asking, drive
from ..errors import Aborted

R = TypeVar("R")


async def asked(work: Steps[R], asking: Asking) -> R:
    """What the work comes to. There is no outcome here that could say `aborted`, so an abort is an error."""
    with asking.abort.scope():
        return await drive(work, asking.model, asking.limits, asking.notify, asking.meter)
    raise Aborted
