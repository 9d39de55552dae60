"""A text that is cut keeps its names whole: half of a name would be a name that nobody said."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from holdfast.ledger import clipped
from holdfast.ledger.shortening import abridged

_NAME = re.compile(r"[A-Za-z0-9_.@/#-]+")
names = st.from_regex(r"[A-Za-z0-9_.@/#-]{1,300}", fullmatch=True)
texts = st.lists(st.tuples(names, st.sampled_from((" ", "\n", '","', "(", ": ", "、"))), max_size=60).map(
    lambda parts: "".join(name + after for name, after in parts)
)


@given(text=texts, room=st.integers(1, 3_000))
def test_no_name_is_cut_in_two(text: str, room: int) -> None:
    assert set(_NAME.findall(clipped(text, room))) <= set(_NAME.findall(text))


def test_a_record_without_blanks_is_cut_between_its_names() -> None:
    record = '{"level":"INFO","component":"hooks","agent":"claude-code","hook":"session-start","hook_type":"agent"}'
    assert clipped(record, 84).endswith('"hook":"session-start"," […]')


def test_what_has_no_blank_at_all_is_measured_not_cut() -> None:
    assert abridged("eyJhbGciOi" * 200, 400) == "[2,000 characters in one piece]"
