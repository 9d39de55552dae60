"""What our own next compaction needs to know of what another tool archived (H3)."""

from __future__ import annotations

import msgspec

from ..ledger import Notebook, carried, name_worth
from ..messages import COMMON
from ..strategies.reading import earlier_ledger, places
from ..strategies.truncation import topics
from ..view import Carry, Request, View

_LINES = 60_000
"""Characters of lines that go along to the next round."""


def cut_at(view: View, seq: int) -> int:
    """How many of the live messages stand at or before this event; answers that only the view gives go with theirs."""
    known = [place for place, name in enumerate(view.ids) if name in view.events and view.events[name].seq <= seq]
    return known[-1] + 1 if known else 0


def carry_over(view: View, cut: int, version: int) -> Carry:
    """A tool's clearing of results does not raise the round, as a prune of ours does not (L10)."""
    before, gone = view.checkpoint.carry, view.messages[:cut]
    return Carry(
        round=before.round + (cut > 0),
        archived=before.archived + cut,
        format=None if view.format == COMMON else view.format,
        counter=view.gauge.estimator.name,
        calibration=view.calibration.forget_size(),
        topics=tuple(topics(gone, before.topics)),
        passed=before.passed + cut,
        settled=version if cut else before.settled,
        ledger=_ledger(view, cut) if cut else before.ledger,
    )


def _ledger(view: View, cut: int) -> dict[str, object]:
    request = Request(view)
    earlier = earlier_ledger(request, request.notes)
    notebook = Notebook(earlier)
    notebook.read(view.messages[:cut], places(request, earlier.archived)[:cut])
    ledger = carried(notebook.ledger(), notebook.named, name_worth(notebook), _LINES)
    plain: dict[str, object] = msgspec.to_builtins(ledger)
    return plain
