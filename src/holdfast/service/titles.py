"""What a session is about, in two sentences for display; it is stored nowhere (P22)."""

from __future__ import annotations

from ..calls import Failure, Steps
from ..compaction import Asking
from ..ledger.lines import Line
from ..models import reads
from ..strategies.blend_memory import keeping_memory
from ..summaries import Material, Style
from ..summaries.structured import UNKNOWN_TASK
from ..summaries.titles import short, write
from ..view import Request
from .asked import asked
from .known import Known, task_of
from .live import LiveSession

_STYLE = Style(result_limit=80, text_limit=600)
_READ = 8_000
"""Characters of the newest part of the conversation: a title needs no more."""
_ROOM = 100


async def title(live: LiveSession, asking: Asking, *, lane: str | None) -> str:
    task = await task_of(live)
    view = await live.view(lane)
    if asking.model is None:
        return _own(task)
    request = Request(keeping_memory(view.snapshot()), session_id=live.id, reads=reads(asking.model))
    return await asked(_titled(request, task), asking)


def _own(task: Line | None) -> str:
    return short(task.text) if task else UNKNOWN_TASK


def _titled(request: Request, task: Line | None) -> Steps[str]:
    known = Known(request, task)
    material = Material(
        known.conversation(_STYLE).newest(_READ),
        previous=known.previous[:_READ],
        task=known.task,
        room=_ROOM,
        reads=request.reads,
        measure=known.tokens,
        notes_on=known.notes,
    )
    if not (material.conversation.entries or material.previous):
        return _own(task)
    answer = yield from write(material)
    return _own(task) if isinstance(answer, Failure) else answer
