"""Points in time as people write them: a date, a time, or how long ago."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

from ..errors import InvalidInput

_AGE = re.compile(r"(\d{1,6})\s*([mhdw])", re.ASCII)
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def moment(
    given: str | date | None, name: str = "since", *, end: bool = False, now: datetime | None = None
) -> str | None:
    """The same as events have it. A day begins at its first moment, or with `end` ends at its last; times are UTC."""
    if given is None:
        return None
    at = _read(given, now or datetime.now(UTC), end)
    if at is None:
        raise InvalidInput(
            f"{name} takes a date like 2026-03-01, a time like 2026-03-01T12:30 or an age like 90m, 12h, 3d or 2w, "
            f"not {given!r:.80}."
        )
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def span(since: str | date | None, until: str | date | None) -> tuple[str | None, str | None]:
    """Both ends of a stretch of time. What ends before it begins would find nothing, and not say why."""
    first, last = moment(since), moment(until, "until", end=True)
    if first and last and first > last:
        raise InvalidInput(f"since {since} is later than until {until}: nothing lies between them.")
    return first, last


def _read(given: str | date, now: datetime, end: bool) -> datetime | None:
    try:
        at = _written(given.strip(), now, end) if isinstance(given, str) else _start(given, end)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):  # no such day, or none that the calendar has
        return None


def _written(text: str, now: datetime, end: bool) -> datetime:
    if found := _AGE.fullmatch(text.lower()):
        return now - timedelta(**{_UNITS[found[2]]: int(found[1])})
    if len(text) <= len("2026-03-01"):
        return _start(date.fromisoformat(text), end)
    return datetime.fromisoformat(text)


def _start(day: date, end: bool) -> datetime:
    if isinstance(day, datetime):
        return day
    return datetime(day.year, day.month, day.day, tzinfo=UTC) + (
        timedelta(days=1, milliseconds=-1) if end else timedelta()
    )
