"""From events, tips and media to columns: many rows go to the server as one array for each column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...events import LaneTip
from ..admission import Entry
from .nul import kept


def event_columns(entries: Sequence[Entry]) -> tuple[list[Any], ...]:
    events = [entry.event for entry in entries]
    return (
        [kept(event.id) for event in events],
        [kept(event.kind) for event in events],
        [kept(event.time) for event in events],
        [event.v for event in events],
        [entry.digest for entry in entries],
        [entry.body.decode() for entry in entries],
    )


def tip_columns(tips: Mapping[str, LaneTip]) -> tuple[list[Any], ...]:
    values = tips.values()
    return (
        [kept(lane) for lane in tips],
        [tip.mark for tip in values],
        [kept(tip.epoch) for tip in values],
        [tip.start for tip in values],
        [tip.base for tip in values],
        [kept(tip.base_epoch) for tip in values],
    )


def media_columns(media: Mapping[str, str]) -> tuple[list[str], list[str]]:
    return [kept(digest) for digest in media], [kept(data) for data in media.values()]
