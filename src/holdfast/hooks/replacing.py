"""A plan that a hook made instead of the strategy: it is weighed like any other, and used only if it holds.

What breaks, plans nothing, or does not shrink the context leaves it to the strategy; an abort leaves it to nobody.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import msgspec

from ..compaction import Asking, Decision, drive
from ..compaction.decide import weigh
from ..compaction.driver import in_thread
from ..messages import Message, Text, is_framed, unframed
from ..strategies import steps
from ..view import Plan, Request, Skip, follow

if TYPE_CHECKING:
    from ..types import Strategy

log = logging.getLogger("holdfast")


class NotUsed(Exception):
    """Why it will not do."""


async def replaced(request: Request, strategy: Strategy, asking: Asking, min_saving: float, by: str) -> Decision:
    """The decision to do as the hook says; raises `NotUsed` where that cannot be."""
    try:
        answer = await drive(steps(strategy, request), asking.model, asking.limits, asking.notify, asking.meter)
        decision = await in_thread(lambda: weigh(request, strategy, _sound(answer, request, by), min_saving=min_saving))
    except NotUsed:
        raise
    except Exception as problem:
        log.warning("the strategy of the hook %s broke", by, exc_info=True)
        raise NotUsed(f"it broke: {type(problem).__name__}: {problem}") from problem
    if decision.plan is None:
        raise NotUsed(decision.why)
    return decision


def _sound(answer: Any, request: Request, by: str) -> Plan:
    """A plan that names only messages that are there, says something, and shrinks the context by itself."""
    if isinstance(answer, Skip):
        raise NotUsed(answer.why or answer.outcome.value)
    if not isinstance(answer, Plan):
        raise NotUsed(f"it came to {type(answer).__name__}, not to a plan")
    count = len(request.messages)
    cut_there = all(0 <= place < answer.cut for place in answer.preamble) and 0 <= answer.cut <= count
    if not cut_there or not all(0 <= place < count for place in answer.edits):
        raise NotUsed(f"it names messages that are not there: there are {count}")
    blank = answer.summary is not None and not answer.summary.strip()
    if blank or any(map(_is_blank, answer.notes or ())):
        raise NotUsed("its summary is blank")
    before, after = request.tokens, follow(request, answer).tokens
    if after >= before:
        raise NotUsed(f"{before} tokens would become {after}")
    return msgspec.structs.replace(answer, by=answer.by or by)


def _is_blank(note: Message) -> bool:
    said = unframed(note) if is_framed(note) else note.text
    return not said.strip() and all(type(part) is Text for part in note.parts)
