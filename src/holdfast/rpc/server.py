"""`serve`: a client's whole visit, from the greeting to its last line."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import BinaryIO

from ..agent.events import AgentEvent
from ..agent.tools import always_yes
from ..chat import open_chat
from ..lines import Outgoing, incoming_from
from ..settings import Settings
from ..signals import stopped_by_signals
from .approvals import Approvals
from .records import Hello
from .serving import Serving


async def serve(
    settings: Settings,
    descriptor: int,
    stream: BinaryIO,
    *,
    folder: str | Path,
    session: str | None = None,
    yes: bool = False,
) -> int:
    """Read requests from a descriptor and write to a stream; returns the code to exit with."""
    out = Outgoing(stream)
    approvals = Approvals(out.send)
    early: list[AgentEvent] = []
    serving: Serving | None = None

    def tell(event: AgentEvent) -> None:
        if serving is None:
            early.append(event)
        else:
            serving.tell(event)

    approve = always_yes if yes else approvals.ask
    async with open_chat(settings, folder=folder, tell=tell, approve=approve, session=session) as chat:
        serving = Serving(chat, approvals, out.send)
        out.send(Hello(version=version("holdfast"), session=chat.record.id))
        for event in early:
            out.send(event)
        async with out.writing(), incoming_from(descriptor) as incoming, stopped_by_signals(incoming.end) as stopped:
            await serving.run(incoming)
    if out.broken:
        raise BrokenPipeError
    return stopped.code or 0
