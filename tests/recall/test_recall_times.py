"""Time filters of a search: dates, times and ages."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.recall import parse_time

NOW = datetime(2026, 3, 11, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("written", "start", "end"),
    [
        ("2026-03-01", "2026-03-01T00:00:00.000Z", "2026-03-01T23:59:59.999Z"),
        (date(2026, 3, 1), "2026-03-01T00:00:00.000Z", "2026-03-01T23:59:59.999Z"),
        (" 2026-03-01T12:30 ", "2026-03-01T12:30:00.000Z", "2026-03-01T12:30:00.000Z"),
        ("2026-03-01T12:30+02:00", "2026-03-01T10:30:00.000Z", "2026-03-01T10:30:00.000Z"),
        ("90m", "2026-03-11T10:30:00.000Z", "2026-03-11T10:30:00.000Z"),
        ("2 W", "2026-02-25T12:00:00.000Z", "2026-02-25T12:00:00.000Z"),
        ("9999-12-31", "9999-12-31T00:00:00.000Z", "9999-12-31T23:59:59.999Z"),
    ],
)
def test_parse_time_accepts_dates_times_and_ages(written: str | date, start: str, end: str) -> None:
    assert parse_time(written, now=NOW) == start
    assert parse_time(written, now=NOW, end=True) == end


@pytest.mark.parametrize(
    "written",
    [
        "tomorrow",
        "",
        "-3d",
        "999999w",
        "2026-02-30",
        "0001-01-01T00:00:00+05:00",
        "9999-12-31T23:00:00-05:00",
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5))),
    ],
    ids=repr,
)
def test_parse_time_invalid_text_names_the_formats(written: str | date) -> None:
    with pytest.raises(InvalidInput, match="until takes a date like 2026-03-01"):
        parse_time(written, "until", now=NOW)


@given(st.text(st.characters(), max_size=30) | st.from_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{5}[+-][0-9:]{5}"))
def test_parse_time_any_text_parses_or_raises_invalid_input(text: str) -> None:
    try:
        found = parse_time(text, now=NOW)
    except InvalidInput:
        return
    assert found is not None and found.endswith("Z")
