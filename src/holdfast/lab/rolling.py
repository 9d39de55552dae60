"""A history in pieces, for compactions in a row."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ..messages import Message


def chunks(messages: Sequence[Message], count: int) -> list[list[Message]]:
    """As many pieces of equal length, each up to where a model would be asked; fewer of a short history."""
    asked = places_to_ask(messages)
    wanted = (len(messages) * part // count for part in range(1, count))
    edges = [0, *sorted({next((place for place in asked if place >= n), len(messages)) for n in wanted}), len(messages)]
    return [list(messages[start:end]) for start, end in pairwise(edges) if end > start]


def places_to_ask(messages: Sequence[Message]) -> list[int]:
    """Before each reply; no tool call is parted from its result there. One that got none waits for it no longer."""
    places: list[int] = []
    open_calls: set[str] = set()
    for place, message in enumerate(messages):
        if place and message.role == "assistant" != messages[place - 1].role:
            if not open_calls:
                places.append(place)
            open_calls.clear()
        open_calls |= {call.id for call in message.calls}
        open_calls -= {result.call_id for result in message.results}
    return places
